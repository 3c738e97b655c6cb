"""What may be typed behind `python model.py`: it depends on what the model reads and tells.

It is joined into `model.py` as nas.export.program is, so the same rules hold.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from nas.export.vocabulary import Form

_PURPOSES = {
    "causal_lm": "Continue a text with the trained model of this folder.",
    "masked_lm": "Fill in what is hidden in a text, with the trained model of this folder.",
    "sequence_classification": "Tell the label of a text, with the trained model of this folder.",
    "token_classification": "Tell a label for each part of a text, with the trained model of this folder.",
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # one line, without the usage before it
        self.exit(2, f"error: {message}\n")


def parse(form: Form, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read them; what is wrong, or asked for as help, is printed, and the program ends."""
    unit = "byte" if form.tokenizer == "bytes" else "token"
    mask = "_" if form.tokenizer in ("bytes", "ids") else "[MASK]"
    parser = _Parser(description=_PURPOSES[form.objective])
    if form.tokenizer == "ids":
        parser.add_argument("--ids", dest="prompt", required=True, metavar="'N N ...'", help="token ids to read")
    else:
        default = "" if form.classifies else " (default: a line break)"
        parser.add_argument("--prompt", default="\n", required=form.classifies, help=f"text to read{default}")
        if form.objective == "sequence_classification":
            parser.add_argument("--pair", help="second text, for a model of pairs")
    if not form.classifies:
        parser.add_argument(
            f"--{unit}s", dest="n_tokens", type=int, default=200, metavar="N",
            help=f"{unit}s to add where the model continues a text (default: 200)",
        )  # fmt: skip
        parser.add_argument(
            "--mask", default=mask, metavar="X",
            help=f"what stands for each hidden {unit} where the model fills in (default: {mask})",
        )  # fmt: skip
        parser.add_argument(
            "--temperature", type=float, metavar="X",
            help=f"below 1 safer, above 1 bolder, 0 always the likeliest {unit} (default: 0.8 to continue, 0 to fill "
            "in)",
        )  # fmt: skip
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same text (default: 0)")
    parsed = parser.parse_args(arguments)
    wrong = _wrong(form, parsed)
    if wrong is not None:
        parser.error(wrong)
    return parsed


def _wrong(form: Form, parsed: argparse.Namespace) -> str | None:
    if not parsed.prompt:
        return f"the prompt is empty; it needs at least one {'byte' if form.tokenizer != 'ids' else 'token id'}"
    if form.classifies:
        return None
    if parsed.n_tokens < 1:
        return f"--{'bytes' if form.tokenizer == 'bytes' else 'tokens'} is {parsed.n_tokens}; it must be at least 1"
    if form.tokenizer == "bytes" and len(os.fsencode(parsed.mask)) != 1:
        return f"--mask is {parsed.mask!r}; it must be one byte"
    if not parsed.mask:
        return "--mask is empty; it must be at least one character"
    if parsed.temperature is not None and not 0 <= parsed.temperature < float("inf"):
        return f"--temperature is {parsed.temperature}; it must be 0 or more"
    if not 0 <= parsed.seed < 2**63:
        return f"--seed is {parsed.seed}; it must be between 0 and 2^63 - 1"
    return None
