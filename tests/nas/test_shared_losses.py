"""Paths are scored by the supernet's weights on alpha's part, and scoring leaves the search as it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nas.architecture import Architecture
from nas.config.space import Candidate
from nas.data.streams import held_out
from nas.errors import InvalidInput
from nas.search import Search
from nas.shared_losses import path_of, shared_losses
from tests import tiny

CANDIDATES = ["attention", "ffn", "identity"]


def make(**overrides: Any) -> Search:
    space = {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": CANDIDATES}
    request = tiny.request(**{"space": space, **overrides})
    return Search(request, parts=tiny.parts(request), table=tiny.table(request.space))


def test_a_path_has_the_losses_of_its_forward_pass_on_alphas_windows() -> None:
    search = make(method={"prune_windows": 6})
    for _ in search.run():
        pass
    paths = [[0, 1], [2, 2], [1, 0]]
    found = shared_losses(search, paths)
    assert found.shape == (3, 6)
    windows = held_out(search.streams["alpha_data"].part, 6, search.request, "cpu").batch
    search.supernet.eval()
    with torch.no_grad():
        hidden, _ = search.supernet.forward_path(windows.tokens, [1, 0])
        nats = search.supernet.backbone.nats(hidden, windows.targets)
    torch.testing.assert_close(found[2], nats.mean(dim=1))
    assert torch.equal(shared_losses(search, [[1, 0]], n_windows=6)[0], found[2])  # whoever else is scored
    assert shared_losses(search, [[1, 0]], n_windows=3).shape == (1, 3)


def test_scoring_in_between_changes_nothing_of_a_search() -> None:
    plain, scored = make(), make()
    wanted = [record.val_loss_soft for record in plain.run()]
    seen = []
    for record in scored.run():
        seen.append(record.val_loss_soft)
        shared_losses(scored, [[0, 0], [1, 1]])
        assert scored.supernet.training
    assert seen == wanted
    assert all(torch.equal(one, scored.weights[name]) for name, one in plain.weights.items())


def test_no_paths_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no paths to score; give at least one"):
        shared_losses(make(), [])


def test_an_architecture_is_a_path_by_what_its_labels_mean() -> None:
    space = make().space
    assert path_of(Architecture(("ffn", "identity"), space.candidates[::-1]), space) == [1, 2]


@pytest.mark.parametrize(
    ("labels", "candidates", "layout", "message"),
    [
        (["ffn"], CANDIDATES, [], "architecture F has 1 slots; the space 2"),
        (["ffn", "sgu"], [*CANDIDATES, "sgu"], [], "slot 2 of FS holds 'sgu', which is not a candidate of the space"),
        (
            ["ffn", "ffn"],
            [{"label": "ffn", "block": "ffn", "options": {"ratio": 2}}],
            [],
            "slot 1 of FF holds 'ffn', which is not a candidate",
        ),
        (
            ["ffn", "attention"],
            CANDIDATES,
            [{}, {"forbidden": ["attention"]}],
            "slot 2 of FA holds 'attention', which the space's layout forbids there",
        ),
    ],
    ids=["slots", "label", "options", "forbidden"],
)
def test_an_architecture_of_another_space_is_refused(
    labels: list[str], candidates: list[Any], layout: list[Any], message: str
) -> None:
    space = make(
        space={"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "candidates": CANDIDATES, "layout": layout}
    ).space
    architecture = Architecture(tuple(labels), tuple(Candidate.model_validate(each) for each in candidates))
    with pytest.raises(InvalidInput, match=message):
        path_of(architecture, space)
