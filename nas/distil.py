"""Learning from a teacher beside the targets: Hinton, Vinyals & Dean 2015 (arXiv:1503.02531), section 2.

loss = (1 - weight) * cross-entropy + weight * T^2 * KL(softmax(teacher / T) || softmax(student / T)), of each scored
position; T^2 keeps the two gradients' sizes alike as T grows. The teacher is in evaluation mode and gets no gradient.
With memory each of the two remembers its own earlier inputs. N scored positions, V vocabulary or classes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from nas.config.retrain import Distil
from nas.data.objectives import Batch
from nas.network import Memory, Network
from nas.training import Forward


def taught(student: Network, teacher: Network, distil: Distil) -> Forward:
    """How a network learns from another one.

    Args:
        student: in training mode.
        teacher: in evaluation mode, on the same device, of the same vocabulary or classes.
        distil: weight and temperature.
    """
    n_slots = len(student.config.slots)

    def forward(batch: Batch, memory: Memory | None) -> tuple[Tensor, Memory | None]:
        own, others = (None, None) if memory is None else (memory[:n_slots], memory[n_slots:])
        hidden, kept = student.body(batch.tokens, own, key_padding=batch.key_padding)
        logits = student.backbone.scored(hidden, batch.targets, batch.key_padding, batch.places)
        with torch.no_grad():
            seen, remembered = teacher.body(batch.tokens, others, key_padding=batch.key_padding)
            lesson = teacher.backbone.scored(seen, batch.targets, batch.key_padding, batch.places)
        targets = batch.targets.flatten()
        loss = (1 - distil.weight) * F.cross_entropy(logits, targets[batch.places], reduction="none")
        loss = loss + distil.weight * divergence(logits, lesson, distil.temperature)
        nats = loss.new_zeros(targets.shape).index_copy(0, batch.places, loss).view_as(batch.targets)
        return nats, None if kept is None or remembered is None else [*kept, *remembered]

    return forward


def divergence(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """(N, V) logits of both -> (N,): T^2 * KL(softmax(teacher / T) || softmax(student / T)), nats."""
    own, others = (F.log_softmax(logits / temperature, dim=-1) for logits in (student, teacher))
    return temperature**2 * (others.exp() * (others - own)).sum(dim=-1)
