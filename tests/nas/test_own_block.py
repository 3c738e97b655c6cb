"""A block of the user's own: a class handed to `search`, and an installed package with a BlockSpec."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from nas import catalog, own_block
from nas.architecture import Architecture
from nas.blocks import block_class
from nas.blocks.base import Block, Context, PositionWise, with_memory
from nas.config.request import SearchRequest
from nas.config.space import Candidate
from nas.cost import LatencyTable
from nas.data.corpora import fingerprint
from nas.derive import derive
from nas.errors import DataError, Infeasible, InvalidInput, SearchFailed
from nas.export.check import unpacked
from nas.one_search import SearchResult
from nas.options import IdentityOptions, Shape
from nas.retrain import build
from nas.search import Search, search
from nas.specs.base import BlockSpec
from tests import tiny
from tests.nas.blocks import test_contract

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "own_block"


@pytest.fixture(autouse=True)
def _own_blocks_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_own", {})


# -- the package ------------------------------------------------------------------------------------------------------


@pytest.fixture
def conv(monkeypatch: pytest.MonkeyPatch) -> BlockSpec:
    """The example's spec, known in this process without being installed."""
    monkeypatch.syspath_prepend(EXAMPLE / "src")
    spec: BlockSpec = import_module("blockwright_conv.spec").SPEC
    catalog.register(spec)
    return spec


