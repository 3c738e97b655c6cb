"""The catalogue lists every block without torch, and its formulas agree with the classes it names."""

import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from nas import catalog
from nas.blocks import block_class
from nas.config.base import one_line
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import InvalidInput
from nas.options import Shape

SHAPES = [Shape(64, 4, 128), Shape(32, 8, 16), Shape(24, 2, 10, positions="none")]


@pytest.mark.parametrize("name", sorted(catalog.blocks()))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_parameter_formula_counts_what_the_class_holds(name: str, shape: Shape) -> None:
    spec = catalog.block(name)
    options = spec.options()
    built = block_class(name)(shape, options)
    assert spec.parameters(shape, options) == sum(parameter.numel() for parameter in built.parameters())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("attention", {"n_heads": 2}),
        ("ffn", {"ratio": 1}),
        ("sgu", {"ratio": 6}),
        ("mgk", {"n_heads": 4, "n_keys": 3}),
        ("mgk", {"n_keys": 1}),
    ],
    ids=str,
)
def test_parameter_formula_follows_the_options(name: str, options: dict[str, int]) -> None:
    spec = catalog.block(name)
    chosen = spec.options(**options)
    built = block_class(name)(SHAPES[0], chosen)
    assert spec.parameters(SHAPES[0], chosen) == sum(parameter.numel() for parameter in built.parameters())


def test_attention_and_ffn_have_the_known_counts() -> None:
    shape = Shape(512, 8, 64)
    tokens = 64
    attention, ffn = catalog.block("attention"), catalog.block("ffn")
    assert attention.parameters(shape, attention.options()) == 4 * 512 * 512
    assert ffn.parameters(shape, ffn.options()) == 2 * 512 * 2048 + 2048 + 512  # par-search.md 1.4, without the norm
    assert ffn.flops(shape, ffn.options(), tokens, 0) == 4 * tokens * 512 * 2048
    assert attention.flops(shape, attention.options(), tokens, 0) == 8 * tokens * 512**2 + 4 * tokens**2 * 512


@pytest.mark.parametrize("name", ["attention", "sgu", "mgk"])
def test_flops_of_token_mixers_grow_faster_than_the_sequence(name: str) -> None:
    spec = catalog.block(name)
    short, long = (spec.flops(SHAPES[0], spec.options(), tokens, 0) for tokens in (32, 64))
    assert long > 2 * short


def test_ffn_flops_are_linear_and_identity_costs_nothing() -> None:
    ffn, identity = catalog.block("ffn"), catalog.block("identity")
    assert ffn.flops(SHAPES[0], ffn.options(), 64, 0) == 2 * ffn.flops(SHAPES[0], ffn.options(), 32, 0)
    assert identity.flops(SHAPES[0], identity.options(), 64, 0) == 0
    assert identity.parameters(SHAPES[0], identity.options()) == 0


def test_every_spec_is_complete_and_tells_itself_apart() -> None:
    specs = list(catalog.blocks().values())
    for spec in specs:
        assert is_dataclass(spec.options)
        assert spec.family in catalog.FAMILIES
        assert spec.description
        assert block_class(spec.name).Options is spec.options
        spec.options()  # every field has a default
        assert all(field.name for field in fields(spec.options))
    for attribute in ("name", "letter", "colour"):
        values = [getattr(spec, attribute) for spec in specs]
        assert len(set(values)) == len(values)
        assert all(len(spec.letter) == 1 for spec in specs)


def test_unknown_block_names_the_known_ones() -> None:
    with pytest.raises(
        InvalidInput, match=r"^unknown candidate block 'sgux'; known: attention, ffn, identity, mgk, sgu$"
    ):
        catalog.block("sgux")


def installed(monkeypatch: pytest.MonkeyPatch, value: str) -> EntryPoint:
    """Pretend that an installed package registers one block."""
    entry = EntryPoint(name="block", value=value, group=catalog.ENTRY_POINT_GROUP)
    monkeypatch.setattr(catalog, "entry_points", lambda group: [entry] if group == entry.group else [])
    return entry


