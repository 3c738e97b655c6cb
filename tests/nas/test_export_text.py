"""Exports of models that read by a tokenizer, tell labels, or read token ids: `model.py` reads as training did."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from nas.architecture import Architecture
from nas.blocks import block_classes
from nas.config.space import SearchSpace
from nas.config.task import Task
from nas.config.task import Tokenizer as Chosen
from nas.data.documents import Batch, Document
from nas.data.examples import Examples
from nas.data.pieces import pieces
from nas.data.tokenizer import Bytes, Encoder, learn
from nas.data.vocabulary import Training
from nas.errors import ExportFailed, InvalidInput
from nas.export import check
from nas.export.bundle import Bundle, write_bundle
from nas.export.check import check_export, unpacked
from nas.export.program import main
from nas.export.vocabulary import Form, LibraryVocabulary
from nas.network import Network
from nas.options import BackboneConfig, NetworkConfig, SlotConfig

BLOCKS = ("attention", "ffn")
CLASSES = block_classes(BLOCKS)
SPACE = SearchSpace.model_validate(
    {"n_slots": 2, "d_model": 16, "n_heads": 2, "max_len": 24, "candidates": list(BLOCKS)}
)
TEXT = "the cat sat on the mat\nand the dog, on the cat\n\nan élan of cats and dogs\n" * 4
KINDS = ("characters", "words", "bpe")
LABELS = ("bad", "fine", "good")


@cache
def encoder(kind: str) -> Encoder:
    if kind == "bytes":
        return Bytes()
    chosen = Chosen.model_validate({"type": "bpe", "vocab_size": 300} if kind == "bpe" else kind)
    return learn(chosen, Training([TEXT.splitlines(keepends=True)], documents=True), n_bytes=len(TEXT))


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, LibraryVocabulary]:
    folder = tmp_path_factory.mktemp("tokenizers")
    return {
        kind: LibraryVocabulary(_written(folder, kind), Form("causal_lm", kind, encoder(kind).eos_id)) for kind in KINDS
    }


def _written(folder: Path, kind: str) -> Path:
    path = folder / f"{kind}.json"
    path.write_text(encoder(kind).to_json() or "")
    return path


def task(objective: str, kind: str, dataset: str = "mine") -> Task:
    return Task.model_validate({"objective": objective, "tokenizer": kind, "dataset": dataset, "train_length": 24})


def config_of(objective: str, n_tokens: int, n_classes: int = 3) -> NetworkConfig:
    shape = replace(SPACE.shape(), causal=objective == "causal_lm")
    pooling: dict[str, Any] = {"token_classification": {"pooling": "none"}}.get(objective, {"pooling": "first"})
    backbone = BackboneConfig(n_classes=n_classes if objective.endswith("classification") else 0, **pooling)
    slots = tuple(SlotConfig(each) for each in BLOCKS)
    return NetworkConfig(shape, n_tokens + (objective == "masked_lm"), slots, backbone=backbone)


def network_of(config: NetworkConfig) -> Network:
    torch.manual_seed(0)
    network = Network(config, CLASSES).eval()
    with torch.no_grad():  # logits that differ between texts
        for parameter in network.backbone.proj_out.parameters():
            parameter.normal_()
    return network


def export(
    folder: Path, objective: str, kind: str, labels: Sequence[str] | None = None, **changes: Any
) -> tuple[Bundle, Network]:
    """As the service writes it, with a network that has learnt nothing."""
    if kind == "ids":
        size, tokenizer, eos_id, wanted = 40, None, None, task(objective, "given")
    else:
        size, eos_id, wanted = encoder(kind).vocab_size, encoder(kind).eos_id, task(objective, kind)
        tokenizer = None if kind == "bytes" else _written(folder, kind)
    config = config_of(objective, size, len(labels) if labels else 3)
    network = network_of(config)
    given: dict[str, Any] = {
        "state": network.state_dict(), "config": config, "tokenizer": tokenizer, "eos_id": eos_id, "labels": labels,
        "architecture": Architecture(BLOCKS, SPACE.candidates).to_json(),
        "request": {"name": "mine", "task": wanted.model_dump(mode="json")},
        "figures": {"test accuracy": 0.5},
    }  # fmt: skip
    return write_bundle(folder / "export", **(given | changes)), network


def run(bundle: Bundle, *arguments: str) -> int:
    return main(bundle.folder, CLASSES, arguments)


def examples(kind: str, documents: Sequence[Document], of_words: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, targets and padding as training has them."""
    batch = Batch()
    for document in documents:
        batch.add(document)
    ids, sizes, labels = batch.encode(encoder(kind), of_words=of_words)
    starts = np.cumsum([0, *sizes]).astype(np.uint64)
    part = Examples(ids, starts, labels, 0, encoder(kind).eos_id, of_words)
    found = part.held_out(task("token_classification" if of_words else "sequence_classification", kind), len(documents))
    assert found.key_padding is not None
    return found.tokens, found.targets, found.key_padding


