"""A starting layout: a request built around the model there is. No torch here.

A layout is a string with one letter for each slot, as architectures are written: `AFA.FS`. Behind a letter, `!` keeps
the slot as it is; `?` is a slot of which nothing is said. Where letters are shared by several candidates, labels stand
in their place, joined by commas: `attention!,ffn-2,?`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from nas import presets
from nas.architecture import Architecture
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace, SlotChoice
from nas.errors import InvalidInput

_FREE, _FIXED = "?", "!"


def around(
    request: Mapping[str, Any], layout: str | Architecture | None = None, forbid: Sequence[str] = ()
) -> dict[str, Any]:
    """The request with its starting layout, which also says how many slots there are.

    Where every slot names what stands there, that model is trained beside as a baseline, unless the request itself says
    which baselines it wants.

    Args:
        request: JSON of a request; its preset need not be put in.
        layout: the present model; None where nothing is said of it.
        forbid: LABEL or LABEL@SLOTS, such as `sgu`, `S@1` or `sgu@1,5-8`; slots count from 1.

    Raises:
        InvalidInput: the layout does not fit the request's candidates or slots, or something is no such text.
        ValidationError: the request itself makes no sense.
    """
    if layout is None and not forbid:
        return dict(request)
    read_so_far = SearchRequest.model_validate(request if layout is None else _without_present(request))
    space = read_so_far.space
    if layout is None:
        choices = list(space.layout) or [SlotChoice() for _ in range(space.n_slots)]
    else:
        choices = read(layout, space) if isinstance(layout, str) else of_architecture(layout, space)
    stated = request.get("space", {}).get("n_slots")
    if stated is not None and stated != len(choices):
        raise InvalidInput(f"the layout has {len(choices)} slots and space.n_slots is {stated}; leave n_slots out")
    choices = without(choices, forbid, space)
    below = {} if "space" in presets.expand(request) else {"space": presets.PRESETS[presets.DEFAULT]["space"]}
    slots = [choice.model_dump(mode="json") for choice in choices]
    built = presets.merge(below, presets.merge(request, {"space": {"n_slots": len(choices), "layout": slots}}))
    if all(choice.present for choice in choices) and "baselines" not in request.get("retrain", {}):
        built = presets.merge(built, {"retrain": {"baselines": [*read_so_far.retrain.baselines, "present"]}})
    return built


def read(text: str, space: SearchSpace) -> list[SlotChoice]:
    """What a layout says of each slot.

    Raises:
        InvalidInput: it is empty, or names no candidate.
    """
    places = text.split(",") if "," in text else re.findall(rf".\{_FIXED}?", text, re.DOTALL)
    if not places:
        raise InvalidInput("the layout is empty; it has one letter for each slot, such as AFAF")
    if re.search(rf"(^|[{_FREE}{_FIXED},])\s*{_FIXED}", text):
        raise InvalidInput(f"layout {text!r} has a ! that follows no candidate; one ! behind a letter keeps its slot")
    return [_choice(place, space) for place in places]


def of_architecture(architecture: Architecture, space: SearchSpace) -> list[SlotChoice]:
    """What stands in each slot of an architecture; a label must mean the same block in both.

    Raises:
        InvalidInput: the space lacks one of its blocks, or has other options for it.
    """
    known = {candidate.label: candidate for candidate in architecture.candidates}
    for label in sorted(set(architecture.labels)):
        theirs, ours = known[label], space.candidate(label)
        if (theirs.block, theirs.options) != (ours.block, ours.options):
            raise InvalidInput(
                f"candidate {label!r} of the architecture is {theirs.block} with {theirs.options}, and of the space "
                f"{ours.block} with {ours.options}; give the space the same candidate"
            )
    return [SlotChoice(present=label) for label in architecture.labels]


def without(choices: Sequence[SlotChoice], forbid: Sequence[str], space: SearchSpace) -> list[SlotChoice]:
    """The choices with more forbidden.

    Raises:
        InvalidInput: it is no LABEL or LABEL@SLOTS, a slot does not exist, or a fixed slot holds what is forbidden.
    """
    forbidden: list[list[str]] = [list(choice.forbidden) for choice in choices]
    for text in forbid:
        name, _, slots = text.partition("@")
        label = _label(name, space)
        for slot in _slots(slots, text, len(choices)) if "@" in text else range(len(choices)):
            if choices[slot].fixed and choices[slot].present == label:
                raise InvalidInput(
                    f"{label!r} is forbidden in slot {slot + 1}, which is fixed to it; forbid it elsewhere"
                )
            forbidden[slot] = list(dict.fromkeys([*forbidden[slot], label]))
    return [
        choice.model_copy(update={"forbidden": tuple(labels)})
        for choice, labels in zip(choices, forbidden, strict=True)
    ]


def _without_present(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request without baseline `present`, which no request may name before its layout is there."""
    retrain = request.get("retrain")
    if not isinstance(retrain, Mapping) or not isinstance(retrain.get("baselines"), list):
        return dict(request)
    others = [each for each in retrain["baselines"] if each != "present"]
    return {**request, "retrain": {**retrain, "baselines": others}}


def _choice(place: str, space: SearchSpace) -> SlotChoice:
    name, fixed = place.removesuffix(_FIXED).strip(), place.endswith(_FIXED)
    if name == _FREE and not fixed:
        return SlotChoice()
    return SlotChoice(present=_label(name, space), fixed=fixed)


def _label(name: str, space: SearchSpace) -> str:
    if name in space.labels:
        return name
    found = [candidate.label for candidate in space.candidates if candidate.letter == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidInput(f"letter {name!r} stands for {' and '.join(found)}; write labels, joined by commas")
    known = ", ".join(f"{candidate.letter} {candidate.label}" for candidate in space.candidates)
    raise InvalidInput(f"{name!r} names no candidate; the space has {known}, and ? leaves a slot free")


def _slots(text: str, whole: str, n_slots: int) -> list[int]:
    """Of `1,5-8`, from 0."""
    slots: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{1,4})(?:-(\d{1,4}))?", part)
        if match is None:
            raise InvalidInput(f"{whole!r} is no LABEL or LABEL@SLOTS, such as sgu@1,5-8")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 1 <= first <= last <= n_slots:
            raise InvalidInput(f"{whole!r} names slots {part}; the layout has slots 1 to {n_slots}")
        slots += range(first - 1, last)
    return slots
