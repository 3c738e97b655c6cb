"""The program part of an exported `model.py`: reads the folder's files, continues, fills in or labels what is typed.

It is joined behind the network's sources, so it may use only the standard library, torch, safetensors, these sources,
and the library `tokenizers` where a model has one of its files. B batch, T tokens, V vocabulary, C classes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Generator, Tensor

from nas.blocks.base import Block
from nas.export.arguments import parse
from nas.export.vocabulary import Form, Vocabulary, harmless, read_form, read_json, read_vocabulary
from nas.network import Network
from nas.options import NetworkConfig

_SHOWN = 5  # labels of a text, the likeliest first
_COLDEST = 1e-6  # below it logits overflow, and nothing but the likeliest token would be drawn anyway


def read_network(folder: Path, classes: Mapping[str, type[Block]]) -> Network:
    """The trained network of an export's folder, in evaluation mode.

    Raises:
        ValueError: a file is missing, damaged, or does not fit the others.
    """
    try:
        network = Network(NetworkConfig.from_json(read_json(folder / "config.json")), classes)
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


@torch.inference_mode()
def probabilities(network: Network, tokens: Tensor) -> Tensor:
    """Of each class: (T,) token ids -> (C,) of the whole sequence, or (T, C) of its tokens."""
    logits: Tensor = network(tokens[None])
    return logits[0].softmax(dim=-1)


def main(folder: Path, classes: Mapping[str, type[Block]], arguments: Sequence[str] | None = None) -> int:
    """Print a prompt, continued or filled in, or its labels; what is wrong goes to standard error as one line.

    Returns:
        The exit code.
    """
    try:
        form = read_form(folder)
        parsed = parse(form, arguments)
        network, vocabulary = read_network(folder, classes), read_vocabulary(folder, form)
        if form.labels is not None and len(form.labels) != network.config.backbone.n_classes:
            raise ValueError(
                f"{folder / 'text.json'} has {len(form.labels)} labels, and the network "
                f"{network.config.backbone.n_classes} classes"
            )
        write = {
            "causal_lm": _continued,
            "masked_lm": _filled,
            "sequence_classification": _label,
            "token_classification": _labels,
        }
        written = write[form.objective](network, vocabulary, form, parsed)
    except ValueError as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    sys.stdout.buffer.write((written + "\n").encode("utf-8"))
    return 0


def _continued(network: Network, vocabulary: Vocabulary, form: Form, parsed: argparse.Namespace) -> str:
    tokens = _tensor(vocabulary.ids(parsed.prompt), network)
    temperature = 0.8 if parsed.temperature is None else parsed.temperature
    generator = Generator().manual_seed(parsed.seed)
    added = generate(network, tokens, parsed.n_tokens, temperature=temperature, generator=generator)
    return vocabulary.text([*tokens.tolist(), *added.tolist()])


def _filled(network: Network, vocabulary: Vocabulary, form: Form, parsed: argparse.Namespace) -> str:
    assert form.mask_id is not None
    tokens = _tensor(vocabulary.masked(parsed.prompt, parsed.mask, form.mask_id), network)
    if form.mask_id not in tokens:
        unit, option = "byte" if form.tokenizer == "bytes" else "token", "ids" if form.tokenizer == "ids" else "prompt"
        raise ValueError(f"this model fills in hidden {unit}s; give a --{option} with {parsed.mask!r} for each of them")
    generator = Generator().manual_seed(parsed.seed)
    filled = fill(network, tokens, form.mask_id, temperature=parsed.temperature or 0, generator=generator)
    return vocabulary.text(filled.tolist())


def _label(network: Network, vocabulary: Vocabulary, form: Form, parsed: argparse.Namespace) -> str:
    """The likeliest label, then the likeliest ones with their probabilities."""
    ids = vocabulary.ids(parsed.prompt)
    if form.eos_id is not None:  # as the training's examples: before, between and behind
        pair = getattr(parsed, "pair", None)
        ids = [form.eos_id, *ids, *([] if pair is None else [form.eos_id, *vocabulary.ids(pair)]), form.eos_id]
    found = probabilities(network, _tensor(_cut(ids, network), network))
    best = found.topk(min(_SHOWN, len(found)))
    rows = zip(best.values.tolist(), best.indices.tolist(), strict=True)
    return "\n".join([form.label(int(best.indices[0])), *(f"{share:8.4f}  {form.label(each)}" for share, each in rows)])


def _labels(network: Network, vocabulary: Vocabulary, form: Form, parsed: argparse.Namespace) -> str:
    """A line with each word and its label; of token ids their labels alone."""
    if form.tokenizer == "ids":
        tokens = _tensor(_cut(vocabulary.ids(parsed.prompt), network), network)
        return " ".join(form.label(each) for each in probabilities(network, tokens).argmax(dim=-1).tolist())
    words = parsed.prompt.split()
    if not words:
        raise ValueError("there is nothing to read; give at least one word")
    ids, firsts = _words(vocabulary, words, [] if form.eos_id is None else [form.eos_id])
    ids = _cut(ids, network)
    answers = probabilities(network, _tensor(ids, network)).argmax(dim=-1).tolist()
    lines = []
    for word, first in zip(words, firsts, strict=True):
        if first is None:
            lines.append(f"{harmless(word)}\t-")
        elif first < len(ids):
            lines.append(f"{harmless(word)}\t{form.label(answers[first])}")
    return "\n".join(lines)


def _words(vocabulary: Vocabulary, words: Sequence[str], end: list[int]) -> tuple[list[int], list[int | None]]:
    """As the training's examples: ids, and where in them the first of each word is that is no space; None: nowhere."""
    space, ids, firsts = vocabulary.ids(" "), [*end], []
    for number, word in enumerate(words):
        piece = vocabulary.ids(f" {word}" if number else word)
        skipped = len(space) if len(piece) > len(space) and piece[: len(space)] == space else 0
        firsts.append(len(ids) + skipped if piece else None)
        ids += piece
    return [*ids, *end], firsts


def _cut(ids: list[int], network: Network) -> list[int]:
    """The first of them, as many as the network was made for."""
    longest = network.config.shape.max_len
    if len(ids) > longest:
        print(f"note: the text has {len(ids)} tokens; the first {longest} are read", file=sys.stderr)
    return ids[:longest]


def _tensor(ids: list[int], network: Network) -> Tensor:
    if not ids:
        raise ValueError("there is nothing to read; give at least one token")
    if max(ids) >= network.config.vocab_size:
        raise ValueError(f"token id {max(ids)} is too large; the network has {network.config.vocab_size}")
    return torch.tensor(ids)