def text_document(*texts: str) -> Document:
    return Document(0, tuple(list(pieces([text.encode()])) for text in texts), (0,))


# -- vocabularies ---------------------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("the catsné<o>\n.X\t"), max_size=40)


@given(text=TEXTS, kind=st.sampled_from(KINDS))
def test_text_is_read_as_in_training(vocabularies: dict[str, LibraryVocabulary], text: str, kind: str) -> None:
    ids, _ = encoder(kind).encode(list(pieces([text.encode()])))
    assert vocabularies[kind].ids(text) == ids.tolist()


@given(text=TEXTS)
def test_pairs_lose_nothing(vocabularies: dict[str, LibraryVocabulary], text: str) -> None:
    found = vocabularies["bpe"]
    assert found.text(found.ids(text)) == text


def test_text_of_words_is_with_single_spaces_and_line_ends(vocabularies: dict[str, LibraryVocabulary]) -> None:
    found = vocabularies["words"]
    assert found.text(found.ids("the  cat\nzebra sat")) == "the cat\n<unk> sat"


def test_text_of_characters_marks_unknown_ones(vocabularies: dict[str, LibraryVocabulary]) -> None:
    found = vocabularies["characters"]
    assert found.text(found.ids("cat Q\nsat")) == "cat <unk>\nsat"


@pytest.mark.parametrize("kind", KINDS)
def test_ends_of_documents_are_line_breaks(vocabularies: dict[str, LibraryVocabulary], kind: str) -> None:
    found = vocabularies[kind]
    assert found.text([*found.ids("cat"), encoder(kind).eos_id, *found.ids("the")]) == "cat\nthe"


def test_hidden_pairs_have_the_space_before_a_word(vocabularies: dict[str, LibraryVocabulary]) -> None:
    found = vocabularies["bpe"]
    assert found.masked("the [MASK] sat, [MASK]", "[MASK]", 999) == [
        *found.ids("the"), 999, *found.ids(" sat,"), 999,
    ]  # fmt: skip
    assert found.masked("the cat ", "[MASK]", 999) == found.ids("the cat ")


def test_hidden_characters_leave_spaces_alone(vocabularies: dict[str, LibraryVocabulary]) -> None:
    found = vocabularies["characters"]
    assert found.masked("a [MASK] t", "[MASK]", 99) == [*found.ids("a "), 99, *found.ids(" t")]


def test_text_commands_no_terminal() -> None:
    vocabulary = LibraryVocabulary.__new__(LibraryVocabulary)
    vocabulary.found = tokenizers.Tokenizer(tokenizers.models.WordLevel({"\x1b[2J": 0, "<unk>": 1}, unk_token="<unk>"))
    vocabulary.eos_id = None
    assert vocabulary.text([0]) == "\ufffd[2J"


