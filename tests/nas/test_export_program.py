"""The program part of `model.py`, run in this process."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from nas.blocks import block_classes
from nas.export.bundle import BYTE_TOKENIZER
from nas.export.program import generate, main, printable, read_network
from nas.network import Network
from nas.options import NetworkConfig, Shape, SlotConfig

NAMES = ("attention", "ffn", "identity", "sgu", "mgk")
CLASSES = block_classes(NAMES)
CONFIG = NetworkConfig(Shape(8, 2, max_len=12), 256, tuple(SlotConfig(name) for name in NAMES))


def network() -> Network:
    torch.manual_seed(0)
    return Network(CONFIG, CLASSES).eval()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(asdict(CONFIG)))
    (tmp_path / "tokenizer.json").write_text(json.dumps(BYTE_TOKENIZER))
    save_file(network().state_dict(), tmp_path / "model.safetensors")
    return tmp_path


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


def test_sampling_follows_the_softmax_of_logits_over_temperature() -> None:
    net, prompt, n = network(), torch.arange(5), 2000
    generator = torch.Generator().manual_seed(0)
    drawn = torch.cat([generate(net, prompt, 1, temperature=0.3, generator=generator) for _ in range(n)])
    with torch.inference_mode():
        probabilities = (net(prompt[None])[0, -1] / 0.3).softmax(dim=-1)
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
        ("config.json", _change_config(format_version=2), "config has format_version 2; this code reads 1"),
        ("config.json", _change_config(shape={"width": 1}), "does not describe a network: .* argument 'width'"),
        ("config.json", _change_config(slots=[{"block": "rnn", "options": {}}]), "slot 0 has block 'rnn'"),
        (
            "config.json", _change_config(vocab_size=300),
            r"does not fit config.json: backbone.embedding.weight is \[256, 8\], and should be \[300, 8\]",
        ),
        ("config.json", _change_config(slots=[]), "slots.0.block.proj_in.weight is .*, and should be absent"),
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
