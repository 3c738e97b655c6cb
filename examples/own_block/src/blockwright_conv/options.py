"""The options of the block. An exported model.py carries this file, so it needs nothing but Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ConvolutionOptions:
    """Depth-wise convolution.

    Args:
        kernel: tokens that an output sees; in a causal block its own and those before it, else half on each side.
    """

    kernel: int = 4

    def __post_init__(self) -> None:
        if not 1 <= self.kernel <= 256:
            raise ValueError(f"kernel is {self.kernel}; it must be between 1 and 256")