def contract() -> Iterator[Any]:
    """Each test of the shared contract of blocks, with the arguments that it has besides block and options."""
    for name, function in vars(test_contract).items():
        marks = [mark.args for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
        others = [(names, values) for names, values in marks if tuple(names) != ("name", "options")]
        if len(others) == len(marks):
            continue
        for chosen in product(*(values for _, values in others)):
            arguments: dict[str, Any] = {}
            for (names, _), value in zip(others, chosen, strict=True):
                arguments |= {names: value} if isinstance(names, str) else dict(zip(names, value, strict=True))
            yield pytest.param(function, arguments, id=" ".join([name, *map(str, arguments.values())]))


@pytest.mark.parametrize("kernel", [1, 4, 16])
@pytest.mark.parametrize(("promise", "arguments"), list(contract()))
def test_the_example_keeps_the_contract_of_blocks(
    conv: BlockSpec, promise: Callable[..., None], arguments: dict[str, Any], kernel: int
) -> None:
    promise(name="conv", options=conv.options(kernel=kernel), **arguments)


def test_the_example_tells_a_kernel_that_is_out_of_range(conv: BlockSpec) -> None:
    with pytest.raises(
        ValueError, match=r"option 'options'|options of block 'conv': kernel is 0; it must be between 1 and 256"
    ):
        Candidate(label="conv", block="conv", options={"kernel": 0})


# -- a class straight from Python -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShiftOptions:
    by: int = 1
    kind: Literal["plain", "gated"] = "plain"


class Shift(Block):
    """Each token sees the one before it.

    More words, which the catalogue does not show.
    """

    Options = ShiftOptions

    def __init__(self, shape: Shape, options: ShiftOptions) -> None:
        super().__init__(shape, options)
        self.by = options.by
        self.proj = nn.Linear(shape.d_model, shape.d_model)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        out: Tensor = self.proj(F.pad(x, (0, 0, self.by, 0))[:, : x.shape[1]])
        return out


class Gelu(PositionWise):
    Options = IdentityOptions

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return F.gelu(x)


class Echo(Block):
    """The mean of all tokens so far, by learned weights."""

    Options = IdentityOptions

    def __init__(self, shape: Shape, options: IdentityOptions) -> None:
        super().__init__(shape, options)
        self.proj = nn.Linear(shape.d_model, shape.d_model)

    def forward(self, x: Tensor, context: Context) -> Tensor:
        counts = torch.arange(1, x.shape[1] + 1, device=x.device)[:, None]
        out: Tensor = self.proj(x.cumsum(dim=1) / counts)
        return out


class Remembering(Block):
    Options = IdentityOptions
    uses_memory = True

    def forward(self, x: Tensor, context: Context) -> Tensor:
        keys = x if context.memory is None else torch.cat([context.memory, x], dim=1)
        return F.scaled_dot_product_attention(x, keys, keys)


SHAPE = Shape(16, 2, 12)


def test_costs_of_a_class_are_counted_from_the_class() -> None:
    spec, options = own_block.describe("shift", Shift), ShiftOptions()
    assert spec.parameters(SHAPE, options) == 16 * 16 + 16
    assert spec.flops(SHAPE, options, 5, 3) == 2 * 5 * 16 * 16
    assert spec.cache_bytes is not None
    assert spec.cache_bytes(SHAPE, options, 7, 3) == 4 * 3 * 7 * 16  # the slow incremental path keeps the inputs
    assert spec.reach(SHAPE, options).longest == 12
    spec = own_block.describe("attend", Remembering)
    assert spec.flops(SHAPE, IdentityOptions(), 5, 3) == 2 * 2 * 5 * 8 * 16
    spec = own_block.describe("gelu", Gelu)
    assert spec.cache_bytes is not None
    assert (spec.parameters(SHAPE, IdentityOptions()), spec.cache_bytes(SHAPE, IdentityOptions(), 7, 3)) == (0, 0)
    assert spec.reach(SHAPE, IdentityOptions()).longest is None


def test_a_class_is_described_by_its_first_line_a_free_letter_and_a_colour_of_its_own() -> None:
    first = own_block.describe("shift", Shift)
    assert (first.description, first.family, first.letter, first.colour) == (
        "Each token sees the one before it.", "shift", "H", "#66CCEE",
    )  # fmt: skip
    catalog.register(first)
    second = own_block.describe("hash", Gelu)
    assert (second.description, second.letter, second.colour) == ("a block of your own", "Z", "#EE6677")
    again = own_block.describe("shift", Gelu)
    assert (again.letter, again.colour) == ("H", "#66CCEE")
    assert len({*own_block.COLOURS, *(spec.colour for spec in catalog.blocks().values())}) == len(own_block.COLOURS) + 5


class NoOptions(Block):
    pass


@dataclass(frozen=True)
class UnreadableOptions:
    weight: Tensor | None = None


class Unreadable(Block):
    Options = UnreadableOptions


@pytest.mark.parametrize(
    ("name", "found", "message"),
    [
        ("conv", nn.Linear, "block 'conv' is Linear, which is no subclass of nas.blocks.base.Block$"),
        ("conv", 3, "block 'conv' is 3, which is no subclass of nas.blocks.base.Block$"),
        (
            "conv", NoOptions,
            "class NoOptions of block 'conv' has no Options; it needs a frozen dataclass, which may be empty$",
        ),
        ("conv", type("C", (Block,), {"Options": dict}), "options of block 'conv' is <class 'dict'>; it must be a fro"),
        ("conv", Unreadable, "Options of block 'conv' cannot be read from JSON: "),
        ("Conv 2", Shift, "name of a block is 'Conv 2'; it must be a lower-case letter and then at most 39"),
        ("ffn", Shift, "block 'ffn' is built in; give yours another name$"),
        (3, Shift, "name of a block is 3; it must be a string$"),
    ],
)  # fmt: skip
def test_what_is_no_block_is_one_line(name: Any, found: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}") as raised:
        search({}, blocks={name: found})
    assert "\n" not in str(raised.value)


class Broken(Shift):
    def __init__(self, shape: Shape, options: ShiftOptions) -> None:
        super().__init__(shape, options)
        raise KeyError("n_groups\nand more")


class Growing(Shift):
    def forward(self, x: Tensor, context: Context) -> Tensor:
        return torch.cat([x, x], dim=-1)


class Tuples(Shift):
    def forward(self, x: Tensor, context: Context) -> Tensor:
        return (x, x)  # type: ignore[return-value]


class Failing(Shift):
    def forward(self, x: Tensor, context: Context) -> Tensor:
        return x @ x


class Peeking(Shift):
    def forward(self, x: Tensor, context: Context) -> Tensor:
        return x.flip(1)


class Boundless(Shift):
    def forward(self, x: Tensor, context: Context) -> Tensor:
        return x / 0


class Lazy(Shift):
    def __init__(self, shape: Shape, options: ShiftOptions) -> None:
        super().__init__(shape, options)
        self.proj = nn.LazyLinear(shape.d_model)


class Overwriting(Shift):
    def forward(self, x: Tensor, context: Context) -> Tensor:
        x += 1
        return x.clone()


class Spilling(Shift):
    uses_memory = True

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return with_memory(x, context)


class Endless(Shift):
    longest = "any"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (Boundless, "block 'mine' answers random tokens with numbers that are not finite$"),
        (Lazy, "block 'mine' cannot be built with .*: ValueError: Attempted to use an uninitialized parameter"),
        (Overwriting, "block 'mine' cannot be trained: RuntimeError: .* has been modified by an inplace operation"),
        (Spilling, r"block 'mine' answers \(2, 16, 16\) with \(2, 23, 16\); it must keep the shape"),
        (Endless, "block 'mine' cannot tell its reach: TypeError: .* is no nas.specs.base.Reach of a whole number"),
        (Broken, r"block 'mine' cannot be built with \{'by': 1, 'kind': 'plain'\}: KeyError: 'n_groups\\nand more'$"),
        (Growing, r"block 'mine' answers \(2, 16, 16\) with \(2, 16, 32\); it must keep the shape \(B, T, D\)$"),
        (Tuples, r"block 'mine' answers \(2, 16, 16\) with tuple; it must keep the shape"),
        (Failing, "block 'mine' cannot run 15 tokens: RuntimeError: "),
        (Peeking, "block 'mine' lets a token see later ones, though the space is causal; heed context.causal"),
    ],
)
def test_a_mistake_in_a_block_is_told_before_the_training(found: type[Block], message: str) -> None:
    body = small()
    if found is Spilling:
        body["space"]["memory_length"] = 8
    if found is Endless:
        body["task"] = {"train_length": 16, "serve": [{"batch": 2, "query_length": 17}]}
    if found is Failing:
        body["space"]["max_len"] = 15
        body["task"] = {"train_length": 15, "serve": [{"batch": 2, "query_length": 15}]}
    with pytest.raises(InvalidInput, match=f"^{message}") as raised:
        search(body, blocks={"mine": found}, text=tiny.text())
    assert "\n" not in str(raised.value)