# -- what model.py prints -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    bundle, _ = export(tmp_path, "causal_lm", kind)
    assert run(bundle, "--prompt", "the cat", "--tokens", "6") == 0
    out = capsys.readouterr().out
    assert out.startswith("the cat")
    assert len(out) > len("the cat\n")
    assert run(bundle, "--prompt", "the cat", "--tokens", "6") == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("characters", r"the .at\n"), ("words", r"the \S+ sat\n"), ("bpe", r"the.* sat\n")],
    ids=KINDS,
)
def test_hidden_tokens_are_filled_in(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, wanted: str
) -> None:
    bundle, _ = export(tmp_path, "masked_lm", kind)
    prompt = "the [MASK]at" if kind == "characters" else "the [MASK] sat"
    assert run(bundle, "--prompt", prompt) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(wanted, out, re.DOTALL), out
    assert run(bundle, "--prompt", prompt.replace("[MASK]", "?"), "--mask", "?") == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("kind", ["bytes", *KINDS])
@pytest.mark.parametrize(
    ("texts", "cut"),
    [
        (("the cat sat",), False),
        (("the cat\non",), False),
        (("the cat", "a dog"), False),
        (("the cat " * 30,), True),
        (("a cat", "the dog " * 30), True),
    ],
    ids=["text", "two lines", "pair", "too long", "pair too long"],
)
def test_a_text_has_the_label_that_its_example_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, texts: tuple[str, ...], cut: bool
) -> None:
    bundle, network = export(tmp_path, "sequence_classification", kind, LABELS)
    tokens, _, padding = examples(kind, [text_document(*texts)], of_words=False)
    with torch.inference_mode():
        expected = network(tokens, key_padding=padding)[0].softmax(dim=-1)
    assert run(bundle, *[f"--{name}={text}" for name, text in zip(("prompt", "pair"), texts, strict=False)]) == 0
    told = capsys.readouterr()
    first, *others = told.out.splitlines()
    assert first == LABELS[int(expected.argmax())]
    shown = {label: float(share) for share, label in (line.split() for line in others)}
    assert shown == pytest.approx(dict(zip(LABELS, expected.tolist(), strict=True)), abs=1e-4)  # four digits
    assert [*shown.values()] == sorted(shown.values(), reverse=True)
    assert bool(re.fullmatch(r"note: the text has \d+ tokens; the first 24 are read\n", told.err)) == cut
    assert cut or told.err == ""


def test_five_likeliest_of_many_labels_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, _ = export(tmp_path, "sequence_classification", "bytes", [f"label {number}" for number in range(9)])
    assert run(bundle, "--prompt", "the cat") == 0
    assert len(capsys.readouterr().out.splitlines()) == 6


@pytest.mark.parametrize("kind", ["bytes", *KINDS])
@pytest.mark.parametrize("words", ["the cat, sat", "élan of zebra", "the cat sat on the mat and the dog sat on"])
def test_words_have_the_labels_that_their_example_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, words: str
) -> None:
    bundle, network = export(tmp_path, "token_classification", kind, LABELS)
    listed = words.split()
    spaced = [word if not number else f" {word}" for number, word in enumerate(listed)]
    tokens, targets, padding = examples(kind, [Document(0, (spaced,), tuple([1] * len(listed)))], of_words=True)
    with torch.inference_mode():
        answers = network(tokens, key_padding=padding)[0].argmax(dim=-1)
    expected = [LABELS[each] for each in answers[targets[0] >= 0].tolist()]
    assert run(bundle, "--prompt", words) == 0
    found = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert found == [[word, label] for word, label in zip(listed, expected, strict=False)]
    assert len(expected) == len(listed) or padding.all()


