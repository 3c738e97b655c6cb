"""The program part of `model.py`, run in this process."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from nas.blocks import block_classes
from nas.export.bundle import BYTE_TOKENIZER, MASKED_BYTE_TOKENIZER
from nas.export.program import choose, fill, generate, main, read_network
from nas.export.vocabulary import printable
from nas.network import Network
from nas.options import NetworkConfig, Shape, SlotConfig

NAMES = ("attention", "ffn", "identity", "sgu", "mgk")
CLASSES = block_classes(NAMES)
CONFIG = NetworkConfig(Shape(8, 2, max_len=12), 256, tuple(SlotConfig(name) for name in NAMES))
MASK = 256
ENCODER = replace(CONFIG, shape=Shape(8, 2, max_len=12, causal=False), vocab_size=257)


def network(config: NetworkConfig = CONFIG) -> Network:
    torch.manual_seed(0)
    return Network(config, CLASSES).eval()


def write(folder: Path, config: NetworkConfig, tokenizer: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(asdict(config)))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    save_file(network(config).state_dict(), folder / "model.safetensors")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, CONFIG, BYTE_TOKENIZER)


@pytest.fixture
def encoder_folder(tmp_path: Path) -> Path:
    return write(tmp_path, ENCODER, MASKED_BYTE_TOKENIZER)


def run(folder: Path, *arguments: str) -> int:
    return main(folder, CLASSES, arguments)


def test_read_network_gives_the_saved_network(folder: Path) -> None:
    tokens = torch.arange(12)[None]
    read = read_network(folder, CLASSES)
    assert not read.training
    assert_close(read(tokens), network()(tokens), rtol=0, atol=0)


def test_generation_reads_the_last_max_len_tokens() -> None:
    prompt = torch.arange(20)
    with torch.inference_mode():
        expected = network()(prompt[None, -12:])[0, -1].argmax()
    got = generate(network(), prompt, 3, temperature=0, generator=torch.Generator())
    assert got.shape == (3,)
    assert got[0] == expected


@pytest.mark.parametrize(
    "shape",
    [
        Shape(8, 2, max_len=12),
        Shape(8, 2, max_len=12, positions="relative_bias"),
        Shape(8, 2, max_len=12, positions="transformer_xl", memory_length=6, clamp_len=5),
        Shape(8, 2, max_len=12, positions="transformer_xl", memory_length=6, same_length=True),
    ],
    ids=["rotary", "relative bias", "transformer_xl", "same length"],
)
@pytest.mark.parametrize("norm_position", ["pre", "post"])
@pytest.mark.parametrize("length", [1, 5, 12, 20])
def test_reading_token_by_token_gives_the_text_of_reading_all_anew(
    shape: Shape, norm_position: str, length: int
) -> None:
    net = network(replace(CONFIG, shape=shape, norm_position=norm_position))
    tokens = torch.arange(100, 100 + length)
    got = generate(net, tokens, 16, temperature=0, generator=torch.Generator())
    for _ in range(16):
        with torch.inference_mode():
            tokens = torch.cat([tokens, net(tokens[None, -12:])[0, -1:].argmax(dim=-1)])
    assert torch.equal(got, tokens[length:])


def test_sampled_text_is_that_of_reading_all_anew() -> None:
    net, tokens = network(), torch.arange(5)
    got = generate(net, tokens, 16, temperature=0.8, generator=torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    for _ in range(16):
        with torch.inference_mode():
            logits = net(tokens[None, -12:])[0, -1:]
        tokens = torch.cat([tokens, choose(logits, 0.8, generator)])
    assert torch.equal(got, tokens[5:])


def test_filling_guesses_bytes_where_they_are_masked_and_keeps_the_others() -> None:
    net, tokens = network(ENCODER), torch.tensor([1, MASK, 3, MASK, MASK])
    filled = fill(net, tokens, MASK, temperature=0, generator=torch.Generator())
    with torch.inference_mode():
        likeliest = net(tokens[None])[0, :, :MASK].argmax(dim=-1)
    assert torch.equal(filled, torch.where(tokens == MASK, likeliest, tokens))
    drawn = [
        fill(net, tokens, MASK, temperature=5.0, generator=torch.Generator().manual_seed(seed)) for seed in range(20)
    ]
    assert len({tuple(each.tolist()) for each in drawn}) > 1
    assert all((each < MASK).all() for each in drawn)


def test_program_fills_in_what_is_hidden(encoder_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for arguments in (["--prompt", "a_c_e"], ["--prompt", "a?c?e", "--mask", "?"], ["--prompt", "a_c?e"]):
        assert run(encoder_folder, *arguments) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert re.fullmatch(r"a.c.e\n", texts[0], re.DOTALL)
    assert re.fullmatch(r"a.c\?e\n", texts[2], re.DOTALL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: this model fills in hidden bytes; give a --prompt with '_' for each of them\n"),
        (["--prompt", "a_", "--mask", "?"], "error: this model fills in hidden bytes; give a --prompt with '?' for"),
        (["--prompt", "thirteen char_"], "error: input has 14 tokens; this network takes at most 12\n"),
    ],
    ids=["no prompt", "nothing hidden", "too long"],
)
def test_what_cannot_be_filled_in_gets_one_line(
    encoder_folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(encoder_folder, *arguments) == 1
    assert capsys.readouterr().err.startswith(message)


def test_sampling_follows_the_softmax_of_logits_over_temperature() -> None:
    n, logits = 2000, torch.randn(256, generator=torch.Generator().manual_seed(1))
    drawn = choose(logits.expand(n, -1), 0.3, torch.Generator().manual_seed(0))
    probabilities = (logits / 0.3).softmax(dim=-1)
    frequencies = drawn.bincount(minlength=256) / n
    # Four standard errors of the likeliest id's frequency.
    likeliest = probabilities.argmax()
    bound = 4 * (probabilities[likeliest] * (1 - probabilities[likeliest]) / n).sqrt()
    assert abs(frequencies[likeliest] - probabilities[likeliest]) < bound


def test_a_temperature_near_zero_takes_the_likeliest_token() -> None:
    net, prompt = network(), torch.arange(5)
    coldest, cold = (
        generate(net, prompt, 4, temperature=temperature, generator=torch.Generator()) for temperature in (0, 1e-300)
    )
    assert torch.equal(cold, coldest)


def test_program_prints_prompt_and_continuation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--prompt", "def ", "--bytes", "30") == 0
    out = capsys.readouterr().out
    assert out.startswith("def ")
    assert out.endswith("\n")


def test_same_seed_gives_the_same_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "1", "2"):
        run(folder, "--seed", seed)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1] != texts[2]


def test_printable_text_keeps_characters_and_hides_what_would_command_the_terminal() -> None:
    assert printable("é\t\n".encode() + b"\x1b[2J\xff") == "é\t\n\ufffd[2J\ufffd"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prompt", ""], "error: the prompt is empty; it needs at least one byte\n"),
        (["--bytes", "0"], "error: --bytes is 0; it must be at least 1\n"),
        (["--bytes", "many"], "error: argument --bytes: invalid int value: 'many'\n"),
        (["--temperature", "-1"], "error: --temperature is -1.0; it must be 0 or more\n"),
        (["--temperature", "nan"], "error: --temperature is nan; it must be 0 or more\n"),
        (["--mask", "__"], "error: --mask is '__'; it must be one byte\n"),
        (["--mask", ""], "error: --mask is ''; it must be one byte\n"),
        (["--mask", "é"], "error: --mask is 'é'; it must be one byte\n"),
        (["--seed", "-1"], "error: --seed is -1; it must be between 0 and 2^63 - 1\n"),
        (["--promt=x"], "error: unrecognized arguments: --promt=x\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_arguments_get_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(folder, *arguments)
    assert capsys.readouterr().err == message


def _change_config(**changes: object) -> str:
    return json.dumps(asdict(CONFIG) | changes)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("config.json", None, "cannot read .*config.json: .*No such file"),
        ("config.json", "{", "cannot read .*config.json: Expecting property name"),
        ("config.json", "{}", "config.json does not describe a network: 'format_version'"),
        ("config.json", _change_config(format_version=1), "config has format_version 1; this code reads 2"),
        ("config.json", _change_config(shape={"width": 1}), "does not describe a network: .* argument 'width'"),
        ("config.json", _change_config(slots=[{"block": "rnn", "options": {}}]), "slot 1 has block 'rnn'"),
        (
            "config.json", _change_config(vocab_size=300),
            r"does not fit config.json: backbone.embedding.weight is \[256, 8\], and should be \[300, 8\]",
        ),
        ("config.json", _change_config(slots=[]), r"slots\.0\.block\..* is .*, and should be absent"),
        ("tokenizer.json", None, "cannot read .*tokenizer.json"),
        ("tokenizer.json", '{"type": "bpe"}', "tokenizer.json is not of type 'bytes'"),
        ("tokenizer.json", "[]", "tokenizer.json is not of type 'bytes'"),
        ("model.safetensors", None, "cannot read .*model.safetensors: No such file"),
        ("model.safetensors", "not tensors", "cannot read .*model.safetensors: .*header"),
    ],
)  # fmt: skip
def test_damaged_folder_gets_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str, content: str | None, message: str
) -> None:
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_text(content)
    assert run(folder) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert re.search(message, line), line