def test_costs_that_cannot_be_counted_name_the_block() -> None:
    spec = own_block.describe("mine", Broken)
    with pytest.raises(InvalidInput, match=r"^block 'mine' cannot be built with ShiftOptions\(by=1, kind='plain'\): "):
        spec.parameters(SHAPE, ShiftOptions())
    with pytest.raises(InvalidInput, match=r"^block 'mine' cannot count its FLOPs: RuntimeError: "):
        own_block.describe("mine", Failing).flops(SHAPE, ShiftOptions(), 5, 0)


def small(**overrides: Any) -> dict[str, Any]:
    """The JSON of a search of about a second, which decides by its parsimony pass."""
    method = {
        "n_steps": 60, "warmup_share": 0.2, "alpha_share": 0.5, "alpha_lr": 0.08, "lr": 1e-2, "report_every": 20,
        "checkpoint_every": 20, "prune_steps": 4, "prune_windows": 16,
    }  # fmt: skip
    body: dict[str, Any] = tiny.request(method={**method, **overrides.pop("method", {})}).model_dump(mode="json")
    body["space"]["candidates"] = ["identity"]
    body["retrain"]["baselines"] = []
    for part, values in overrides.items():
        body[part] = {**body[part], **values} if isinstance(values, dict) else values
    return body


def table_for(body: dict[str, Any]) -> LatencyTable:
    return tiny.table(SearchRequest.model_validate(body).space, shift=1.0)


def search_for_shift(found: type[Block], **overrides: Any) -> SearchResult:
    """Search with this class for "shift", by a table that is made up: measuring would take most of the time."""
    catalog.register(own_block.describe("shift", found))
    body = small(**overrides)
    body["space"]["candidates"].append("shift")
    return search(body, blocks={"shift": found}, text=tiny.text(), table=table_for(body))


def test_a_search_takes_a_class_and_tells_what_it_found() -> None:
    told = []
    threads = torch.get_num_threads()
    result = search(
        small(method={"prune_steps": 0}, trials={"n_seeds": 2}),
        blocks={"shift": Shift},
        text=tiny.text().decode(),
        on_record=lambda seed, record: told.append((seed, record.step)),
    )
    assert result.request.space.labels == ["identity", "shift"]
    assert result.request.space.candidate("shift").options == {"by": 1, "kind": "plain"}
    assert [each.seed for each in result.seeds] == [0, 1]
    assert told == [(seed, step) for seed in (0, 1) for step in (0, 20, 40, 60)]
    assert "shift" in result.architecture.labels
    assert str(result.architecture).count("H") == result.architecture.labels.count("shift")
    assert result.best.val_loss == min(each.val_loss for each in result.seeds)
    assert result.records[-1].last
    assert_close(torch.tensor(result.probabilities).sum(dim=-1), torch.ones(2))
    assert len(result.table.entries) == 2
    task = result.request.task
    assert (task.dataset, task.dataset_fingerprint) == ("own-text", fingerprint(tiny.text()))
    assert torch.get_num_threads() == threads
    network = build(result.request.network_config(result.architecture.labels, result.request.task.vocab_size))
    assert any(isinstance(each, Shift) for each in network.modules())


