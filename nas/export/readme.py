"""The README of an export: what the model does, how to run it, and its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from nas.export.vocabulary import Form
from nas.options import NetworkConfig

# By objective. {unit} is what the model reads one by one.
_PURPOSES = {
    "causal_lm": "It continues text, {unit} by {unit}.",
    "masked_lm": "It fills in hidden {unit}s of a text, by what stands on both sides of them.",
    "sequence_classification": "It tells the label of a text.",
    "token_classification": "It tells a label for each word of a text.",
}
_ID_PURPOSES = {
    "causal_lm": "It continues a sequence of token ids.",
    "masked_lm": "It fills in hidden token ids of a sequence, by what stands on both sides of them.",
    "sequence_classification": "It tells the class of a sequence of token ids.",
    "token_classification": "It tells a class for each of a sequence of token ids.",
}
_LABELLED = {"bytes": '--prompt "some text"', "text": '--prompt "some text"', "ids": '--ids "1 0 1"'}
_COMMANDS = {  # by objective, then by what is read
    "causal_lm": {
        "bytes": '--prompt "some text" --bytes 200',
        "text": '--prompt "some text" --tokens 50',
        "ids": '--ids "1 0 1" --tokens 50',
    },
    "masked_lm": {"bytes": '--prompt "some te_t"', "text": '--prompt "some [MASK]"', "ids": '--ids "1 _ 1"'},
    "sequence_classification": _LABELLED,
    "token_classification": _LABELLED,
}
_FILES = {
    "model.py": "the network's source and this program, in one file",
    "model.safetensors": "its weights",
    "config.json": "its shape and the block of each slot: all that model.py needs to build it",
    "tokenizer.json": "how text becomes token ids: one per byte",
    "text.json": "what the model reads and tells: objective, ids with a meaning of their own, labels",
    "architecture.json": "what was chosen for each slot, and from what",
    "request.json": "the search that found it",
    "manifest.json": "size and sha256 of each of these files",
}


def readme(
    form: Form,
    config: NetworkConfig,
    architecture: Mapping[str, Any],
    request: Mapping[str, Any],
    figures: Mapping[str, Any],
    n_parameters: int,
    text_files: Sequence[str],
) -> bytes:
    """Args are those of `write_bundle`; text_files: which of tokenizer.json and text.json there are."""
    shape = config.shape
    end = {"causal_lm": "; longer prompts are cut to their end", "masked_lm": ""}.get(
        form.objective, "; longer texts are cut to their beginning"
    )
    rows = {
        "search": request["name"],
        "architecture": architecture["string"],
        "slots": ", ".join(architecture["slots"]),
        "parameters": f"{n_parameters:,}",
        "width, heads": f"{shape.d_model}, {shape.n_heads}",
        "longest input": f"{shape.max_len} tokens{end}",
        **({"memory": f"{shape.kept_tokens(training=False)} tokens between segments"} if shape.memory_length else {}),
        **({"labels": ", ".join(form.labels[:20]) + (", ..." if len(form.labels) > 20 else "")} if form.labels else {}),
        **figures,
    }
    table = "\n".join(f"| {_cell(label)} | {_cell(value)} |" for label, value in rows.items())
    absent = {"tokenizer.json", "text.json"} - {*text_files}
    held = {name: holds for name, holds in _FILES.items() if name not in absent}
    if form.tokenizer != "bytes" and "tokenizer.json" in held:
        held["tokenizer.json"] = "how text becomes token ids, a file of the library `tokenizers`"
    return f"""\
# {_cell(architecture["string"])}: a model found and trained by Blockwright

{_usage(form, config)}
| | |
| --- | --- |
{table}

| file | holds |
| --- | --- |
{chr(10).join(f"| {name} | {holds} |" for name, holds in held.items())}
""".encode()


def _usage(form: Form, config: NetworkConfig) -> str:
    ids, of_bytes = form.tokenizer == "ids", form.tokenizer == "bytes"
    purpose = (_ID_PURPOSES if ids else _PURPOSES)[form.objective].format(unit="byte" if of_bytes else "token")
    packages = ["torch", "safetensors", *([] if ids or of_bytes else ["tokenizers"])]
    named = [f"`{name}`" for name in packages]
    python = "\n".join(f"    {line}" for line in _python(form, config))
    hint = ""
    if form.objective == "masked_lm":
        hint = f"Each `{'_' if ids or of_bytes else '[MASK]'}` is a hidden {'byte' if of_bytes else 'token'}; "
        hint += "`--mask` chooses another character. " if of_bytes else "`--mask` chooses another mark. "
    if form.objective == "sequence_classification" and not ids:
        hint = "`--pair` gives the second text to a model of pairs. "
    return f"""\
{purpose}

It runs without Blockwright: Python 3.11 or newer, {", ".join(named[:-1])} and {named[-1]} are all it needs (made with
torch {torch.__version__.split("+")[0]}).

    pip install {" ".join(packages)}
    python model.py {_COMMANDS[form.objective]["ids" if ids else "bytes" if of_bytes else "text"]}

{hint}`python model.py --help` lists the other options.
From Python, in this folder:

{python}
"""


def _python(form: Form, config: NetworkConfig) -> list[str]:
    """Lines that compute logits."""
    ids, of_bytes, eos_id, mask_id = form.tokenizer == "ids", form.tokenizer == "bytes", form.eos_id, form.mask_id
    lines = ["import torch, model", "network = model.load()"]
    if not ids and not of_bytes:
        lines.insert(1, "from tokenizers import Tokenizer")
        lines.append('tokenizer = Tokenizer.from_file("tokenizer.json")')
        tokens = 'tokenizer.encode("some text", add_special_tokens=False).ids'
    else:
        tokens = "[1, 0, 1]" if ids else 'list(b"some text")'
    if form.objective == "masked_lm":
        hidden = f'[{mask_id} if byte == ord("_") else byte for byte in b"some te_t"]'
        hidden = hidden if of_bytes else f"[*{tokens}, {mask_id}]"
        lines.append(f"tokens = {hidden}  # {mask_id} is a hidden {'byte' if of_bytes else 'token'}")
    elif form.classifies and eos_id is not None:
        lines.append(f"tokens = [{eos_id}, *{tokens}, {eos_id}]  # {eos_id} stands at both ends of a text")
    else:
        lines.append(f"tokens = {tokens}")
    n_classes = config.backbone.n_classes
    axes = (
        f"{n_classes}" if form.objective == "sequence_classification" else f"tokens, {n_classes or config.vocab_size}"
    )
    return [*lines, f"logits = network(torch.tensor([tokens]))  # (batch, tokens) token ids -> (batch, {axes})"]


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("<", "&lt;").split())
