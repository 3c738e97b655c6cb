"""Parts of a synthetic task: examples drawn on the fly, never the same twice in training, always the same held out.

B batch, T tokens.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from dataclasses import dataclass
from typing import Protocol

from torch import Generator

from nas.config.task import Task
from nas.data.objectives import Batch
from nas.data.parts import Parts

# Seeds of held-out examples are 16 * part + 15. torch keeps 32 bits of a seed, and `nas.training.generator` seeds the
# streams of a trial by 16 * seed + stream with streams below 10, so no training draws what is held out.
_STREAMS, _HELD_OUT = 16, 15
_WEIGHTS, _ALPHA, _VALIDATION, _TEST = range(4)


class Draws(Protocol):
    """What stands at the class path of a `TaskSpec`, made with the task's options and its length T."""

    def draw(self, n: int, generator: Generator) -> Batch:
        """n independent examples of T tokens, on the CPU; `generator` is the only source of chance."""


@dataclass(frozen=True, eq=False)
class Generated:
    """A part of a synthetic task, as `nas.data.parts.Part`.

    Args:
        source: of its examples; made for the task's length.
        number: of the part; parts of other numbers hold out other examples.
    """

    source: Draws
    number: int

    def batch(self, task: Task, n: int, generator: Generator) -> Batch:
        """Fresh examples."""
        return self.source.draw(n, generator)

    def held_out(self, task: Task, n: int) -> Batch:
        """n examples, the same in every process for the same n."""
        return self.source.draw(n, Generator().manual_seed(_STREAMS * self.number + _HELD_OUT))


def synthetic_source(task: Task) -> Draws:
    """The generator of a synthetic task, for its options and length."""
    spec = task.synthetic
    assert spec is not None
    module, name = spec.class_path.split(":")
    made: Draws = getattr(importlib.import_module(module), name)(task.synthetic_options(), task.train_length)
    return made


def synthetic_parts(task: Task) -> Parts:
    """The parts of a synthetic task.

    Args:
        task: whose dataset is a synthetic task.
    """
    source = synthetic_source(task)
    weights, alpha, validation, test = (Generated(source, number) for number in (_WEIGHTS, _ALPHA, _VALIDATION, _TEST))
    return Parts(weights=weights, alpha=alpha, validation=validation, test=test, training=weights)


def synthetic_fingerprint(task: Task) -> str:
    """sha256 of all that decides which examples there are: name, version, options and length; 64 hexadecimal digits.

    Args:
        task: whose dataset is a synthetic task.
    """
    spec = task.synthetic
    assert spec is not None
    said = {
        "task": spec.name,
        "version": spec.version,
        "options": task.dataset_options,
        "length": task.train_length,
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