def test_a_search_gives_the_records_of_the_trial_itself() -> None:
    catalog.register(own_block.describe("shift", Shift))
    body = small()
    body["space"]["candidates"].append("shift")
    request, table = SearchRequest.model_validate(body), table_for(body)
    result = search(request, text=tiny.text(), table=table)
    alone = Search(request.resolve({}, 0), parts=result.parts, table=table).run()
    assert [replace(each, tokens_per_s=None) for each in result.records] == [
        replace(each, tokens_per_s=None) for each in alone
    ]
    assert result.table == table


def test_a_class_of_the_same_name_replaces_the_one_before() -> None:
    search_for_shift(Shift)
    result = search_for_shift(Echo)
    assert result.request.space.candidate("shift").options == {}
    assert block_class("shift") is Echo


@dataclass(frozen=True)
class Misdefaulted:
    by: int = "one"  # type: ignore[assignment]


def test_defaults_of_another_type_are_one_line() -> None:
    found = type("Misdefaulting", (Shift,), {"Options": Misdefaulted})
    message = "^default 'one' of option 'by' of block 'mine' is not of its type: input should be a valid integer"
    with pytest.raises(InvalidInput, match=message):
        search({}, blocks={"mine": found})


def test_a_request_made_for_the_class_before_says_which_option_is_gone() -> None:
    catalog.register(own_block.describe("shift", Shift))
    request = SearchRequest.model_validate({**small(), "space": {"candidates": ["shift"]}})
    with pytest.raises(ValueError, match=r"unknown option 'by' of block 'shift'; known: none"):
        search(request, blocks={"shift": Gelu}, text=tiny.text())


def test_what_a_search_in_python_cannot_use_is_one_line() -> None:
    body = small()
    table = table_for(body)
    other = "0" * 32
    ranges = [{"pointer": "/method/lr", "low": 1e-3, "high": 1e-2}]
    for changes, given, error, message in [
        ({"method": {"lr": 2}}, None, InvalidInput, r"^method\.lr: input should be less than or equal to 1$"),
        ({"ranges": ranges}, None, InvalidInput, "ranges has 1 entries; a search in Python draws no samples, so empty"),
        ({"latency_table": other}, None, InvalidInput, f"the request names latency table {other}; give it as table=$"),
        (
            {"latency_table": other}, table, InvalidInput,
            f"the request names latency table {other}; the one given is {table.id}$",
        ),
        (
            {"task": {"serve": [{"batch": 3, "query_length": 16}]}}, table, InvalidInput,
            "the latency table holds for .*batch=2 .*; the request serves .*batch=3 .* first$",
        ),
        (
            {"task": {"dataset_fingerprint": "f" * 64}}, table, DataError,
            "dataset 'own-text' has fingerprint [0-9a-f]{12}; the request names f{12}$",
        ),
        (
            {"task": {"tokenizer": {"type": "file", "name": "mine"}}}, table, InvalidInput,
            "tokenizer 'mine' is an uploaded file, which a search in Python cannot read; use another$",
        ),
        (
            {"budget": {"latency": {"ms": 0.5}}}, table, Infeasible,
            r"budget\.latency allows 0.5 ms; the smallest architecture has 1 ms$",
        ),
    ]:  # fmt: skip
        with pytest.raises(error, match=f"^{message}"):
            search(
                {**body, **changes, "task": {**body["task"], **changes.get("task", {})}}, text=tiny.text(), table=given
            )


