"""How `model.py` is joined, and what is refused."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nas import catalog
from nas.blocks import block_classes
from nas.blocks.base import Block
from nas.errors import InvalidInput
from nas.export.standalone import join_sources
from nas.options import IdentityOptions

PLUG_IN = """
from nas.blocks.base import Block, Context
from nas.options import IdentityOptions, Shape
{imports}

{statements}

class Plugged(Block):
    Options = IdentityOptions

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return x
"""

MakePlugIn = Callable[..., type[Block]]


@pytest.fixture
def make_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePlugIn]:
    """Installs a block of another package: its module has these imports and statements of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    made = []

    def make(
        imports: str = "from torch import Tensor", statements: str = "", name: str = "plugged_block"
    ) -> type[Block]:
        (tmp_path / f"{name}.py").write_text(PLUG_IN.format(imports=imports, statements=statements))
        made.append(name)
        importlib.invalidate_caches()
        found: type[Block] = importlib.import_module(name).Plugged
        return found

    yield make
    for name in made:
        sys.modules.pop(name, None)


def test_joined_file_imports_torch_safetensors_and_the_standard_library_only() -> None:
    tree = ast.parse(join_sources(block_classes(catalog.blocks())))
    packages: dict[bool, set[str]] = {True: set(), False: set()}  # by whether it is imported at once
    for node in ast.walk(tree):
        at_once = packages[node in tree.body]
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            at_once.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Import):
            at_once |= {alias.name.split(".")[0] for alias in node.names}
    assert packages[True] - sys.stdlib_module_names == {"torch", "safetensors"}
    assert packages[False] - sys.stdlib_module_names == {"tokenizers"}  # where a model needs it


def test_joined_file_holds_the_used_blocks_as_they_are_written_and_no_others() -> None:
    joined = join_sources(block_classes(["sgu"]))
    assert "class SpatialGatingUnit(Block):" in joined
    assert "# W near 0 and b = 1 open the gate" in joined
    assert "class Attention(" not in joined
    assert "'sgu': SpatialGatingUnit" in joined


def test_no_name_is_defined_twice() -> None:
    tree = ast.parse(join_sources(block_classes(catalog.blocks())))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert len(names) == len(set(names))


def test_block_of_another_package_is_joined(make_plug_in: MakePlugIn) -> None:
    plugged = make_plug_in("import math as m\nimport torch.nn.functional\nfrom torch import Tensor", "WIDTH = m.pi")
    joined = join_sources({"plugged": plugged})
    assert "import math as m\n" in joined
    assert "import torch.nn.functional\n" in joined
    assert "WIDTH = m.pi" in joined
    assert "'plugged': Plugged" in joined


def test_modules_of_a_base_class_and_of_options_are_joined_too(make_plug_in: MakePlugIn) -> None:
    make_plug_in(
        "from dataclasses import dataclass\nfrom torch import Tensor",
        "@dataclass(frozen=True)\nclass PlugOptions:\n    pass\n\nclass Parent(Block):\n    pass\n",
        name="plugged_parts",
    )
    plug_in = importlib.import_module("plugged_parts")
    derived = type("Derived", (plug_in.Parent,), {"Options": plug_in.PlugOptions, "__module__": "plugged_parts"})
    joined = join_sources({"derived": derived})
    assert joined.count("class PlugOptions:") == 1
    assert joined.count("class Parent(Block):") == 1


PACKAGE = {
    "__init__.py": "",
    "sizes.py": "LEAST = 3\n",
    "parts.py": "from plugged_package.sizes import LEAST\n\n\ndef most() -> int:\n    return 2 * LEAST\n",
    "mixer.py": "from torch import Tensor\n\nfrom nas.blocks.base import Block, Context\n"
    "from nas.options import IdentityOptions\n{imports}\n\nclass Mixer(Block):\n    Options = IdentityOptions\n\n"
    "    def forward(self, x: Tensor, context: Context) -> Tensor:\n        return x * most()\n",
}


