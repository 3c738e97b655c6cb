"""Reference lines of the synthetic tasks: as docs/tasks.md states them, and as they must be by the rules."""

from __future__ import annotations

import pytest
import torch

from bench import tasks
from nas import catalog
from nas.data.objectives import Batch
from nas.heads import IGNORE
from nas.specs.tasks import mechanistic

# Accuracy of each reader; as a fraction where the rule tells it. The majority is picked on the examples it is scored
# on, so it lies a little above one in n_classes.
STATED = {
    "in-context-recall": {"majority": 1 / 8, "latest value": 0.248},
    "noisy-recall": {"majority": 1 / 8, "latest value": 0.252},
    "fuzzy-recall": {"majority": 1 / 8, "what followed the same token": 0.561},
    "selective-copying": {"majority": 1 / 14, "last symbol": 1 / 16 + 15 / 16 / 14},
    "compression": {"majority": 1 / 15},
    "memorisation": {"majority": 1 / 128},
    "sorting": {"majority": 1 / 32, "place alone": 0.281, "latest symbol again": 0.566},
}


def test_every_task_has_lines() -> None:
    assert set(tasks.READERS) == set(STATED) == {spec.name for spec in mechanistic.SPECS}


@pytest.mark.parametrize("name", STATED)
def test_lines_are_the_stated_ones(name: str) -> None:
    found = tasks.reference_lines(name, 1000, seed=1)
    assert found.keys() == STATED[name].keys()
    for reader, (share, error) in found.items():
        # Four standard errors, half a unit of the last digit stated, and what picking the majority adds.
        assert share == pytest.approx(STATED[name][reader], abs=4 * error + 0.0005 + 0.001), reader
        assert share < catalog.TASKS[name].best[0]


def test_readers_answer_what_they_say() -> None:
    recall = tasks.task_of("in-context-recall")  # keys 0 to 7, values 8 to 15
    tokens = torch.tensor([[0, 9, 1, 12, 0, 9, 1, 12]])
    assert tasks.latest_value(Batch(tokens, tokens), recall).tolist() == [[0, 1, 1, 4, 4, 1, 1, 4]]

    fuzzy = tasks.task_of("fuzzy-recall")  # tokens of keys 0 to 6, of values 7 to 14
    tokens = torch.tensor([[3, 5, 8, 5, 9, 3, 5, 8]])
    answers = tasks.after_the_same_token(Batch(tokens, tokens), fuzzy)
    assert answers[0, [3, 6]].tolist() == [8 - 7, 9 - 7]

    sorting = tasks.task_of("sorting")  # the mark is 32
    tokens, targets = torch.tensor([[4, 2, 32, 2], [9, 2, 32, 2]]), torch.tensor([[0, 0, 2, 4], [0, 0, 2, 9]])
    targets[:, :2] = IGNORE
    assert tasks.latest_symbol(Batch(tokens, targets), sorting).tolist() == [[4, 2, 2, 2], [9, 2, 2, 2]]
    assert tasks.by_rank(Batch(tokens, targets), sorting)[0, 2:].tolist() == [2, 4]
    assert tasks.majority(Batch(tokens, targets), sorting).tolist() == [[2] * 4] * 2


def test_the_bench_of_tasks_runs(capsys: pytest.CaptureFixture[str]) -> None:
    tasks.main(["--n", "50", "--seconds", "0.01"])
    printed = capsys.readouterr().out
    for name, readers in STATED.items():
        assert f"{name}, T " in printed
        assert all(reader in printed for reader in readers)
