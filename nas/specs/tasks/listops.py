"""ListOps of the Long Range Arena, and a short variant. No torch.

Nested MIN, MAX, MED and SM over digits, written in prefix form; the class is what the whole comes to. Tay et al. 2020
(arXiv:2011.04006), section 2.2.1, by the repaired rules of its released code: a node is an operator with probability
1/4, else a digit; at `max_depth` all are digits; MED of an even number is the mean of the middle two, truncated; SM is
the sum modulo 10; each operator and each closing bracket is one token.

At LRA's lengths trained attention scores what a look at the first token scores (36 to 37%), so the full task tells no
two of them apart; short expressions leave room for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from nas.options import ranged
from nas.specs.tasks.base import RangedOptions, TaskSpec

PADDING, DIGIT, OPERATOR, CLOSE, VOCAB_SIZE = 0, 1, 11, 15, 16  # ids; those of 0 to 9 and of the operators begin there
OPERATORS = ("MIN", "MAX", "MED", "SM")  # in the order of their ids
N_CLASSES = 10


@dataclass(frozen=True)
class ListOpsOptions(RangedOptions):
    """What is drawn, and which lengths are kept.

    Args:
        max_depth: of nodes, the whole being 1, so that at most max_depth - 1 operators are nested.
        max_args: arguments of an operator are 2 to so many.
        longer_than: tokens, strictly.
        shorter_than: tokens, strictly.
    """

    max_depth: int = ranged(10, 2, 20)
    max_args: int = ranged(10, 2, 20)
    longer_than: int = ranged(500, 1, 65534)
    shorter_than: int = ranged(2000, 3, 65536)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shorter_than < self.longer_than + 2:
            raise ValueError(
                f"shorter_than is {self.shorter_than} and longer_than {self.longer_than}; a length must lie between"
            )
        longest = 1
        for _ in range(self.max_depth - 1):
            longest = 2 + self.max_args * longest
        if longest <= self.longer_than:
            raise ValueError(
                f"longer_than is {self.longer_than}; with max_depth {self.max_depth} and max_args {self.max_args} no "
                f"expression has more than {longest} tokens"
            )

    @property
    def vocab_size(self) -> int:
        """Padding, digits, operators, the closing bracket."""
        return VOCAB_SIZE

    @property
    def n_classes(self) -> int:
        return N_CLASSES

    def check(self, length: int) -> None:
        """Raises: ValueError: the longest expressions would be cut."""
        if length < self.shorter_than - 1:
            raise ValueError(
                f"train_length is {length}; it must be at least {self.shorter_than - 1}, the longest that shorter_than "
                "keeps"
            )


@dataclass(frozen=True)
class ShortListOpsOptions(ListOpsOptions):
    """The same of short expressions."""

    max_depth: int = ranged(5, 2, 20)
    max_args: int = ranged(5, 2, 20)
    longer_than: int = ranged(10, 1, 65534)
    shorter_than: int = ranged(60, 3, 65536)


_READ = (1.0, "the expression tells its value")

SPECS: tuple[TaskSpec, ...] = (
    TaskSpec(
        name="listops",
        description="the value of nested operations on digits, 501 to 1,999 tokens: Long Range Arena",
        objective="sequence_classification",
        options=ListOpsOptions,
        best=_READ,
        class_path="nas.data.synthetic.listops:ListOps",
        source="Long Range Arena (arXiv:2011.04006), section 2.2.1, with the repairs of its released code",
        causal=None,
    ),
    TaskSpec(
        name="listops-short",
        description="the value of nested operations on digits, 11 to 59 tokens",
        objective="sequence_classification",
        options=ShortListOpsOptions,
        best=_READ,
        class_path="nas.data.synthetic.listops:ListOps",
        source="our own sizes for the rules of Long Range Arena (arXiv:2011.04006), section 2.2.1",
        causal=None,
    ),
)
