"""Writes what a user takes away: a folder, and the same files as one zip, that run without Blockwright."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save
from torch import Tensor

from nas.blocks import block_classes
from nas.config.task import Task
from nas.errors import InvalidInput
from nas.export.readme import readme
from nas.export.standalone import join_sources
from nas.export.vocabulary import Form
from nas.options import NetworkConfig

MANIFEST_FORMAT_VERSION = 1
MASK = 256
BYTE_TOKENIZER = {
    "format_version": 1,
    "type": "bytes",
    "vocab_size": 256,
    "description": "a token is one byte of the UTF-8 text and its id is the byte's value; there are no special tokens",
}
MASKED_BYTE_TOKENIZER = {
    **BYTE_TOKENIZER,
    "vocab_size": MASK + 1,
    "mask_id": MASK,
    "description": "a token is one byte of the UTF-8 text and its id is the byte's value; mask_id is a hidden byte",
}


@dataclass(frozen=True)
class Bundle:
    """What was written: the folder, the zip of the same files, and the zip's sha256."""

    folder: Path
    zip: Path
    sha256: str


def write_bundle(
    folder: Path,
    *,
    state: Mapping[str, Tensor],
    config: NetworkConfig,
    architecture: Mapping[str, Any],
    request: Mapping[str, Any],
    figures: Mapping[str, Any],
    tokenizer: Path | None = None,
    eos_id: int | None = None,
    labels: Sequence[str] | None = None,
) -> Bundle:
    """Write an export to `folder` and to `<folder>.zip`, each appearing whole or not at all.

    The same arguments give the same bytes: the zip has fixed times and a fixed order.

    Args:
        folder: replaced if it exists.
        state: the trained network's state dict.
        config: of that network; an encoder without classes is a masked language model.
        architecture: its JSON, as `Architecture.to_json` gives it.
        request: the search request's JSON; its task tells what the network reads.
        figures: what the README tells of the model: label -> number or short text, in order.
        tokenizer: the tokenizer.json of the encoded data; None where tokens are bytes or given as ids.
        eos_id: what ends a document; None: nothing does. Of bytes it is 0.
        labels: names of the classes, by number; None or empty: they have none.

    Raises:
        InvalidInput: the tokenizer is missing, vocabulary or labels are not as many as the network's, or a block's
            source cannot be joined.
    """
    form = _form(config, Task.model_validate(request["task"]), eos_id, labels)
    text = _text_files(form, config, tokenizer)
    tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in state.items()}
    n_parameters = sum(each.numel() for each in tensors.values())
    files = {
        "README.md": readme(form, config, architecture, request, figures, n_parameters, [*text]),
        "architecture.json": _json(architecture),
        "config.json": _json(asdict(config)),
        "model.py": join_sources(block_classes(slot.block for slot in config.slots)).encode(),
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
        "request.json": _json(request),
        **text,
    }
    files["manifest.json"] = _json(
        {
            "format_version": MANIFEST_FORMAT_VERSION,
            "files": {
                name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                for name, content in files.items()
            },
        }
    )
    _write_folder(folder, files)
    path = folder.with_name(f"{folder.name}.zip")
    _write_zip(path, files)
    return Bundle(folder, path, hashlib.sha256(path.read_bytes()).hexdigest())


def _form(config: NetworkConfig, task: Task, eos_id: int | None, labels: Sequence[str] | None) -> Form:
    n_classes = config.backbone.n_classes
    objective = "causal_lm" if config.shape.causal else "masked_lm"
    if n_classes:
        objective = "token_classification" if config.backbone.pooling == "none" else "sequence_classification"
    kind: str = task.tokenizer.type
    if task.synthetic is not None or kind == "given":
        kind = "ids"
    if kind == "bytes":
        eos_id = 0
    if labels and len(labels) != n_classes:
        raise InvalidInput(f"there are {len(labels)} labels, and the network has {n_classes} classes")
    mask_id = config.vocab_size - 1 if objective == "masked_lm" else None
    return Form(objective, kind, eos_id, mask_id, labels=[*labels] if labels else None)


def _text_files(form: Form, config: NetworkConfig, tokenizer: Path | None) -> dict[str, bytes]:
    """tokenizer.json and text.json, where there is something to say in them."""
    found = {}
    if form.tokenizer == "bytes":
        of_bytes = BYTE_TOKENIZER if form.mask_id is None else MASKED_BYTE_TOKENIZER
        if config.vocab_size != of_bytes["vocab_size"]:
            raise InvalidInput(
                f"the network has {config.vocab_size} token ids; an export with its byte tokenizer has "
                f"{of_bytes['vocab_size']}"
            )
        found["tokenizer.json"] = _json(of_bytes)
    elif form.tokenizer != "ids":
        if tokenizer is None:
            raise InvalidInput(
                f"the network reads text by a tokenizer of type {form.tokenizer!r}, and none is given; give the "
                "tokenizer.json of its data"
            )
        found["tokenizer.json"] = tokenizer.read_bytes()
    if form.tokenizer != "bytes" or form.classifies:
        found["text.json"] = _json({"format_version": 1, **asdict(form)})
    return found


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    for name, content in files.items():
        (partial / name).write_bytes(content)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)


def _write_zip(path: Path, files: Mapping[str, bytes]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    with zipfile.ZipFile(partial, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    os.replace(partial, path)
