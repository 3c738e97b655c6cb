"""The options of the block. An exported model.py carries this file, so it needs nothing but Python and nas.options."""

from __future__ import annotations

from dataclasses import dataclass

from nas.options import check_ranges, ranged


@dataclass(frozen=True)
class ConvolutionOptions:
    """Depth-wise convolution.

    Args:
        kernel: tokens that an output sees; in a causal block its own and those before it, else half on each side.
    """

    kernel: int = ranged(4, 1, 256)

    def __post_init__(self) -> None:
        check_ranges(self)