def test_a_word_that_is_nothing_to_a_tokenizer_has_no_label(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<eos>": 0, "cat": 1, "<unk>": 2}, unk_token="<unk>"))
    found.normalizer = tokenizers.normalizers.Replace("*", "")
    found.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "own.json"
    found.save(str(path))
    config = config_of("token_classification", 3)
    bundle, _ = export(
        tmp_path, "token_classification", "words", LABELS,
        tokenizer=path, eos_id=0, config=config, state=network_of(config).state_dict(),
    )  # fmt: skip
    assert run(bundle, "--prompt", "cat * cat") == 0
    assert re.fullmatch(r"cat\t\w+\n\*\t-\ncat\t\w+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("objective", "typed", "wanted"),
    [
        ("causal_lm", ["--ids", "3 17 4", "--tokens", "2"], r"3 17 4 \d+ \d+\n"),
        ("masked_lm", ["--ids", "3 _ 4"], r"3 \d+ 4\n"),
        ("sequence_classification", ["--ids", "3 17 4"], r"[012]\n(  0\.\d{4}  [012]\n){3}"),
        ("token_classification", ["--ids", "3 17 4"], r"[012] [012] [012]\n"),
        ("token_classification", ["--ids", "3 " * 30], r"([012] ){23}[012]\n"),
    ],
    ids=["continued", "filled in", "class", "classes", "classes too long"],
)
def test_token_ids_are_read_where_there_is_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objective: str, typed: list[str], wanted: str
) -> None:
    bundle, _ = export(tmp_path, objective, "ids")
    assert not (bundle.folder / "tokenizer.json").exists()
    assert run(bundle, *typed) == 0
    out = capsys.readouterr().out
    assert re.fullmatch(wanted, out), out


# -- what is wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "kind", "typed", "message"),
    [
        ("causal_lm", "ids", ["--ids", "3 x"], r"--ids has 'x'; it must be whole numbers with spaces between"),
        ("causal_lm", "ids", ["--ids", "-1"], r"--ids has '-1'; it must be whole numbers with spaces between"),
        ("causal_lm", "ids", ["--ids", "40"], r"token id 40 is too large; the network has 40"),
        ("causal_lm", "ids", ["--ids", " "], r"there is nothing to read; give at least one token"),
        ("causal_lm", "words", ["--prompt", " "], r"there is nothing to read; give at least one token"),
        ("token_classification", "words", ["--prompt", " "], r"there is nothing to read; give at least one word"),
        ("masked_lm", "ids", ["--ids", "3 4"], r"this model fills in hidden tokens; give a --ids with '_' for each"),
        ("masked_lm", "words", ["--prompt", "a"], r"this model fills in hidden tokens; give a --prompt with '.MASK.'"),
    ],
    ids=["no number", "negative", "too large", "no id", "no word", "no label", "no hidden id", "nothing hidden"],
)  # fmt: skip
def test_what_cannot_be_read_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objective: str, kind: str, typed: list[str], message: str
) -> None:
    bundle, _ = export(tmp_path, objective, kind)
    assert run(bundle, *typed) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.match(f"error: {message}", line), line


@pytest.mark.parametrize(
    ("objective", "kind", "typed", "message"),
    [
        ("causal_lm", "ids", [], "the following arguments are required: --ids"),
        ("causal_lm", "ids", ["--ids="], "the prompt is empty; it needs at least one token id"),
        ("causal_lm", "words", ["--tokens", "0"], "--tokens is 0; it must be at least 1"),
        ("masked_lm", "words", ["--prompt=a", "--mask="], "--mask is empty; it must be at least one character"),
        ("sequence_classification", "words", [], "the following arguments are required: --prompt"),
        ("token_classification", "words", ["--prompt", "a", "--pair=b"], "unrecognized arguments: --pair=b"),
    ],
    ids=["no ids", "empty ids", "no tokens", "empty mask", "no prompt", "pair"],
)  # fmt: skip
def test_arguments_are_those_that_the_model_can_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], objective: str, kind: str, typed: list[str], message: str
) -> None:
    bundle, _ = export(tmp_path, objective, kind)
    with pytest.raises(SystemExit, match="2"):
        run(bundle, *typed)
    assert capsys.readouterr().err == f"error: {message}\n"


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("text.json", "{}", r"text.json does not tell how text becomes token ids: 'objective'"),
        ("text.json", "[]", r"text.json does not tell how text becomes token ids: list indices"),
        ("text.json", '{"objective": "sing", "tokenizer": "words", "eos_id": 0, "mask_id": null, "labels": null}',
         r"text.json has objective 'sing'; known: causal_lm, masked_lm, "),
        ("text.json", '{"objective": "sequence_classification", "tokenizer": "words", "eos_id": 0, "mask_id": null, '
         '"labels": ["a"]}', r"text.json has 1 labels, and the network 3 classes"),
        ("text.json", None, r"tokenizer.json is not of type 'bytes', and there is no text.json beside it"),
        ("tokenizer.json", "{}", r"cannot read .*tokenizer.json: "),
        ("tokenizer.json", None, r"cannot read .*tokenizer.json: "),
    ],
    ids=["empty", "list", "objective", "labels", "no text.json", "other tokenizer", "no tokenizer"],
)  # fmt: skip
def test_a_damaged_folder_gets_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, content: str | None, message: str
) -> None:
    bundle, _ = export(tmp_path, "sequence_classification", "words", LABELS)
    (bundle.folder / file).unlink()
    if content is not None:
        (bundle.folder / file).write_text(content)
    assert run(bundle, "--prompt", "the cat") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(message, line), line


