"""One file that holds the whole state of a trial: tensors by name, plus a JSON object in the file's header.

safetensors, never pickle. Written beside, synced, then renamed: a reader sees the old file or the new one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from nas import ranks
from nas.errors import InvalidInput, SearchFailed

CHECKPOINT_FORMAT_VERSION = 4


def write(path: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Save atomically. `state` must be JSON; NaN is refused, since another reader could not parse it.

    The first rank alone writes; all of them see that they hold the same.

    Raises:
        SearchFailed: the file cannot be written, as on a full disk; the one before is still there. Or this rank holds
            other tensors than the first.
    """
    text = json.dumps({"format_version": CHECKPOINT_FORMAT_VERSION, **state}, allow_nan=False)
    ranks.check_alike(tensors)
    if not ranks.now().is_first:
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # Cloned, since safetensors refuses tensors that share storage: slots behind an identity have equal memory.
        cloned = {
            name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
        }
        save_file(cloned, part, {"state": text})
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, SafetensorError) as error:
        raise SearchFailed(
            f"cannot save a checkpoint in {path.parent}: {error}; "
            "make room there, or put it right, and resume the search"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Load what `write` saved.

    Raises:
        InvalidInput: the file is of another format_version.
    """
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()["state"])
        _check_version(state)
        return {name: file.get_tensor(name) for name in file.keys()}, state  # noqa: SIM118 (safe_open is no dict)


def read_state(path: Path) -> dict[str, Any]:
    """The JSON object alone, without loading tensors."""
    with safe_open(path, framework="pt") as file:
        state: dict[str, Any] = json.loads(file.metadata()["state"])
        return state


def optimiser_tensors(
    prefix: str, optimiser: torch.optim.Optimizer, names: dict[str, nn.Parameter]
) -> dict[str, Tensor]:
    """The moments and step counts of an optimiser, by parameter name; parameters never updated have none."""
    tensors = {}
    for name, parameter in names.items():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"{prefix}.{name}.{key}"] = torch.as_tensor(value)
    return tensors


def restore_optimiser(
    prefix: str, optimiser: torch.optim.Optimizer, names: dict[str, nn.Parameter], tensors: dict[str, Tensor]
) -> None:
    """Put back what `optimiser_tensors` took, where each parameter lies: a fused step counts there as well."""
    optimiser.state.clear()
    for name, parameter in names.items():
        start = f"{prefix}.{name}."
        state = {
            key.removeprefix(start): tensors[key].clone()
            for key in tensors
            if key.startswith(start) and "." not in key.removeprefix(start)
        }
        if state:
            optimiser.state[parameter] = {key: value.to(parameter.device) for key, value in state.items()}


def prefixed(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under a prefix, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def read_prefixed(prefix: str, path: Path) -> dict[str, Tensor]:
    """The tensors of a file under a prefix, without it; nothing else is loaded.

    Raises:
        InvalidInput: the file is of another format_version.
    """
    start = f"{prefix}."
    with safe_open(path, framework="pt") as file:
        _check_version(json.loads(file.metadata()["state"]))
        names = [name for name in file.keys() if name.startswith(start)]  # noqa: SIM118 (safe_open is no dict)
        return {name.removeprefix(start): file.get_tensor(name) for name in names}


def _check_version(state: dict[str, Any]) -> None:
    if state["format_version"] != CHECKPOINT_FORMAT_VERSION:
        raise InvalidInput(
            f"checkpoint has format_version {state['format_version']}; this code reads {CHECKPOINT_FORMAT_VERSION}"
            ": go on with the version of Blockwright that saved it, or submit the search again"
        )
