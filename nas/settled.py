"""What a task leaves no choice in, filled in where a request does not say it: the user need not know the one answer.

It is done before anything is checked, as with presets, so that what is stored and run says it all. What the request
does say stands, and is refused where it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nas import catalog, presets
from nas.presets import merge


def settle(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request with its task's only answers: the objective of a synthetic task, who sees whom, what is pooled.

    Args:
        request: JSON of a request, its preset expanded; parts that are no objects come back as they are.
    """
    task, space = request.get("task", {}), request.get("space", presets.PRESETS[presets.DEFAULT]["space"])
    if not isinstance(task, Mapping) or not isinstance(space, Mapping):
        return dict(request)
    name = task.get("dataset")
    spec = catalog.TASKS.get(name) if isinstance(name, str) else None
    objective = task.get("objective", spec.objective if spec else "causal_lm")
    causal = spec.causal if spec else False if objective == "masked_lm" else None
    sees = space.get("causal", True if causal is None else causal)
    answers: dict[str, Any] = {}
    if spec is not None:
        answers["task"] = {"objective": spec.objective}
    settled: dict[str, Any] = {} if causal is None else {"causal": causal}
    pooling = {"token_classification": "none", "sequence_classification": "mean" if sees is True else "first"}
    if spec is not None and spec.unrolled:
        settled["backbone"] = {"pooling": "unroll"}
    elif isinstance(objective, str) and objective in pooling:
        settled["backbone"] = {"pooling": pooling[objective]}
    if settled:  # a request without a space means that of a preset, not one of defaults
        answers["space"] = (
            merge(presets.PRESETS[presets.DEFAULT]["space"], settled) if "space" not in request else settled
        )
    return merge(answers, request)
