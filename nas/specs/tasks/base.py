"""What a synthetic task must tell: its options, its sizes, and the best score there is. No torch.

Examples are drawn on the fly, T tokens each, by the class at `class_path`: `Task(options, length).draw(n, generator)`
returns a `nas.data.objectives.Batch`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from nas.options import check_ranges


class RangedOptions:
    """Base of dataclasses of options whose numbers have ranges."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True)
class TaskSpec:
    """A synthetic task.

    Args:
        name: what requests call it, as a dataset.
        description: one line.
        objective: what a request with it must have.
        options: a frozen dataclass, every field `ranged` or a Literal with a default, and with
            `check(length: int) -> None` (raises ValueError: what, the value, what would be right),
            `vocab_size: int` and `n_classes: int` as properties (token ids; distinct answers).
        best: highest accuracy there is, for default options, and what makes it so, as one clause.
        class_path: "module:Class" of the generator.
        source: paper or our own, with section.
        version: grows when the same options and seed give other examples; part of the fingerprint.
        causal: what `space.causal` must be; None: either.
        unrolled: whether all answers are read off the last token: `space.backbone.pooling` must be "unroll".
    """

    name: str
    description: str
    objective: Literal["sequence_classification", "token_classification"]
    options: type[Any]
    best: tuple[float, str]
    class_path: str
    source: str
    version: int = 1
    causal: bool | None = True
    unrolled: bool = False