@pytest.fixture
def make_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePlugIn]:
    """Installs a package of several modules; `imports` is how its block reads from the others."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(imports: str) -> type[Block]:
        folder = tmp_path / "plugged_package"
        folder.mkdir()
        for name, text in PACKAGE.items():
            (folder / name).write_text(text.replace("{imports}", imports))
        importlib.invalidate_caches()
        found: type[Block] = importlib.import_module("plugged_package.mixer").Mixer
        return found

    yield make
    for name in [name for name in sys.modules if name.startswith("plugged_package")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    "imports",
    ["from plugged_package.parts import most", "from .parts import most"],
    ids=["absolute", "relative"],
)
def test_modules_that_a_block_imports_from_its_own_package_are_joined_first(
    make_package: MakePlugIn, imports: str
) -> None:
    joined = join_sources({"mixer": make_package(imports)})
    tree = ast.parse(joined)
    order = [each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)]
    assert joined.index("LEAST = 3") < joined.index("def most()") < joined.index("class Mixer(Block)")
    assert order.index("Block") < order.index("Mixer") < order.index("Network")
    assert "plugged_package" not in "".join(line for line in joined.splitlines() if not line.startswith("#"))


def test_a_module_of_the_own_package_taken_as_a_whole_is_refused(make_package: MakePlugIn) -> None:
    found = make_package("from plugged_package import parts\nfrom plugged_package.parts import most")
    with pytest.raises(
        InvalidInput,
        match=r"^plugged_package\.mixer must import from plugged_package\.parts at its top, name by name and without "
        r"`as`, or model\.py cannot join them$",
    ):
        join_sources({"mixer": found})


def test_a_class_inside_a_function_cannot_be_joined() -> None:
    class Local(Block):
        Options = IdentityOptions

    with pytest.raises(
        InvalidInput, match=r"^block 'mine' needs .*Local, which is defined inside something else; put it at the top of"
    ):
        join_sources({"mine": Local})


def test_a_class_that_was_typed_in_cannot_be_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__typed__", ModuleType("__typed__"))
    typed = type("Typed", (Block,), {"Options": IdentityOptions, "__module__": "__typed__"})
    with pytest.raises(
        InvalidInput,
        match=r"^the source of module '__typed__' is no file; put the block and its Options into a \.py file, or "
        r"model\.py cannot carry them$",
    ):
        join_sources({"typed": typed})


@pytest.mark.parametrize(
    ("imports", "statements", "message"),
    [
        pytest.param(
            "from torch import Tensor", "def make_norm():\n    pass",
            "name 'make_norm' means different things in plugged_block and nas.backbone; .* rename one",
            id="function of ours",
        ),
        pytest.param(
            "from torch import Tensor", "FORMAT_VERSION = 2",
            "name 'FORMAT_VERSION' means different things in nas.options and plugged_block", id="constant of ours",
        ),
        pytest.param(
            "from torch import Tensor\nimport torch.fft as F", "",
            "name 'F' means different things in plugged_block and nas.blocks.ffn", id="import of ours",
        ),
        pytest.param(
            "from torch import Tensor", "load = None",
            "name 'load' means different things in every model.py and plugged_block", id="name of every model.py",
        ),
        pytest.param(
            "from torch import Tensor", "sum = None",
            "name 'sum' means different things in Python itself and plugged_block", id="built-in name",
        ),
        pytest.param(
            "from torch import Tensor\nimport numpy", "",
            "plugged_block imports 'numpy', which model.py cannot carry; it can carry the standard library, torch, "
            "safetensors, nas.backbone, nas.blocks.base, ", id="package",
        ),
        pytest.param(
            "from torch import Tensor\nfrom nas.catalog import block", "",
            "plugged_block imports 'nas.catalog', which model.py cannot carry", id="module of ours",
        ),
        pytest.param(
            "from torch import Tensor", "def late():\n    import pydantic",
            "plugged_block imports 'pydantic', which model.py cannot carry", id="inside a function",
        ),
        pytest.param(
            "from torch import Tensor\nfrom nas.blocks.base import rotate as turn", "",
            "plugged_block must import from nas.blocks.base at its top, name by name and without `as`", id="renamed",
        ),
        pytest.param(
            "from torch import Tensor\nimport nas.options", "",
            "plugged_block must import from nas.options at its top", id="module as a whole",
        ),
        pytest.param(
            "from torch import Tensor; LIMIT = 3", "",
            "plugged_block has an import and another statement on one line; give each its own", id="shared line",
        ),
    ],
)  # fmt: skip
def test_what_would_change_its_meaning_is_refused(
    make_plug_in: MakePlugIn, imports: str, statements: str, message: str
) -> None:
    plugged = make_plug_in(imports, statements)
    with pytest.raises(InvalidInput, match=message):
        join_sources({"plugged": plugged, **block_classes(["ffn"])})