def test_a_missing_library_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, _ = export(tmp_path, "causal_lm", "words")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    assert run(bundle) == 1
    message = "error: this model's tokenizer.json needs a package more: pip install tokenizers\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    ("objective", "kind", "changes", "message"),
    [
        ("causal_lm", "words", {"tokenizer": None},
         r"the network reads text by a tokenizer of type 'words', and none is given; give the tokenizer.json of its"),
        ("sequence_classification", "bytes", {"config": config_of("sequence_classification", 256, 4)},
         r"there are 3 labels, and the network has 4 classes"),
        ("sequence_classification", "bytes", {"config": config_of("sequence_classification", 300)},
         r"the network has 300 token ids; an export with its byte tokenizer has 256"),
    ],
    ids=["no tokenizer", "labels", "vocabulary"],
)  # fmt: skip
def test_what_does_not_fit_the_network_is_not_exported(
    tmp_path: Path, objective: str, kind: str, changes: dict[str, Any], message: str
) -> None:
    labels = LABELS if objective == "sequence_classification" else None
    with pytest.raises(InvalidInput, match=f"^{message}"):
        export(tmp_path, objective, kind, labels, **changes)
    assert not (tmp_path / "export").exists()


# -- what is written, and that it runs alone ------------------------------------------------------------------------


def test_the_tokenizer_travels_as_it_is_and_what_is_known_beside_it(tmp_path: Path) -> None:
    bundle, _ = export(tmp_path, "sequence_classification", "words", LABELS)
    assert (bundle.folder / "tokenizer.json").read_text() == encoder("words").to_json()
    assert json.loads((bundle.folder / "text.json").read_text()) == {
        "format_version": 1, "objective": "sequence_classification", "tokenizer": "words",
        "eos_id": encoder("words").eos_id, "mask_id": None, "labels": [*LABELS],
    }  # fmt: skip
    again = tmp_path / "again"
    again.mkdir()
    assert export(again, "sequence_classification", "words", LABELS)[0].sha256 == bundle.sha256


def test_synthetic_tasks_are_exported_as_readers_of_token_ids(tmp_path: Path) -> None:
    synthetic = task("token_classification", "bytes", "token-wise")
    config = config_of("token_classification", 32, 32)
    request = {"name": "mine", "task": synthetic.model_dump(mode="json")}
    bundle, _ = export(
        tmp_path, "token_classification", "ids", config=config, state=network_of(config).state_dict(), request=request
    )
    assert json.loads((bundle.folder / "text.json").read_text())["tokenizer"] == "ids"


OBJECTIVES = ("causal_lm", "masked_lm", "sequence_classification", "token_classification")


