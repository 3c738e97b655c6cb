"""Several ranks, real processes: together they do what one does, and each holds the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nas import checkpoint, ranks
from nas.config.request import SearchRequest
from nas.errors import SearchFailed
from nas.ranks import ALONE, PeerLost, Ranks
from nas.retrain import Retraining
from nas.search import Search
from nas.steps import StepRecord
from tests import tiny
from tests.several import made, several, trained

METHOD: dict[str, Any] = {"warmup_share": 0.25, "settle_share": 0.2, "alpha_share": 0.4, "alpha_lr": 0.2, "lr": 8e-3}
REQUESTS: dict[str, dict[str, Any]] = {
    "soft": {"method": {"alpha_estimator": "soft"}},
    "single path": {"method": {"alpha_estimator": "single_path"}},
    "two paths, a budget and the parsimony pass": {
        "method": {"alpha_estimator": "two_path", "prune_steps": 2, "prune_windows": 8},
        "budget": {"latency": {"ratio_to_parent": 0.7}},
    },
    "straight through, memory and dropout": tiny.RECURRENT,
    "an adaptive head": {
        "space": {
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": ["attention", "ffn", "identity"],
            "backbone": {"cutoffs": [100, 118]},
        },
    },
}  # fmt: skip


def request(name: str, **method: Any) -> SearchRequest:
    given = REQUESTS[name]
    return tiny.request(**{**given, "method": {**METHOD, **given.get("method", {}), **method}})


def read(path: Path) -> dict[str, Tensor]:
    return checkpoint.read(path)[0]


def assert_same_bits(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    assert [name for name in found if not torch.equal(found[name], wanted[name])] == []


def timeless(records: list[StepRecord]) -> list[StepRecord]:
    return [replace(record, tokens_per_s=None) for record in records]


def last_step(records: list[StepRecord]) -> str:
    return f"step-{records[-1].step}"


@pytest.mark.parametrize("name", REQUESTS)
def test_two_ranks_do_what_one_does_in_two_passes_to_the_bit(name: str, tmp_path: Path) -> None:
    """Gradients of two passes are added once, wherever they were taken: no bit may differ, nor in what is reported."""
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    both = several(2, tmp_path, trained, request(name), tmp_path / "two")
    alone = trained(request(name, micro_batch=2), tmp_path / "one")
    assert timeless(both[0]) == timeless(both[1]) == timeless(alone)
    assert_same_bits(read(tmp_path / "two" / last_step(alone)), read(tmp_path / "one" / last_step(alone)))


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_agree_in_every_bit_and_with_a_whole_batch_to_rounding(world: int, tmp_path: Path) -> None:
    """Of four rows three ranks have one, one and two. Adam makes roundings of tiny gradients larger: hence 1e-3."""
    (tmp_path / "several").mkdir()
    (tmp_path / "one").mkdir()
    wanted = request("single path", n_steps=6)
    several(world, tmp_path, trained, wanted, tmp_path / "several")
    trained(wanted, tmp_path / "one")
    held = [read(tmp_path / "several" / f"rank-{rank}") for rank in range(world)]
    for each in held[1:]:
        assert_same_bits(each, held[0])
    alone = read(tmp_path / "one" / "rank-0")
    weights = {name for name in alone if name.startswith(("supernet.", "alphas.")) and name.count(".") > 0}
    torch.testing.assert_close(
        {name: held[0][name] for name in weights}, {name: alone[name] for name in weights}, atol=1e-3, rtol=1e-3
    )
    assert not torch.equal(held[0]["alphas.values"], torch.zeros_like(held[0]["alphas.values"]))


def test_a_resumed_search_on_two_ranks_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    """Memory, which lives with the rank that has the rows, is saved whole; so one rank can go on as well."""
    for name in ("whole", "again", "alone"):
        (tmp_path / name).mkdir()
    wanted = request("straight through, memory and dropout", n_steps=9)
    (whole, _) = several(2, tmp_path, trained, wanted, tmp_path / "whole")
    middle = tmp_path / "whole" / "step-4"
    (again, _) = several(2, tmp_path, trained, wanted, tmp_path / "again", resume=middle)
    alone = trained(wanted.model_copy(update={"method": wanted.method.model_copy(update={"micro_batch": 2})}),
                    tmp_path / "alone", resume=middle)  # fmt: skip
    later = [record for record in timeless(whole) if record.step > 4]
    assert timeless(again) == timeless(alone) == later
    for name in ("again", "alone"):
        assert_same_bits(read(tmp_path / name / "step-9"), read(tmp_path / "whole" / "step-9"))
    memory = [key for key in read(middle) if ".memory." in key]
    assert memory
    assert {len(read(middle)[key]) for key in memory} == {4}
    assert {len(read(tmp_path / "whole" / "rank-1")[key]) for key in memory} == {2}


def test_a_retraining_on_two_ranks_ends_as_on_one(tmp_path: Path) -> None:
    (tmp_path / "two").mkdir()
    (tmp_path / "one").mkdir()
    labels = ("attention", "ffn")
    wanted, passes = (request("straight through, memory and dropout", micro_batch=size) for size in (None, 2))
    both = several(2, tmp_path, trained, wanted, tmp_path / "two", labels)
    alone = trained(passes, tmp_path / "one", labels)
    assert timeless(both[0]) == timeless(both[1]) == timeless(alone)
    assert_same_bits(read(tmp_path / "two" / "step-6"), read(tmp_path / "one" / "step-6"))
    results = [checkpoint.read_state(tmp_path / name / "step-6")["result"] for name in ("two", "one")]
    assert results[0]["test_nats"] == results[1]["test_nats"]
    assert results[0]["lengths"] == results[1]["lengths"]


def gradients_of_one_each() -> tuple[list[float | None], float]:
    """Each rank has a gradient of its own, both of a third, none of a fourth; and what the first rank says."""
    rank = ranks.now().rank
    parameters = [nn.Parameter(torch.ones(2, 2)) for _ in range(4)]
    for number in (rank, 2):
        parameters[number].grad = torch.full((2, 2), 1.0 + rank)
    ranks.add_up_gradients(parameters)
    found = [None if each.grad is None else float(each.grad.mean()) for each in parameters]
    return found, ranks.told_by_first(7 + rank)


def test_a_gradient_that_one_rank_has_all_have_afterwards(tmp_path: Path) -> None:
    assert several(2, tmp_path, gradients_of_one_each) == [([1.0, 2.0, 3.0, None], 7)] * 2


def sums_of_types(large: int) -> list[tuple[torch.dtype, float]]:
    """More than one bucket, and neighbours of other types."""
    tensors = [
        torch.ones(large), torch.ones(2, dtype=torch.float64), torch.ones(large).t(), torch.ones(3, dtype=torch.int32)
    ]  # fmt: skip
    ranks.add_up(tensors)
    return [(each.dtype, float(each.double().mean())) for each in tensors]


def test_sums_keep_types_and_go_in_buckets(tmp_path: Path) -> None:
    types = [torch.float32, torch.float64, torch.float32, torch.int32]
    assert several(2, tmp_path, sums_of_types, 9 * 2**20) == [[(each, 2.0) for each in types]] * 2


def drifted(folder: Path) -> str:
    """What is said where the second rank's weights are not the first one's."""
    search = made(request("soft"))
    assert isinstance(search, Search)
    if ranks.now().rank == 1:
        with torch.no_grad():
            search.weights["backbone.embedding.weight"][0, 0] += 1
    try:
        search.save(folder / "drifted")
    except SearchFailed as error:
        return str(error)
    return "saved"


def test_ranks_that_have_drifted_apart_are_told(tmp_path: Path) -> None:
    assert several(2, tmp_path, drifted, tmp_path) == [
        "saved",
        "rank 1 of 2 has drifted from the first: 'supernet.backbone.embedding.weight' differs, with 0 more; "
        "GPUs of one trial must be alike, or take one (resources.gpus)",
    ]


def late(folder: Path) -> list[tuple[int, bool]]:
    """Steps of a retraining of which the second rank alone has no time, and then the first."""
    found = []
    for rank in (1, 0):
        work = made(request("soft"), ("attention", "ffn"))
        assert isinstance(work, Retraining)
        work.seconds = 1e9 if ranks.now().rank == rank else 0.0
        found += [(record.step, record.last) for record in work.run()][-1:]
    return found


def test_the_first_rank_s_clock_is_everyone_s(tmp_path: Path) -> None:
    assert several(2, tmp_path, late, tmp_path) == [[(6, True), (1, True)]] * 2


def left_alone() -> str:
    """What the first rank finds where the second has gone."""
    ranks.add_up([torch.ones(2)])  # both have met: else the second may go while the first is still being joined
    if ranks.now().rank == 1:
        return "gone"
    try:
        ranks.add_up([torch.ones(2)])
    except PeerLost:
        return "lost"
    return "added up"


def test_a_rank_that_is_left_alone_is_told_so(tmp_path: Path) -> None:
    assert several(2, tmp_path, left_alone) == ["lost", "gone"]


def test_rows_are_shared_out_evenly_and_in_order() -> None:
    assert Ranks(0, 3).blocks(7) == [slice(0, 2), slice(2, 4), slice(4, 7)]
    assert Ranks(2, 3).own(7) == slice(4, 7)
    assert ALONE.blocks(7) == [slice(0, 7)]


def test_one_rank_asks_nobody() -> None:
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.ones(2)
    ranks.add_up_gradients([parameter])
    ranks.add_up([parameter.grad])
    assert torch.equal(parameter.grad, torch.ones(2))
    rows = torch.ones(2, 3)
    assert ranks.gathered(rows, 2) is rows
    assert ranks.told_by_first(5) == 5
    ranks.check_alike({"nothing": rows})
    assert ranks.now() == ALONE