def test_a_search_in_python_reads_a_file_of_any_format_and_draws_synthetic_tasks(tmp_path: Path) -> None:
    alphabet = 3 * ascii_lowercase  # from any letter on, so that the next one can be learnt
    lines = [json.dumps({"text": alphabet[n % 26 : n % 26 + 10 + n // 26]}) for n in range(520)]
    (tmp_path / "letters.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    body = small()
    found = search({**body, "task": {**body["task"], "tokenizer": "characters"}}, text=tmp_path / "letters.jsonl.gz")
    assert found.request.task.dataset == "own-text"
    assert found.request.task.vocab_size < 30
    assert found.parts.training.held_out(found.request.task, 3).tokens.shape == (3, 16), "its files are gone, not it"
    task = {
        **body["task"], "objective": "token_classification", "dataset": "token-wise",
        "dataset_options": {"n_symbols": 8},
    }  # fmt: skip
    space = {**body["space"], "backbone": {"pooling": "none"}}
    assert search({**body, "space": space, "task": task}).request.space.backbone.n_classes == 8
    with pytest.raises(InvalidInput, match="'token-wise' is a synthetic task, which draws its own data; give no text"):
        search({**body, "space": space, "task": task}, text="some text")


def test_a_search_in_which_nothing_moved_says_so() -> None:
    with pytest.raises(SearchFailed, match=r"^no slot's alpha moved beyond chance"):
        search_for_shift(Shift, method={"n_steps": 40, "warmup_share": 0.99, "settle_share": 0.0})


def test_a_search_whose_weights_have_not_learnt_says_so_and_derives_nothing() -> None:
    with pytest.raises(SearchFailed, match=r"^the search has not learnt: its path's loss is .* at step 0, a fall of"):
        search_for_shift(Shift, method={"lr": 1e-9})


def test_a_seed_in_which_nothing_moved_has_no_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, True])  # of the two seeds

    def derive_or_fail(*arguments: Any, **named: Any) -> Architecture:
        if not next(answers):
            raise SearchFailed("nothing moved")
        return derive(*arguments, **named)

    monkeypatch.setattr("nas.derive.derive", derive_or_fail)
    result = search_for_shift(Shift, method={"prune_steps": 0}, trials={"n_seeds": 2})
    assert [(each.architecture is None, each.reason) for each in result.seeds] == [
        (True, "nothing moved"), (False, None),
    ]  # fmt: skip
    assert result.best.seed == 1


NOTEBOOK = """
from dataclasses import dataclass
import torch
from nas.blocks.base import Block
from nas.export.standalone import join_sources
from nas.search import search
from tests import tiny

@dataclass(frozen=True)
class MyOptions:
    by: int = 1

class Mine(Block):
    Options = MyOptions
    def __init__(self, shape, options):
        super().__init__(shape, options)
        self.by = options.by
        self.proj = torch.nn.Linear(shape.d_model, shape.d_model)
    def forward(self, x, context):
        return self.proj(torch.nn.functional.pad(x, (0, 0, self.by, 0))[:, : x.shape[1]])

result = search(REQUEST, blocks={"mine": Mine}, text=tiny.text())
print(result.architecture, result.request.space.labels)
try:
    join_sources({"mine": Mine})
except ValueError as error:
    print(error)
"""


def test_a_class_typed_into_a_notebook_is_searched_with() -> None:
    done = run("-", given=NOTEBOOK.replace("REQUEST", repr(small())))
    found, refusal = done.splitlines()
    assert found.endswith("['identity', 'mine']")
    assert "M" not in found  # MGK's
    assert refusal.startswith("the source of module '__main__' is no file; put the block and its Options into a .py")


# -- the package, installed -------------------------------------------------------------------------------------------


def run(*arguments: str, given: str = "", path: str = "") -> str:
    """What a fresh Python prints; it imports from the repository, and before that from `path`."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT))))}
    done = subprocess.run(
        [sys.executable, *arguments], input=given, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_installed_example_is_searched_with_and_exported(tmp_path: Path) -> None:
    site, out = tmp_path / "site", tmp_path / "out"
    source = shutil.copytree(EXAMPLE, tmp_path / "own_block")  # a build must leave nothing in the repository
    pip = ("-m", "pip", "--quiet", "--disable-pip-version-check", "install")
    run(*pip, "--no-index", "--no-deps", "--no-build-isolation", "--target", str(site), str(source))
    (tmp_path / "text.txt").write_bytes(tiny.text())
    body = small(space={"candidates": ["identity", {"label": "wide", "block": "conv", "options": {"kernel": 6}}]})
    body["task"]["dataset"] = "mine"
    (tmp_path / "request.json").write_text(json.dumps(body))
    search_command = ("-m", "api.cli", "search", str(tmp_path / "request.json"), "--local")
    run(*search_command, "--data", f"mine={tmp_path / 'text.txt'}", "--out", str(out), path=str(site))

    result = json.loads((out / "result.json").read_text())
    assert "wide" in result["derived"]["slots"]
    assert "C" in result["derived"]["string"]
    assert result["export"]["logits_max_abs_difference"] < 1e-5
    with unpacked(out / "export.zip") as export:
        model = (export.folder / "model.py").read_text()
        assert (site / "blockwright_conv" / "conv.py").read_text().split("class DepthwiseConvolution")[1] in model
        assert "import blockwright_conv" not in model
        assert "from blockwright_conv" not in model
        told = json.loads((export.folder / "architecture.json").read_text())["candidates"]
        reach = {"longest": None, "why": "each output sees 6 tokens wherever they stand, so any length will do"}
        assert [each["reach"] for each in told if each["label"] == "wide"] == [reach]
        assert export.sample("one", 20).startswith("one")