@pytest.fixture
def _fresh_catalogue(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(catalog, "_own", {})
    catalog.installed.cache_clear()
    yield
    catalog.installed.cache_clear()


def left_out(entry: EntryPoint) -> str:
    """What is said of the one installed package, whose block is left out and nothing else."""
    assert list(catalog.blocks()) == list(catalog.BUILT_IN)
    (reason,) = catalog.installed().refused
    assert "\n" not in reason
    with pytest.raises(
        InvalidInput, match=r"^unknown candidate block 'wide_ffn'; known: .*, sgu; left out: "
    ) as raised:
        catalog.block("wide_ffn")
    assert str(raised.value).endswith(f"; left out: {reason}")
    start = f"entry point {entry.value!r}"
    assert reason.startswith(start)
    return reason.removeprefix(start)


@pytest.mark.usefixtures("_fresh_catalogue")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("COPY", " registers block 'ffn', a name that is taken"),
        ("SAME_LETTER", " registers letter 'F', which is block 'ffn''s"),
        ("TEXT", " names 'no spec'; it must name a nas.specs.base.BlockSpec"),
        (
            "NOTHING",
            " cannot be loaded: AttributeError: module 'tests.nas.test_catalog' has no attribute 'NOTHING'",
        ),
    ],
)
def test_what_an_installed_package_may_not_register(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    entry = installed(monkeypatch, f"tests.nas.test_catalog:{value}")
    assert left_out(entry) == message


@pytest.mark.usefixtures("_fresh_catalogue")
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ImportError("no module there"), "no module there"),
        (ValueError("some news\nof two lines"), "ValueError: some news"),
        (SystemExit(3), "SystemExit: 3"),
        (KeyError(), "KeyError: no reason given"),
    ],
    ids=repr,
)
def test_package_whose_import_fails_is_left_out(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, message: str
) -> None:
    def load(entry: EntryPoint) -> None:
        raise error

    entry = installed(monkeypatch, "broken.spec:SPEC")
    monkeypatch.setattr(EntryPoint, "load", load)
    assert left_out(entry) == f" cannot be loaded: {message}"


def broken(*arguments: Any) -> Any:
    raise ZeroDivisionError("division by zero")


@dataclass(frozen=True)
class Unreadable:
    module: types.ModuleType | None = None


@dataclass(frozen=True)
class Unmade:
    def __post_init__(self) -> None:
        raise KeyError("ratio")


@dataclass(frozen=True)
class Unchecked:
    def check(self, shape: Shape) -> None:
        raise KeyError("ratio")


@dataclass(frozen=True)
class Encoding:
    def check(self, shape: Shape) -> None:
        if shape.causal:
            raise ValueError("causal is true; it must be false")


@pytest.mark.usefixtures("_fresh_catalogue")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parameters": broken}, "block 'wide_ffn' cannot count its parameters: ZeroDivisionError: division by zero"),
        ({"flops": broken}, "block 'wide_ffn' cannot count its flops: ZeroDivisionError: division by zero"),
        ({"cache_bytes": broken}, "block 'wide_ffn' cannot count its cache_bytes: ZeroDivisionError: division by zero"),
        ({"reach": broken}, "block 'wide_ffn' cannot tell its reach: ZeroDivisionError: division by zero"),
        (
            {"parameters": lambda *_: 0.5},
            "block 'wide_ffn' cannot count its parameters: TypeError: '0.5' is no whole number from 0 on",
        ),
        (
            {"reach": lambda *_: "far"},
            "block 'wide_ffn' cannot tell its reach: TypeError: 'far' is no nas.specs.base.Reach of a whole number or "
            "None and a sentence",
        ),
        (
            {"options": Unreadable},
            "Options of block 'wide_ffn' cannot be read from JSON: Unable to generate pydantic-core schema for ",
        ),
        ({"options": Unmade}, "block 'wide_ffn' cannot be given its default options: KeyError: 'ratio'"),
        (
            {"options": Unchecked},
            "check of block 'wide_ffn' raises KeyError: 'ratio'; it may raise a ValueError for a shape that does not "
            "fit",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_spec_that_does_not_do_what_it_promises_is_left_out(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    entry = installed(monkeypatch, "elsewhere.spec:SPEC")
    monkeypatch.setattr(EntryPoint, "load", lambda entry: replace(PLUG_IN, **change))
    assert left_out(entry).startswith(f": {message}")


@pytest.mark.usefixtures("_fresh_catalogue")
def test_formulas_of_a_block_for_other_shapes_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "elsewhere.spec:SPEC")
    monkeypatch.setattr(EntryPoint, "load", lambda entry: replace(PLUG_IN, options=Encoding, flops=broken))
    assert catalog.block("wide_ffn").options is Encoding


@pytest.mark.usefixtures("_fresh_catalogue")
def test_spec_of_an_installed_package_that_does_not_fit_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = installed(monkeypatch, "tests.nas.outdated_spec:SPEC")
    monkeypatch.setattr(EntryPoint, "load", lambda entry: replace(PLUG_IN, flops=lambda shape, options, tokens: 0))
    assert left_out(entry) == (
        " cannot be loaded: flops of block 'wide_ffn' takes (shape, options, tokens); it must take "
        "(shape, options, tokens, memory)"
    )


@pytest.mark.usefixtures("_fresh_catalogue")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"options": Unmade}, "block 'wide_ffn' cannot take its options: KeyError: 'ratio'"),
        (
            {"options": Unchecked},
            "block 'wide_ffn' cannot be checked as candidate 'wide_ffn': KeyError: 'ratio'",
        ),
        ({"reach": broken}, "block 'wide_ffn' cannot tell its reach: ZeroDivisionError: division by zero"),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_code_of_others_that_fails_on_a_request_is_one_line_with_the_block(
    change: dict[str, Any], message: str
) -> None:
    catalog.register(replace(PLUG_IN, **change))
    body = {"space": {"candidates": ["attention", "ffn", "wide_ffn"]}, "task": {"serve": [{"query_length": 1000}]}}
    with pytest.raises(ValidationError) as raised:
        SearchRequest.model_validate(body)
    assert one_line(raised.value).endswith(message)


