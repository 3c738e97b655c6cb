"""Measured on real blocks: shapes, additivity of the fit, and pairing. No test judges a speed."""

import itertools
import math
import time
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nas import measure
from nas.blocks import block_classes
from nas.blocks.base import Cache, Context
from nas.calls import network_call, slot_calls
from nas.config.space import SearchSpace
from nas.config.task import ServeMode
from nas.cost import LatencyTable, entry_key
from nas.measure import (
    compare_latency,
    device_description,
    elsewhere,
    fit_offset_and_scale,
    measure_table,
    verdict,
)
from nas.network import Memory, Network, Slot
from tests import tiny

SERVE = ServeMode(batch=2, query_length=16)


@pytest.fixture(scope="module")
def space() -> SearchSpace:
    return tiny.request().space


@pytest.fixture(scope="module")
def table(space: SearchSpace) -> LatencyTable:
    return measure_table(space, SERVE, vocab_size=256, threads=1)


def network(labels: list[str]) -> Network:
    request = tiny.request(space={"n_slots": len(labels)})
    return Network(request.network_config(labels, 256), block_classes(labels))


def test_table_has_an_entry_of_every_candidate_with_its_run_count(space: SearchSpace, table: LatencyTable) -> None:
    assert set(table.entries) == {entry_key(candidate, space, SERVE) for candidate in space.candidates}
    for entry in table.entries.values():
        if entry.block != "identity":
            assert entry.median_ms > 0
            assert entry.iqr_ms >= 0
            assert entry.n_runs >= 100


def test_identity_is_zero_by_definition(space: SearchSpace, table: LatencyTable) -> None:
    entry = table.entries[entry_key(space.candidate("identity"), space, SERVE)]
    assert (entry.median_ms, entry.iqr_ms, entry.n_runs) == (0.0, 0.0, 0)
    assert table.slot_ms(space)[space.labels.index("identity")] == 0.0


def test_table_holds_its_own_error_on_whole_networks(table: LatencyTable) -> None:
    assert table.n_networks >= 10
    assert table.offset_ms >= 0
    assert table.scale > 0
    assert 0 <= table.error_median <= table.error_p95


def test_table_survives_json_and_keeps_its_id(table: LatencyTable) -> None:
    again = LatencyTable.model_validate_json(table.model_dump_json())
    assert again == table
    assert again.id == table.id


def test_two_labels_of_one_block_share_an_entry_and_two_options_do_not() -> None:
    space = SearchSpace.model_validate(
        {
            "n_slots": 1, "d_model": 8, "n_heads": 2, "max_len": 16,
            "candidates": [
                {"label": "narrow", "block": "ffn", "options": {"ratio": 1}},
                {"label": "wide", "block": "ffn", "options": {"ratio": 4}},
                {"label": "same", "block": "ffn", "options": {"ratio": 4}},
            ],
        }
    )  # fmt: skip
    table = measure_table(space, SERVE, vocab_size=256, threads=1)
    assert len(table.entries) == 2
    _, wide, same = table.slot_ms(space)
    assert wide == same


@pytest.fixture(scope="module")
def recurrent() -> SearchSpace:
    return tiny.request(**tiny.RECURRENT).space


def test_slots_that_read_memory_are_timed_with_it_and_have_entries_of_their_own(recurrent: SearchSpace) -> None:
    seen: dict[str, set[int | None]] = {}

    def watching(self: Slot, x: Tensor, context: Context, memory: Tensor | None = None) -> Tensor:
        lengths = seen.setdefault(type(self.block).__name__, set())
        lengths.add(None if memory is None else memory.shape[1])
        return forward(self, x, context, memory)

    forward = Slot.forward
    serve = ServeMode(batch=2, query_length=16, memory_length=40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Slot, "forward", watching)
        table = measure_table(recurrent, serve, vocab_size=256, threads=1)
    assert seen == {"Attention": {40}, "FeedForward": {None}}
    assert set(table.entries) == {entry_key(candidate, recurrent, serve) for candidate in recurrent.candidates}
    assert not set(table.entries) & {entry_key(each, recurrent, SERVE) for each in recurrent.candidates}


