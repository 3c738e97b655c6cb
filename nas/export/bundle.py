"""Writes what a user takes away: a folder, and the same files as one zip, that run without Blockwright."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from nas.blocks import block_classes
from nas.errors import InvalidInput
from nas.export.standalone import join_sources
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
) -> Bundle:
    """Write an export to `folder` and to `<folder>.zip`, each appearing whole or not at all.

    The same arguments give the same bytes: the zip has fixed times and a fixed order.

    Args:
        folder: replaced if it exists.
        state: the trained network's state dict.
        config: of that network, for the byte tokenizer; an encoder is a masked language model.
        architecture: its JSON, as `Architecture.to_json` gives it.
        request: the search request's JSON.
        figures: what the README tells of the model: label -> number or short text, in order.

    Raises:
        InvalidInput: the vocabulary is not that of the byte tokenizer, or a block's source cannot be joined.
    """
    tokenizer = BYTE_TOKENIZER if config.shape.causal else MASKED_BYTE_TOKENIZER
    if config.vocab_size != tokenizer["vocab_size"]:
        raise InvalidInput(
            f"the network has {config.vocab_size} token ids; an export with its byte tokenizer has "
            f"{tokenizer['vocab_size']}"
        )
    tensors = {name: tensor.detach().to("cpu").contiguous() for name, tensor in state.items()}
    files = {
        "README.md": _readme(config, architecture, request, figures, sum(each.numel() for each in tensors.values())),
        "architecture.json": _json(architecture),
        "config.json": _json(asdict(config)),
        "model.py": join_sources(block_classes(slot.block for slot in config.slots)).encode(),
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
        "request.json": _json(request),
        "tokenizer.json": _json(tokenizer),
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


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("<", "&lt;").split())


_RUNS_ALONE = f"""\
It runs without Blockwright: Python 3.11 or newer, `torch` and `safetensors` are all it needs (made with torch
{torch.__version__.split("+")[0]}).

    pip install torch safetensors
"""
_USES = {  # by whether the network is causal
    True: f"""\
It continues text, byte by byte. {_RUNS_ALONE}\
    python model.py --prompt "some text" --bytes 200

`python model.py --help` lists the other options. From Python, in this folder:

    import torch, model
    network = model.load()
    logits = network(torch.tensor([list(b"some text")]))  # (batch, tokens) byte values -> (batch, tokens, 256)
""",
    False: f"""\
It fills in hidden bytes of a text, by what stands on both sides of them. {_RUNS_ALONE}\
    python model.py --prompt "some te_t"

Each `_` is a hidden byte; `--mask` chooses another character. `python model.py --help` lists the other options.
From Python, in this folder:

    import torch, model
    network = model.load()
    tokens = [{MASK} if byte == ord("_") else byte for byte in b"some te_t"]  # {MASK} is a hidden byte
    logits = network(torch.tensor([tokens]))  # (batch, tokens) token ids -> (batch, tokens, {MASK + 1})
""",
}


def _readme(
    config: NetworkConfig,
    architecture: Mapping[str, Any],
    request: Mapping[str, Any],
    figures: Mapping[str, Any],
    n_parameters: int,
) -> bytes:
    shape = config.shape
    rows = {
        "search": request["name"],
        "architecture": architecture["string"],
        "slots": ", ".join(architecture["slots"]),
        "parameters": f"{n_parameters:,}",
        "width, heads": f"{shape.d_model}, {shape.n_heads}",
        "longest input": f"{shape.max_len} tokens; longer prompts are cut to their end"
        if shape.causal
        else f"{shape.max_len} tokens",
        **({"memory": f"{shape.kept_tokens(training=False)} tokens between segments"} if shape.memory_length else {}),
        **figures,
    }
    table = "\n".join(f"| {_cell(label)} | {_cell(value)} |" for label, value in rows.items())
    return f"""\
# {_cell(architecture["string"])}: a model found and trained by Blockwright

{_USES[shape.causal]}
| | |
| --- | --- |
{table}

| file | holds |
| --- | --- |
| model.py | the network's source and this program, in one file |
| model.safetensors | its weights |
| config.json | its shape and the block of each slot: all that model.py needs to build it |
| tokenizer.json | how text becomes token ids: one per byte |
| architecture.json | what was chosen for each slot, and from what |
| request.json | the search that found it |
| manifest.json | size and sha256 of each of these files |
""".encode()