@pytest.mark.usefixtures("_fresh_catalogue")
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere:Block", "block 'wide_ffn' cannot be imported from 'nowhere:Block': ModuleNotFoundError: No module"),
        ("nas.text:NAME", "block 'wide_ffn' has class path 'nas.text:NAME', which names no subclass of nas.blocks"),
    ],
)
def test_class_that_cannot_be_imported_is_one_line_with_the_block(path: str, message: str) -> None:
    catalog.register(replace(PLUG_IN, class_path=path))
    with pytest.raises(InvalidInput, match=f"^{message}"):
        block_class("wide_ffn")


@pytest.mark.usefixtures("_fresh_catalogue")
def test_block_of_an_installed_package_is_a_candidate_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "tests.nas.test_catalog:PLUG_IN")
    space = SearchSpace.model_validate({"candidates": ["attention", "wide_ffn"]})
    assert space.candidate("wide_ffn").options == vars(COPY.options())
    assert space.candidate("wide_ffn").family == "wide"
    assert catalog.families() == (*catalog.FAMILIES, "wide")


def test_spec_with_the_first_fields_alone_tells_only_what_is_safe() -> None:
    assert PLUG_IN.cache_bytes is None
    reach = PLUG_IN.reach(SHAPES[1], COPY.options())
    assert (reach.longest, reach.why) == (16, "it tells nothing of inputs longer than max_len, 16 tokens")


@dataclass
class Thawed:
    ratio: int = 4


@dataclass(frozen=True)
class Demanding:
    ratio: int


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Wide"}, "name of a block is 'Wide'; it must be a lower-case letter and then at most 39 lower-case"),
        ({"description": None}, "description of a block is None; it must be a string$"),
        ({"letter": 5}, "letter of a block is 5; it must be a string$"),
        ({"family": "a b"}, "family of a block is 'a b'; it must be a lower-case letter and then at most 39"),
        ({"letter": "WF"}, "letter of block 'wide_ffn' is 'WF'; it must be one visible character$"),
        ({"letter": " "}, "letter of block 'wide_ffn' is ' '; it must be one visible character$"),
        ({"colour": "red"}, "colour of block 'wide_ffn' is 'red'; it must look like '#66CCEE'$"),
        ({"options": Thawed}, "options of block 'wide_ffn' is .*Thawed'>; it must be a frozen dataclass whose fields"),
        ({"options": Demanding}, "options of block 'wide_ffn' is .*Demanding'>; it must be a frozen dataclass"),
        ({"options": int}, "options of block 'wide_ffn' is <class 'int'>; it must be a frozen dataclass"),
        (
            {"reach": lambda shape: None},
            r"reach of block 'wide_ffn' takes \(shape\); it must take \(shape, options\)$",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "+".join(value),
)
def test_spec_that_does_not_fit_names_the_field_and_what_would_be_right(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{message}"):
        replace(PLUG_IN, **change)


@pytest.mark.usefixtures("_fresh_catalogue")
def test_registered_block_is_known_in_this_process_until_another_takes_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    catalog.register(PLUG_IN)
    again = replace(PLUG_IN, description="written anew")
    catalog.register(again)
    assert catalog.block("wide_ffn") is again
    assert list(catalog.blocks())[-1] == "wide_ffn"
    with pytest.raises(InvalidInput, match=r"^block 'ffn' is built in; give yours another name$"):
        catalog.register(COPY)
    with pytest.raises(InvalidInput, match=r"^letter 'F' of block 'wide' is block 'ffn''s; take another$"):
        catalog.register(replace(PLUG_IN, name="wide", letter="F"))
    monkeypatch.setattr(catalog, "_own", {})
    catalog.installed.cache_clear()
    installed(monkeypatch, "tests.nas.test_catalog:PLUG_IN")
    with pytest.raises(InvalidInput, match=r"^block 'wide_ffn' is installed; give yours another name$"):
        catalog.register(again)


def test_catalogue_and_requests_load_no_torch() -> None:
    code = "import sys, nas.catalog, nas.config.request, nas.architecture, nas.cost; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert torch.__version__  # here it is loaded; there it must not be


COPY = catalog.block("ffn")
TEXT = "no spec"
SAME_LETTER = replace(COPY, name="wide_ffn")
# By position and without what came later, as the first packages wrote it.
PLUG_IN = catalog.BlockSpec(
    "wide_ffn", "a feed-forward network from elsewhere", "wide", "W", "#000000",
    COPY.options, COPY.parameters, COPY.flops, COPY.class_path,
)  # fmt: skip