def test_networks_are_compared_with_memory(recurrent: SearchSpace, monkeypatch: pytest.MonkeyPatch) -> None:
    request = tiny.request(**tiny.RECURRENT)
    networks = {
        name: Network(request.network_config(labels, 256), block_classes(["attention", "ffn"]))
        for name, labels in {"attending": ["attention", "ffn"], "reference": ["ffn", "ffn"]}.items()
    }
    given: set[tuple[int | None, ...]] = set()
    forward = Network.forward

    def watching(self: Network, tokens: Tensor, memory: Memory | None = None) -> Tensor:
        assert memory is not None
        given.add(tuple(None if each is None else each.shape[1] for each in memory))
        return forward(self, tokens, memory)

    monkeypatch.setattr(Network, "forward", watching)
    assert compare_latency(networks, ServeMode(batch=2, query_length=16, memory_length=24), 8).n_rounds == 8
    assert given == {(24, None), (None, None)}


@pytest.mark.parametrize("mode", ["decode", "training"])
def test_each_serve_mode_has_a_table_and_a_comparison_of_its_own(
    space: SearchSpace, table: LatencyTable, mode: Literal["decode", "training"]
) -> None:
    serve = ServeMode(mode=mode, batch=2, query_length=15)
    found = measure_table(space, serve, vocab_size=256, threads=1)
    assert set(found.entries) == {entry_key(candidate, space, serve) for candidate in space.candidates}
    assert not set(found.entries) & set(table.entries)
    assert found.error_p95 >= found.error_median >= 0
    compared = compare_latency({"deep": network(["ffn"] * 12), "shallow": network(["ffn"] * 2)}, serve, 16)
    assert compared.ratio > 1 + compared.repeatability
    for each, ms in compared.ms.items():
        low, high = compared.ms_interval[each]
        assert 0 < low <= ms <= high


def test_decoding_is_timed_one_token_behind_those_that_were_read(
    space: SearchSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: set[tuple[int, int, tuple[int, ...]]] = set()
    step = Slot.step

    def watching(self: Slot, x: Tensor, cache: Cache) -> Tensor:
        places.add((cache.position, cache.capacity, tuple(x.shape)))
        return step(self, x, cache)

    monkeypatch.setattr(Slot, "step", watching)
    measure_table(space, ServeMode(mode="decode", batch=2, query_length=11), vocab_size=256, threads=1)
    assert places == {(11, 12, (2, 1, 16))}


def test_a_training_call_gives_every_weight_a_gradient_and_changes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    gradients: list[int] = []
    grad = torch.autograd.grad

    def watching(outputs: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
        found = grad(outputs, inputs, *rest, **named)
        gradients.append(sum(each is not None for each in found))
        return found

    monkeypatch.setattr(torch.autograd, "grad", watching)
    net = network(["attention", "ffn"]).train()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    network_call(net, ServeMode(mode="training", batch=2, query_length=16))()
    assert gradients == [len([*net.parameters()])]
    for number, call in slot_calls(net, ServeMode(mode="training", batch=2, query_length=16)).items():
        call()
        slot = net.slots[str(number)]
        assert gradients[-1] == 1 + len([*slot.parameters()])
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.8, 0.9, "within"), (0.8, 1.0, "within"), (0.9, 1.1, "cannot tell"), (1.01, 1.1, "over")],
)
def test_an_interval_that_reaches_over_the_bound_on_both_sides_cannot_tell(
    low: float, high: float, expected: str
) -> None:
    assert verdict(low, high, 1.0) == expected


def test_space_of_identity_alone_can_be_measured() -> None:
    space = SearchSpace.model_validate(
        {"n_slots": 2, "d_model": 8, "n_heads": 2, "max_len": 16, "candidates": ["identity"]}
    )
    table = measure_table(space, SERVE, vocab_size=256, threads=1)
    assert table.slot_ms(space) == [0.0]
    assert table.scale == 1.0
    assert table.offset_ms > 0


