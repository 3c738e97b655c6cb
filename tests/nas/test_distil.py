"""Distillation: the formula, what it does to a training, and that it can be stopped and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.retrain import Distil
from nas.data.objectives import Batch
from nas.distil import divergence, taught
from nas.heads import IGNORE
from nas.network import Network
from nas.retrain import Retraining, build
from tests import tiny


def network(request: SearchRequest, labels: tuple[str, ...], seed: int) -> Network:
    torch.manual_seed(seed)
    return build(request.network_config(labels, request.task.vocab_size)).eval()


def test_the_divergence_is_none_from_itself_and_keeps_its_gradients_size_as_the_temperature_grows() -> None:
    chance = torch.Generator().manual_seed(0)
    student, teacher = (torch.randn(5, 7, generator=chance, dtype=torch.float64) for _ in range(2))
    torch.testing.assert_close(divergence(teacher, teacher, 3.0), torch.zeros(5, dtype=torch.float64))
    expected = F.kl_div(student.log_softmax(-1), teacher.softmax(-1), reduction="none").sum(-1)
    torch.testing.assert_close(divergence(student, teacher, 1.0), expected)
    student.requires_grad_()
    (found,) = torch.autograd.grad(divergence(student, teacher, 1e4).sum(), student)
    # Hinton et al. 2015, equation 4: at high temperature it is matching logits, (z - v) / V, of zero mean.
    matching = (student - student.mean(-1, keepdim=True)) - (teacher - teacher.mean(-1, keepdim=True))
    torch.testing.assert_close(found, matching.detach() / 7, atol=1e-3, rtol=0)


@pytest.mark.parametrize("kind", [{}, tiny.RECURRENT, tiny.MASKED], ids=["plain", "memory", "masked"])
def test_the_loss_is_a_mixture_where_there_is_a_target_and_nothing_elsewhere(kind: dict[str, Any]) -> None:
    request = tiny.request(**kind)
    labels = ("ffn", "ffn")
    student, teacher = network(request, labels, 0), network(request, labels, 1)
    chance = torch.Generator().manual_seed(2)
    tokens = torch.randint(request.task.vocab_size, (3, 16), generator=chance)
    targets = tokens.roll(1, 0).masked_fill(torch.rand(3, 16, generator=chance) < 0.3, IGNORE)
    nats, memory = taught(student, teacher, Distil(weight=0.25, temperature=2.0))(Batch(tokens, targets), None)
    logits = [each.backbone.head(each.body(tokens)[0]) for each in (student, teacher)]
    plain = F.cross_entropy(logits[0].flatten(0, 1), targets.flatten(), ignore_index=IGNORE, reduction="none")
    lesson = divergence(logits[0], logits[1], 2.0).masked_fill(targets == IGNORE, 0.0)
    torch.testing.assert_close(nats, 0.75 * plain.view_as(lesson) + 0.25 * lesson, atol=1e-5, rtol=1e-5)
    assert (memory is None) == (not request.space.memory_length)
    if memory is not None:
        assert len(memory) == 2 * len(labels)  # the teacher's behind the student's
        again, _ = taught(student, teacher, Distil())(Batch(tokens, targets), memory)
        assert torch.isfinite(again).all()


@pytest.mark.parametrize("kind", [{}, tiny.RECURRENT], ids=["plain", "memory"])
def test_a_pupil_comes_nearer_to_its_teacher_and_a_resumed_one_has_the_same_bits(
    kind: dict[str, Any], tmp_path: Path
) -> None:
    retrain = {"n_steps": 40, "n_seeds": 1, "test_windows": 8, "distil": {"weight": 1.0}}
    request = tiny.request(**kind | {"retrain": retrain})
    architecture = Architecture(("attention", "ffn"), request.space.candidates)
    parts = tiny.parts(request)
    teacher = network(request, architecture.labels, 7)
    alone = Retraining(request, architecture, parts=parts)
    pupil = Retraining(request, architecture, parts=parts, teacher=teacher)
    path = tmp_path / "half.safetensors"
    for record in pupil.run():
        if record.step == 8:
            pupil.save(path)
    for _ in alone.run():
        pass
    tokens = alone.test.batch.tokens

    @torch.no_grad()
    def distance(run: Retraining) -> float:
        logits = [each.backbone.head(each.body(tokens)[0]) for each in (run.network.eval(), teacher)]
        return float(divergence(logits[0], logits[1], 1.0).mean())

    assert distance(pupil) < distance(alone)
    resumed = Retraining(request, architecture, parts=parts, teacher=teacher)
    resumed.load(path)
    for _ in resumed.run():
        pass
    assert all(torch.equal(parameter, resumed.weights[name]) for name, parameter in pupil.weights.items())


@pytest.mark.parametrize("pooling", ["mean", "none"])
def test_classifiers_learn_from_a_teacher_too(pooling: str) -> None:
    request = tiny.request(
        space={
            "n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 16, "causal": False, "positions": "none",
            "backbone": {"pooling": pooling, "n_classes": 3},
        },
        task={"objective": "token_classification" if pooling == "none" else "sequence_classification"},
    )  # fmt: skip
    student, teacher = (network(request, ("attention", "ffn"), seed) for seed in (0, 1))
    tokens = torch.randint(256, (4, 16))
    targets = torch.randint(3, (4, 16) if pooling == "none" else (4, 1))
    targets[1] = IGNORE
    nats, _ = taught(student, teacher, Distil(weight=1.0))(Batch(tokens, targets), None)
    assert nats.shape == targets.shape
    assert (nats[targets == IGNORE] == 0).all()
    assert (nats[targets != IGNORE] > 0).all()
