"""The program part of an exported `model.py`: reads the folder's files, continues or fills in text, is run by hand.

It is joined behind the network's sources, so it may use only the standard library, torch, safetensors and these
sources. B batch, T tokens, V vocabulary.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Generator, Tensor

from nas.blocks.base import Block
from nas.network import Network
from nas.options import NetworkConfig

_COLDEST = 1e-6  # below it logits overflow, and nothing but the likeliest token would be drawn anyway


def read_network(folder: Path, classes: Mapping[str, type[Block]]) -> Network:
    """The trained network of an export's folder, in evaluation mode.

    Raises:
        ValueError: a file is missing, damaged, or does not fit the others.
    """
    try:
        network = Network(NetworkConfig.from_json(_read_json(folder / "config.json")), classes)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / 'config.json'} does not describe a network: {error}") from error
    path = folder / "model.safetensors"
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error
    expected = {name: list(tensor.shape) for name, tensor in network.state_dict().items()}
    found = {name: list(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise ValueError(
                f"{path} does not fit config.json: {name} is {found.get(name, 'missing')}, "
                f"and should be {expected.get(name, 'absent')}"
            )
    network.load_state_dict(tensors)
    return network.eval()


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


@torch.inference_mode()
def generate(network: Network, prompt: Tensor, n_tokens: int, *, temperature: float, generator: Generator) -> Tensor:
    """Continue a prompt token by token; beyond max_len the last max_len tokens are read afresh each time.

    Args:
        network: a causal network.
        prompt: (T,) token ids, T at least 1.
        n_tokens: how many to add.
        temperature: divides the logits; 0 takes the likeliest token.
        generator: the only source of randomness.

    Returns:
        (n_tokens,) the new token ids.
    """
    longest = network.config.shape.max_len
    cache = network.new_cache(1, min(longest, len(prompt) + n_tokens))
    tokens = prompt
    for _ in range(n_tokens):
        if len(tokens) <= longest:
            for token in tokens[cache.position :]:
                logits = network.step(token.view(1, 1), cache)  # (1, 1, V)
        else:
            logits = network(tokens[None, -longest:])
        tokens = torch.cat([tokens, choose(logits[0, -1:], temperature, generator)])
    return tokens[len(prompt) :]


@torch.inference_mode()
def fill(network: Network, tokens: Tensor, mask_id: int, *, temperature: float, generator: Generator) -> Tensor:
    """Guess what is masked, all at once and each by itself.

    Args:
        network: a masked language model.
        tokens: (T,) token ids, mask_id where one is to be guessed.
        mask_id: larger than the ids of all other tokens.
        temperature: as for `generate`.
        generator: the only source of randomness.

    Returns:
        (T,) without mask_id.

    Raises:
        ValueError: more tokens than the network takes.
    """
    masked = tokens == mask_id
    logits = network(tokens[None])[0, masked, :mask_id]
    return tokens.masked_scatter(masked, choose(logits, temperature, generator))


def choose(logits: Tensor, temperature: float, generator: Generator) -> Tensor:  # (N, V) -> (N,) token ids
    if temperature < _COLDEST:
        return logits.argmax(dim=-1)
    return torch.multinomial((logits / temperature).softmax(dim=-1), 1, generator=generator)[:, 0]


def printable(data: bytes) -> str:
    """UTF-8 text of sampled bytes; what is no character, or would command the terminal, becomes U+FFFD."""
    text = data.decode("utf-8", "replace")
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:  # one line, without the usage before it
        self.exit(2, f"error: {message}\n")


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(
        description="Continue a text with the trained model of this folder, or, with a masked language model, fill in "
        "its hidden bytes."
    )
    parser.add_argument("--prompt", default="\n", help="text to continue or to fill in (default: a line break)")
    parser.add_argument("--bytes", type=int, default=200, metavar="N", help="bytes to add to it (default: 200)")
    parser.add_argument(
        "--mask", default="_", metavar="X", help="what stands for each hidden byte that is filled in (default: _)"
    )
    parser.add_argument(
        "--temperature", type=float, metavar="X",
        help="below 1 safer, above 1 bolder, 0 always the likeliest byte (default: 0.8 to continue, 0 to fill in)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="same seed, same text (default: 0)")
    parsed = parser.parse_args(arguments)
    if not parsed.prompt:
        parser.error("the prompt is empty; it needs at least one byte")
    if parsed.bytes < 1:
        parser.error(f"--bytes is {parsed.bytes}; it must be at least 1")
    if len(os.fsencode(parsed.mask)) != 1:
        parser.error(f"--mask is {parsed.mask!r}; it must be one byte")
    if parsed.temperature is not None and not 0 <= parsed.temperature < float("inf"):
        parser.error(f"--temperature is {parsed.temperature}; it must be 0 or more")
    if not 0 <= parsed.seed < 2**63:
        parser.error(f"--seed is {parsed.seed}; it must be between 0 and 2^63 - 1")
    return parsed


def main(folder: Path, classes: Mapping[str, type[Block]], arguments: Sequence[str] | None = None) -> int:
    """Print a prompt, continued or filled in; what is wrong goes to standard error as one line. Returns the exit code.

    A folder whose tokenizer has a mask_id holds a masked language model.
    """
    parsed = _parse(arguments)
    try:
        tokenizer = _read_json(folder / "tokenizer.json")
        if not isinstance(tokenizer, dict) or tokenizer.get("type") != "bytes":
            raise ValueError(f"{folder / 'tokenizer.json'} is not of type 'bytes', the only one this program reads")
        written = _write(read_network(folder, classes), tokenizer.get("mask_id"), parsed)
    except ValueError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write((printable(written) + "\n").encode("utf-8"))
    return 0


def _write(network: Network, mask_id: int | None, parsed: argparse.Namespace) -> bytes:
    """The prompt, continued, or filled in where there is a mask_id."""
    prompt = os.fsencode(parsed.prompt)  # the very bytes that were typed
    tokens, generator = torch.tensor(list(prompt)), Generator().manual_seed(parsed.seed)
    temperature = parsed.temperature
    if mask_id is None:
        if temperature is None:
            temperature = 0.8
        added = generate(network, tokens, parsed.bytes, temperature=temperature, generator=generator)
        return prompt + bytes(added.tolist())
    mask = os.fsencode(parsed.mask)
    if mask not in prompt:
        raise ValueError(f"this model fills in hidden bytes; give a --prompt with {parsed.mask!r} for each of them")
    tokens[tokens == mask[0]] = mask_id
    return bytes(fill(network, tokens, mask_id, temperature=temperature or 0, generator=generator).tolist())
