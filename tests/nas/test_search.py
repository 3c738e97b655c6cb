"""The search as a procedure: who learns on what, what stays untouched, resume with the same bits; items 17 and 37."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nas import checkpoint, guards
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.data.objectives import Batch
from nas.data.parts import split
from nas.data.streams import HeldOut, Stream
from nas.errors import InvalidInput, SearchFailed
from nas.presets import PRESETS
from nas.retrain import Retraining
from nas.search import Search
from nas.steps import StepRecord
from nas.training import Evaluated, evaluate, weight_step
from tests import tiny


def make(**overrides: Any) -> Search:
    request = tiny.request(**overrides)
    return Search(request, parts=tiny.parts(request), table=tiny.table(request.space))


def bits(search: Search) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in search.weights.items()}


def comparable(record: StepRecord) -> StepRecord:
    return replace(record, tokens_per_s=None)


def test_records_come_at_step_zero_at_every_report_and_at_the_end() -> None:
    records = list(make(method={"n_steps": 11, "report_every": 4, "checkpoint_every": 6}).run())
    assert [record.step for record in records] == [0, 4, 6, 8, 11]
    assert [record.checkpoint for record in records] == [False, False, True, False, True]
    assert [record.last for record in records] == [False, False, False, False, True]


def test_a_record_tells_softmax_alpha_and_where_alpha_has_not_moved_no_argmax_loss() -> None:
    search = make()
    first, *_, last = search.run()
    assert first.train_loss is None
    assert first.val_loss_argmax is None
    assert first.probabilities == [[pytest.approx(0.2)] * 5] * 2
    assert first.null_gaps == [0.0, 0.0]
    assert last.val_loss_argmax is not None
    assert last.probabilities is not None
    expected = torch.softmax(search.alphas.values.detach(), -1)
    torch.testing.assert_close(torch.tensor(last.probabilities), expected, atol=1e-6, rtol=0)
    assert last.expected_ms == pytest.approx(
        1.0 + float((expected * torch.tensor([3.0, 2.0, 0.0, 2.5, 3.5])).sum()), rel=1e-6
    )
    assert last.tau == 0.2


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "single_path"])
def test_every_record_holds_softmax_alpha_of_its_step(estimator: str) -> None:
    search = make(method={"warmup_share": 0.2, "alpha_lr": 0.5, "alpha_estimator": estimator})
    for record in search.run():
        assert record.probabilities is not None
        expected = torch.softmax(search.alphas.values.detach().double(), -1)
        torch.testing.assert_close(torch.tensor(record.probabilities).double(), expected, atol=1e-6, rtol=0)
    assert search.alphas.n_updates > 1


def test_alpha_stays_zero_in_warm_up_and_moves_afterwards() -> None:
    search = make(method={"n_steps": 12, "warmup_share": 0.5, "report_every": 1})
    for record in search.run():
        if record.step <= 6:
            assert not search.alphas.values.any()
            assert not search.alphas.nulls.any()
    assert search.alphas.values.any()
    assert search.alphas.n_updates == 1  # (12 - 6) * 0.25, rounded down


def test_alpha_updates_are_the_asked_share_of_all_updates() -> None:
    method = {"n_steps": 41, "warmup_share": 0.0, "settle_share": 0.0, "alpha_share": 0.2, "report_every": 41}
    search = make(method=method)
    list(search.run())
    assert search.alphas.n_updates == 10  # one to four weight updates


def test_a_weight_step_leaves_alpha_and_its_optimiser_untouched() -> None:
    search = make(method={"warmup_share": 0.0})
    search._alpha_step()
    before = {name: value.detach().clone() for name, value in search.alphas.names.items()}
    moments = checkpoint.optimiser_tensors("a", search.alphas.optimiser, search.alphas.names)
    moments = {name: value.clone() for name, value in moments.items()}
    search._weight_step()
    assert all(torch.equal(value, before[name]) for name, value in search.alphas.names.items())
    after = checkpoint.optimiser_tensors("a", search.alphas.optimiser, search.alphas.names)
    assert all(torch.equal(after[name], value) for name, value in moments.items())
    assert search.alphas.values.grad is None


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "single_path"])
def test_an_alpha_step_leaves_weights_their_gradients_and_moments_untouched(estimator: str) -> None:
    search = make(method={"warmup_share": 0.0, "alpha_estimator": estimator})
    for _ in range(3):
        search._weight_step()
    before = bits(search)
    moments = {
        name: value.clone()
        for name, value in checkpoint.optimiser_tensors("w", search.optimiser, search.weights).items()
    }
    for _ in range(5):
        search._alpha_step()
    assert all(torch.equal(parameter, before[name]) for name, parameter in search.weights.items())
    assert all(parameter.grad is None for parameter in search.weights.values())
    after = checkpoint.optimiser_tensors("w", search.optimiser, search.weights)
    assert after.keys() == moments.keys()
    assert all(torch.equal(after[name], value) for name, value in moments.items())
    assert search.alphas.values.any()


def test_warm_up_gives_every_candidate_of_a_slot_the_same_number_of_updates() -> None:
    search = make(method={"n_steps": 20, "warmup_share": 0.75, "report_every": 1})
    for record in search.run():
        if record.step and record.step <= 15 and record.step % 5 == 0:
            assert record.updates == [[record.step // 5] * 5] * 2


def test_uniform_share_one_stays_fair_to_the_end() -> None:
    search = make(method={"n_steps": 20, "warmup_share": 0.2, "uniform_share": 1.0})
    *_, last = search.run()
    assert last.updates == [[4] * 5] * 2


def test_weights_and_alpha_learn_and_are_watched_on_disjoint_parts_and_never_see_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = tiny.request(method={"warmup_share": 0.0})
    parts = tiny.lettered_parts(request)
    search = Search(request, parts=parts, table=tiny.table(request.space))
    doing = ["nothing"]
    on_alphas = {id(search.ranked_on): "ranked"}
    seen: set[tuple[str, *tuple[int, ...]]] = set()  # who read which parts

    def reading(who: str, batch: Batch) -> None:
        letters = torch.cat([batch.tokens, batch.targets]) // tiny.LETTERS
        seen.add((who, *sorted(set(letters.flatten().tolist()))))

    def named(who: str, step: Callable[[], None]) -> Callable[[], None]:
        def stepping() -> None:
            doing[0] = who
            step()

        return stepping

    def reading_next(stream: Stream, following: Callable[[Stream], Batch] = Stream.next) -> Batch:
        batch = following(stream)
        reading(doing[0], batch)
        return batch

    def evaluating(forward: Any, held_out: HeldOut, batch_size: int) -> Evaluated:
        reading(on_alphas.get(id(held_out), "watched"), held_out.batch)
        return evaluate(forward, held_out, batch_size)

    monkeypatch.setattr(search, "_weight_step", named("weights", search._weight_step))
    monkeypatch.setattr(search, "_alpha_step", named("alpha", search._alpha_step))
    monkeypatch.setattr(Stream, "next", reading_next)
    monkeypatch.setattr("nas.search.evaluate", evaluating)
    list(search.run())
    assert seen == {("weights", 0), ("alpha", 1), ("ranked", 1), ("watched", 2)}


@pytest.mark.parametrize("estimator", ["soft", "straight_through", "single_path"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(estimator: str) -> None:
    runs = [
        [comparable(record) for record in make(method={"alpha_estimator": estimator}, trials={"seed": seed}).run()]
        for seed in (3, 3, 4)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.mark.parametrize("kind", [{}, tiny.RECURRENT, tiny.MASKED], ids=["plain", "memory", "masked"])
@pytest.mark.parametrize("stop_at", [2, 8, 10])
def test_a_stopped_and_resumed_search_has_the_bits_of_an_undisturbed_one(
    tmp_path: Path, stop_at: int, kind: dict[str, Any]
) -> None:
    overrides: dict[str, Any] = {
        **kind,
        "method": {"warmup_share": 0.25, "n_steps": 14, "report_every": 2},
        "budget": {"latency": {"ms": 2.0}},
    }
    undisturbed = make(**overrides)
    expected = [comparable(record) for record in undisturbed.run()]
    stopped = make(**overrides)
    records = []
    for record in stopped.run():
        records.append(comparable(record))
        if record.step == stop_at:
            stopped.save(tmp_path / "state.safetensors")
            break
    resumed = make(**overrides)
    resumed.load(tmp_path / "state.safetensors")
    records += [comparable(record) for record in resumed.run()]
    assert records == expected
    assert torch.equal(resumed.alphas.values, undisturbed.alphas.values)
    assert torch.equal(resumed.alphas.nulls, undisturbed.alphas.nulls)
    assert all(torch.equal(parameter, undisturbed.weights[name]) for name, parameter in resumed.weights.items())


def test_a_search_with_memory_resumes_with_the_same_bits_also_where_its_text_has_begun_again(tmp_path: Path) -> None:
    request = tiny.request(**tiny.RECURRENT, method={"warmup_share": 0.1, "alpha_share": 0.4, "n_steps": 40})
    parts = split(tiny.text(2_000), 16, 4)  # a pass is 22 segments for the weights, 5 for alpha

    def new() -> Search:
        return Search(request, parts=parts, table=tiny.table(request.space))

    undisturbed, current = new(), new()
    expected = [comparable(record) for record in undisturbed.run()]
    found = [comparable(record) for record in islice(current.run(), 2)]
    while not found[-1].last:
        current.save(tmp_path / "state.safetensors")
        current = new()
        current.load(tmp_path / "state.safetensors")
        found += [comparable(record) for record in islice(current.run(), 1)]
    assert found == expected
    assert all(torch.equal(parameter, undisturbed.weights[name]) for name, parameter in current.weights.items())


def test_weights_and_alpha_have_memories_of_their_own_that_no_evaluation_touches() -> None:
    search = make(**tiny.RECURRENT, method={"warmup_share": 0.0, "n_steps": 12})
    weight_data, alpha_data = search.streams["weight_data"], search.streams["alpha_data"]
    search._weight_step()
    assert alpha_data.memory is None
    kept = weight_data.memory
    search._alpha_step()
    search.record(tokens_per_s=None, last=False)
    assert weight_data.memory is kept
    assert kept is not None
    assert alpha_data.memory is not None
    for of_weights, of_alpha in zip(kept, alpha_data.memory, strict=True):
        assert of_weights is not None
        assert of_alpha is not None
        assert of_weights.shape == of_alpha.shape == (4, 16, 16)
        assert not of_weights.requires_grad
        assert not of_alpha.requires_grad
    # What the first slot remembers is the embedding of the text that was read.
    search._weight_step()
    assert weight_data.memory is not None
    assert torch.as_tensor(weight_data.memory[0]).shape == (4, 24, 16)  # full: no more is kept


def test_masked_tokens_are_predicted_from_both_sides() -> None:
    request = tiny.request(
        **{**tiny.MASKED, "space": {**tiny.MASKED["space"], "candidates": ["sgu"]}},
        method={"n_steps": 60, "lr": 2e-2, "batch_size": 16, "report_every": 60, "checkpoint_every": 60},
    )
    first, last = Search(request, parts=split(tiny.ROUND, 16, 16), table=tiny.table(request.space)).run()
    assert first.val_loss_soft is not None
    assert last.val_loss_soft is not None
    assert last.val_loss_soft < 0.7 < 1.3 < first.val_loss_soft  # ln 4 = 1.39 is guessing among the text's letters


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_searched_and_its_architectures_retrained(name: str) -> None:
    """With its own candidates, positions, norms, backbone, memory and objective, but of two narrow slots."""
    preset = SearchRequest.model_validate({"preset": name}).model_dump(mode="json")
    request = tiny.request(
        space={**preset["space"], "n_slots": 2, "d_model": 32, "n_heads": 4, "max_len": 16},
        task={**preset["task"], "train_length": 16, "serve": [{"query_length": 16}]},
        method={**preset["method"], "n_steps": 3, "batch_size": 2, "alpha_share": 0.5, "warmup_share": 0.0},
        retrain={**preset["retrain"], "n_steps": 2, "test_windows": 8},
    )
    parts = tiny.parts(request)
    *_, searched = Search(request, parts=parts, table=tiny.table(request.space)).run()
    assert searched.val_loss_argmax is not None
    architecture = Architecture(tuple(request.space.labels[:2]), request.space.candidates)
    run = Retraining(request, architecture, parts=parts)
    *_, trained = run.run()
    assert trained.val_loss is not None
    assert run.result is not None
    assert len(run.result.test_nats) == 8


def test_saving_does_not_disturb_the_search(tmp_path: Path) -> None:
    plain = [comparable(record) for record in make().run()]
    search = make()
    saved = []
    for record in search.run():
        saved.append(comparable(record))
        search.save(tmp_path / "state.safetensors")
    assert saved == plain


def test_library_code_leaves_the_callers_random_state_alone() -> None:
    before = torch.get_rng_state()
    list(make().run())
    assert torch.equal(torch.get_rng_state(), before)


def test_a_control_run_flips_signs_and_nothing_else() -> None:
    method = {"warmup_share": 0.0, "alpha_share": 0.5}
    real, control = make(method=method), make(method={**method, "random_signs": True})
    list(real.run())
    list(control.run())
    assert torch.equal(real.updates.sum(-1), control.updates.sum(-1))
    assert not torch.equal(real.alphas.values, control.alphas.values)


def test_a_budget_pulls_alpha_towards_cheap_candidates() -> None:
    """Item 23 in the whole engine: with a bound that cannot be met, identity gains and the dearest loses."""
    method = {"n_steps": 60, "warmup_share": 0.1, "report_every": 10, "checkpoint_every": 100, "cost_weight": 20.0}
    free = make(method=method)
    pressed = make(method=method, budget={"latency": {"ms": 1.1}})
    list(free.run())
    list(pressed.run())
    cost_free = free.offset_ms + float((free.alphas.probabilities() * free.slot_costs).sum())
    cost_pressed = pressed.offset_ms + float((pressed.alphas.probabilities() * pressed.slot_costs).sum())
    assert cost_pressed < cost_free - 0.05
    assert (pressed.alphas.probabilities()[:, 2] > free.alphas.probabilities()[:, 2]).all()


def test_a_diverging_search_fails_in_words() -> None:
    search = make()
    run = search.run()
    next(run)
    with torch.no_grad():
        search.weights["backbone.embedding.weight"].fill_(math.nan)
    with pytest.raises(SearchFailed, match=r"training diverged by step 2: the loss is nan; a lower lr"):
        list(run)


def test_weights_broken_by_the_last_step_fail_the_search_though_its_loss_was_finite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = make(method={"n_steps": 4, "report_every": 4})

    def breaking(*arguments: Any, **named: Any) -> Tensor:
        loss = weight_step(*arguments, **named)
        if search.step == 3:
            with torch.no_grad():
                search.weights["backbone.proj_out.weight"].fill_(math.nan)
        return loss

    monkeypatch.setattr("nas.search.weight_step", breaking)
    with pytest.raises(SearchFailed, match=r"training diverged by step 4: the loss is nan; a lower lr"):
        list(search.run())


def test_wall_time_ends_a_search_early(monkeypatch: pytest.MonkeyPatch) -> None:
    *_, last = make(method={"max_minutes": 1e-9}).run()
    assert last.last
    assert last.checkpoint
    assert last.step == 1
    assert last.warning is not None
    assert "the search ended after 1 of 12 weight updates: max_minutes is 1e-09" in last.warning.splitlines()
    assert last.cut_short == "the search ended after 1 of 12 weight updates: max_minutes is 1e-09"
    assert guards.cut_short(last) == last.cut_short


def test_wall_time_before_the_parsimony_pass_says_that_there_was_none() -> None:
    *_, last = make(method={"max_minutes": 1e-9, "prune_steps": 3}).run()
    assert guards.cut_short(last) == (
        "the search ended after 1 of 12 weight updates, before its parsimony pass: max_minutes is 1e-09"
    )


@pytest.mark.parametrize("settle_share", [0.0, 0.25])
def test_a_search_phase_that_ended_early_of_its_own_accord_is_not_cut_short(
    monkeypatch: pytest.MonkeyPatch, settle_share: float
) -> None:
    monkeypatch.setattr("nas.stability._DISORDER", 1.1)  # leaders alone decide
    method = {"n_steps": 80, "stop_when_stable": True, "settle_share": settle_share, "alpha_lr": 1.0}
    search = make(method=method)
    *_, last = search.run()
    assert last.step == search.end < 80
    assert guards.cut_short(last) is None


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "CHECKPOINT_FORMAT_VERSION", 99)
    search = make()
    search.save(tmp_path / "state.safetensors")
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match="checkpoint has format_version 99; this code reads 4"):
        search.load(tmp_path / "state.safetensors")


def test_a_failed_save_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "state.safetensors"
    checkpoint.write(path, {"x": torch.ones(2)}, {"step": 1})
    before = path.read_bytes()
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        checkpoint.write(path, {"x": torch.ones(2)}, {"step": math.nan})
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["state.safetensors"]


def test_a_request_with_ranges_must_be_resolved_first() -> None:
    request = tiny.request(ranges=[{"pointer": "/method/lr", "low": 1e-3, "high": 1e-2, "log": True}])
    with pytest.raises(AssertionError):
        Search(request, parts=tiny.parts(request), table=tiny.table(request.space))
    resolved: SearchRequest = request.resolve({"/method/lr": 5e-3}, seed=7)
    assert Search(resolved, parts=tiny.parts(request), table=tiny.table(request.space)).method.lr == 5e-3