def test_measuring_leaves_threads_generator_and_gradients_as_they_were(space: SearchSpace) -> None:
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        measure_table(space, SERVE, vocab_size=256, threads=1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert torch.is_grad_enabled()
    assert torch.equal(torch.rand(1), expected)


def test_device_description_is_text_with_the_threads_of_the_trial() -> None:
    described = device_description(2.5)
    assert all(isinstance(value, str) and value for value in described.values())
    assert described["threads"] == "2"
    assert device_description(0.25)["threads"] == "1"
    assert device_description(2)["clock"] == "wall time"
    assert described["torch"] == torch.__version__


def test_deeper_network_is_slower_than_its_reference_by_more_than_the_repeatability(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nas.measure._LONGEST_S", math.inf)  # however slow the machine is: no round is left out
    found = compare_latency({"deep": network(["ffn"] * 12), "shallow": network(["ffn"] * 2)}, SERVE, 32)
    assert found.ratio > 1 + found.repeatability
    assert found.low <= found.ratio <= found.high
    assert list(found.ms) == ["deep", "shallow"]
    assert found.ms["deep"] > found.ms["shallow"]
    assert found.n_rounds == 32


def test_networks_are_timed_without_being_changed() -> None:
    first, second = network(["sgu", "ffn"]), network(["attention", "mgk"])
    before = {name: tensor.clone() for name, tensor in second.state_dict().items()}
    compare_latency({"first": first, "second": second}, SERVE, 8)
    for name, tensor in second.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_latency_is_compared_between_two_networks() -> None:
    with pytest.raises(ValueError, match=r"^latency is compared between 2 networks, one and its reference; there are"):
        compare_latency({"only": network(["ffn"])}, SERVE, 10)


def test_too_few_rounds_are_refused() -> None:
    both = {"first": network(["ffn"]), "second": network(["ffn"])}
    with pytest.raises(ValueError, match=r"^rounds is 4; it must be at least 8$"):
        compare_latency(both, SERVE, 4)


@given(offset=st.floats(0, 10), scale=st.floats(0.1, 3), seed=st.integers(0, 1000))
def test_fit_recovers_an_exactly_additive_machine(offset: float, scale: float, seed: int) -> None:
    sums = np.random.default_rng(seed).uniform(1, 20, 10)
    assert fit_offset_and_scale(sums, offset + scale * sums) == pytest.approx((offset, scale), abs=1e-6)


@given(seed=st.integers(0, 1000))
def test_fit_never_gives_a_negative_offset_or_a_scale_that_is_not_positive(seed: int) -> None:
    rng = np.random.default_rng(seed)
    offset, scale = fit_offset_and_scale(rng.uniform(1, 2, 10), rng.uniform(0.1, 2, 10))
    assert offset >= 0
    assert scale > 0


def test_fit_of_equal_sums_puts_the_rest_into_the_offset() -> None:
    assert fit_offset_and_scale(np.full(10, 2.0), np.full(10, 5.0)) == (3.0, 1.0)


def test_slow_calls_get_fewer_rounds_but_never_too_few() -> None:
    calls = [0]

    def slow() -> None:
        calls[0] += 1
        time.sleep(0.001)

    times = measure._round_robin([slow], 50, time.perf_counter, longest_s=0.0)
    assert times.shape == (5, 1)
    assert calls[0] == 6  # one untimed round is enough to warm up
    assert (times >= 1.0).all()


def test_every_call_is_timed_once_a_round_in_changing_order() -> None:
    order: list[int] = []
    times = measure._round_robin([lambda index=index: order.append(index) for index in range(4)], 20, time.perf_counter)  # type: ignore[misc]
    rounds = np.reshape(order, (-1, 4))
    assert times.shape == (20, 4)
    assert (np.sort(rounds, axis=1) == np.arange(4)).all()
    assert len({tuple(row) for row in rounds}) > 1


def test_one_thread_is_timed_by_its_processor_time_and_more_by_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure._clock(2) is time.perf_counter
    seconds = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: next(seconds) * 1e-7)
    assert measure._clock(1) is time.thread_time


def test_processor_time_that_ticks_too_coarsely_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "thread_time", lambda: 0.01)
    assert measure._clock(1) is time.perf_counter
    assert device_description(1)["clock"] == "wall time"


def test_a_gpu_is_timed_by_the_wall_once_it_has_done_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", done.append)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"the GPU of {device}")
    monkeypatch.setattr(time, "perf_counter", lambda: float(len(done)))
    assert [measure._clock(1, "cuda")() for _ in range(2)] == [1.0, 2.0]
    described = device_description(1, "cuda")
    assert (described["accelerator"], described["clock"]) == ("the GPU of cuda", "wall time")
    assert "accelerator" not in device_description(1)


def test_another_device_is_told_from_the_same_one_with_other_software() -> None:
    here = device_description(1)
    assert elsewhere({**here, "torch": "0.1", "python": "2", "clock": "another"}, here) is None
    assert elsewhere({**here, "threads": "8"}, here) == f"threads 8 and not {here['threads']}"
    assert elsewhere({**here, "accelerator": "a GPU"}, here) == "accelerator a GPU and not none"


def test_interval_covers_the_spread_of_sessions_not_only_of_rounds() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(200):  # sessions differ by 10%, the rounds within one by 1%; the truth is 0.9
        centres = 0.9 * np.exp(rng.normal(0, 0.1, measure._SESSIONS))
        ratio, low, high = measure._interval([centre * np.exp(rng.normal(0, 0.01, 20)) for centre in centres])
        assert low < ratio < high
        covered += low <= 0.9 <= high
    assert 180 <= covered <= 199  # 95% of 200 is 190, with a standard error of 3