@pytest.mark.parametrize("kind", ["bytes", "words", "ids"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_readmes_commands_and_python_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, objective: str, kind: str
) -> None:
    """Its Python in this process, with the module that its model.py is."""
    labels = LABELS if objective.endswith("classification") and kind != "ids" else None
    bundle, network = export(tmp_path, objective, kind, labels)
    readme = (bundle.folder / "README.md").read_text()
    assert ("pip install torch safetensors tokenizers\n" in readme) == (kind == "words")
    assert ("| labels | bad, fine, good |" in readme) == (labels is not None)
    for name in ("tokenizer.json", "text.json"):
        assert (f"| {name} |" in readme) == (bundle.folder / name).exists()
    (command,) = re.findall(r"^    python model\.py (.*)$", readme, re.MULTILINE)
    typed = [each.strip('"') for each in re.findall(r'"[^"]*"|\S+', command)]
    assert run(bundle, *typed) == 0
    monkeypatch.chdir(bundle.folder)
    monkeypatch.syspath_prepend(bundle.folder)
    code = readme.split("From Python, in this folder:\n\n")[1].split("\n\n|")[0]
    names: dict[str, Any] = {}
    try:
        exec(re.sub("^    ", "", code, flags=re.MULTILINE), names)
    finally:
        sys.modules.pop("model", None)
    logits = names["logits"]
    n_classes = network.config.backbone.n_classes
    assert logits.shape[-1] == (n_classes or network.config.vocab_size)
    assert logits.dim() == (2 if objective == "sequence_classification" else 3)


@pytest.mark.parametrize(
    ("objective", "kind", "wanted"),
    [
        ("causal_lm", "bpe", r"a.*\n"),
        ("sequence_classification", "words", r"\w+\n(  \d\.\d{4}  \w+\n){3}"),
        ("token_classification", "ids", r"[012] [012]\n"),
    ],
    ids=["decoder of pairs", "documents of words", "token ids"],
)
def test_export_runs_alone_with_the_trained_models_logits(
    tmp_path: Path, objective: str, kind: str, wanted: str
) -> None:
    bundle, network = export(tmp_path, objective, kind, LABELS if kind == "words" else None)
    result = check_export(bundle.zip, network, n_bytes=5)
    assert result.logits_max_abs_difference <= 1e-5
    assert re.fullmatch(wanted, result.sample, re.DOTALL), result.sample


@pytest.mark.parametrize("objective", ["sequence_classification", "token_classification"])
def test_compared_logits_depend_on_padding(objective: str) -> None:
    network = network_of(config_of(objective, 256))
    tokens = torch.zeros(2, 24, dtype=torch.long)
    tokens[:, 12:] = 1
    inputs = {"padded": tokens, "padded.real": torch.arange(24) < torch.tensor([[24], [12]])}
    padded, whole = (check._logits(network, each, 24) for each in (inputs, {"padded": tokens}))
    half = len(padded) // 2
    assert torch.equal(padded[:half], whole[:half])
    assert not torch.allclose(padded[half:], whole[half:], atol=1e-4)


def test_few_positions_of_a_large_vocabulary_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle, network = export(tmp_path, "causal_lm", "bytes")
    tokens = {"full": torch.arange(24)[None]}
    few, all_ = (check._logits(network, tokens, most) for most in (5, 24))
    assert torch.equal(few, all_[-5 * 256 :])
    monkeypatch.setattr("nas.export.check.MOST_LOGITS", 2 * 256 * 5)
    assert check_export(bundle.zip, network, n_bytes=5).logits_max_abs_difference <= 1e-5


def test_only_readers_of_a_tokenizer_file_are_given_the_library(tmp_path: Path) -> None:
    bundle, _ = export(tmp_path, "token_classification", "ids")
    with (
        unpacked(bundle.zip) as found,
        pytest.raises(ExportFailed, match=r"does not run alone: .*No module named 'tokenizers'"),
    ):
        found.run(["-c", "import tokenizers"])


def test_zip_without_what_tells_of_its_text_fails_the_check(tmp_path: Path) -> None:
    bundle, network = export(tmp_path, "causal_lm", "words")
    torn = tmp_path / "torn.zip"
    with zipfile.ZipFile(bundle.zip) as whole, zipfile.ZipFile(torn, "w") as part:
        for name in whole.namelist():
            if name != "text.json":
                part.writestr(name, whole.read(name))
    with pytest.raises(ExportFailed, match=r"cannot unpack .*torn.zip: .*tokenizer.json is not of type 'bytes'"):
        check_export(torn, network)
