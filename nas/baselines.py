"""The stacks that a derived one is held against. Neither torch nor numpy here; random ones: nas.random_stacks. L
slots, K candidates.

interleaved: (attention, ffn)^(L/2), the parent of the PAR search. sandwich: attention^k (attention ffn)^(n-k) ffn^k
of n = L/2 pairs (Press et al. 2020, arXiv:1911.03864, section 4; their best k was 6 of 16). par: one attention block
in five, in the first two thirds (par-search.md section 5.3).
About a third of random orders beat the interleaved one there, so a parent alone is a weak baseline.
"""

from __future__ import annotations

from nas.architecture import Architecture, interleaved
from nas.config.retrain import PAR_RATIO
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.placement import attention_positions


def baseline(name: str, space: SearchSpace) -> Architecture:
    """A baseline by its name in `retrain.baselines`, all but `random`.

    Raises:
        InvalidInput: the space lacks a family that it needs.
    """
    if name == "interleaved":
        return interleaved(space)
    if name == "present":
        assert space.present is not None  # or the request is refused
        return Architecture(space.present, space.candidates)
    families = _families(name, space.n_slots)
    return Architecture(tuple(_first(space, family, name) for family in families), space.candidates)


def _families(name: str, n_slots: int) -> list[str]:
    if name == "sandwich":
        return sandwich(n_slots)
    if name == "par":
        attention = attention_positions(n_slots, PAR_RATIO)
        return ["attention" if slot in attention else "ffn" for slot in range(n_slots)]
    return {"all-ffn": ["ffn"], "all-attention": ["attention"]}[name] * n_slots


def sandwich(n_slots: int) -> list[str]:
    """The family of each slot: k attention blocks, pairs in turn, k ffn blocks; k is three eighths of the pairs.

    Args:
        n_slots: L, even and at least 4, or it is the interleaved parent.
    """
    n_pairs = n_slots // 2
    k = max(1, round(3 * n_pairs / 8))
    return ["attention"] * k + ["attention", "ffn"] * (n_pairs - k) + ["ffn"] * k


def _first(space: SearchSpace, family: str, name: str) -> str:
    for candidate in space.candidates:
        if candidate.family == family:
            return candidate.label
    raise InvalidInput(f"the {name} baseline needs a candidate of family {family!r}; the space has none")
