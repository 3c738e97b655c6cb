"""Makes `model.py`: the sources of a network joined into one file that needs only torch and safetensors.

Where a model has a tokenizer.json of the library `tokenizers`, it needs that too, and imports it when it reads it.

The sources are the very files that trained the network, cut with `ast`: their imports of each other go, everything else
stays as written, comments included. What could change its meaning when joined is refused.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import resolve_name
from types import ModuleType

from nas import network, options
from nas.blocks import base
from nas.blocks.base import Block
from nas.errors import InvalidInput
from nas.export import program

ALLOWED_PACKAGES = frozenset({"torch", "safetensors", "tokenizers", *sys.stdlib_module_names})

# Our modules that may be joined where one of them, or a block, imports from them; so may any in nas.blocks.
_OURS = frozenset(
    {
        "nas.backbone", "nas.export.arguments", "nas.export.program", "nas.export.vocabulary", "nas.heads",
        "nas.network", "nas.options",
    }
)  # fmt: skip

HEADER = '''"""A model found and trained by Blockwright, in one file: README.md names the packages it needs.

From a shell:   python model.py --help
From Python:    network = model.load(); logits = network(tokens)   # (B, T) token ids -> (B, T, V), or (B, C) of a text
"""

from __future__ import annotations

import warnings

warnings.filterwarnings("ignore", message="Failed to initialize NumPy")  # torch can do without it, and so does this
'''

FOOTER = '''BLOCKS: dict[str, type[Block]] = {{
{blocks}}}


def load(folder: str | Path = Path(__file__).parent) -> Network:
    """The trained network of this folder. Raises: ValueError: a file is missing, damaged, or does not fit."""
    return read_network(Path(folder), BLOCKS)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent, BLOCKS))
'''


@dataclass(frozen=True)
class _Import:
    """One imported name: `name` here means `meaning`, from module `source`; `text` is its part of the statement."""

    source: str
    name: str
    meaning: str
    text: str
    statement: ast.Import | ast.ImportFrom

    @property
    def module(self) -> str:
        """The module that is read: of `from package import module` that module, not the package."""
        named = self.meaning.startswith(f"{self.source}.") and self.meaning in sys.modules
        return self.meaning if named else self.source


def join_sources(classes: Mapping[str, type[Block]]) -> str:
    """The text of `model.py` for networks made of these blocks.

    Args:
        classes: block classes by registered name; their modules, those of their Options, and what these import from
            their own packages are joined.

    Raises:
        InvalidInput: a class stands in no file or inside a function, a module imports what the file cannot carry or
            renames what it imports from a joined module, or two modules give one name two meanings.
    """
    modules = _modules(classes)
    joined = set(modules)
    # name -> (what it means, where that was said first)
    meanings = {name: (name, "Python itself") for name in dir(builtins)}
    meanings |= {name: (name, "every model.py") for name in ("BLOCKS", "load", "warnings")}
    kept: set[tuple[str, str]] = set()  # (source of a `from` import or "", what is imported)
    bodies = []
    for module, (source, tree, imports) in modules.items():
        for each in imports:
            _check(each, module, joined, at_top=each.statement in tree.body)
        named = [(each.name, each.meaning) for each in imports]
        named += [(name, f"{module}.{name}") for name in _defined(tree)]
        for name, meaning in named:
            first_meaning, first_place = meanings.setdefault(name, (meaning, module))
            if first_meaning != meaning:
                raise InvalidInput(
                    f"name {name!r} means different things in {first_place} and {module}; "
                    "one model.py cannot hold both, so rename one"
                )
        for each in imports:
            if each.statement in tree.body and each.source not in {*joined, "__future__"}:
                kept.add((each.source if isinstance(each.statement, ast.ImportFrom) else "", each.text))
        bodies.append(f"# {'-' * 20} {module}\n\n{_without_imports(tree, source, module)}\n\n")
    blocks = "".join(f"    {name!r}: {found.__name__},\n" for name, found in classes.items())
    return "\n".join([HEADER, _import_text(kept), *bodies, FOOTER.format(blocks=blocks)])


_Read = tuple[str, ast.Module, list[_Import]]


def _modules(classes: Mapping[str, type[Block]]) -> dict[str, _Read]:
    """What is joined, by module name: source, tree and imports; each module after those it imports from."""
    roots = [options.__name__, base.__name__]
    for name, found in classes.items():
        for each in (found, found.Options):
            if each.__qualname__ != each.__name__:
                raise InvalidInput(
                    f"block {name!r} needs {each.__qualname__}, which is defined inside something else; put it at the "
                    "top of a .py file, or model.py cannot carry it"
                )
        for used in (*reversed(found.Options.__mro__), *reversed(found.__mro__)):
            if used.__module__.split(".")[0] not in ALLOWED_PACKAGES:
                roots.append(used.__module__)
    packages = {root.split(".")[0] for root in roots} - {"nas"}
    seen: set[str] = set()
    ordered: dict[str, _Read] = {}

    def follow(name: str) -> None:
        if name in seen:
            return
        seen.add(name)
        module = sys.modules.get(name) or import_module(name)
        source = _source(module)
        tree = ast.parse(source)
        imports = list(_imports(tree, module.__package__ or ""))
        for each in imports:
            if _may_be_joined(each.module, packages):
                follow(each.module)
        ordered[name] = (source, tree, imports)

    for root in [*roots, network.__name__, program.__name__]:
        follow(root)
    return ordered


def _may_be_joined(source: str, packages: set[str]) -> bool:
    return source in _OURS or source.startswith("nas.blocks.") or source.split(".")[0] in packages


def _source(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):  # typed in at a prompt, or in a notebook
        raise InvalidInput(
            f"the source of module {module.__name__!r} is no file; put the block and its Options into a .py file, or "
            "model.py cannot carry them"
        ) from None


def _imports(tree: ast.Module, package: str) -> Iterator[_Import]:
    """Every import of a module, those inside functions too; a relative one as the absolute one that it means."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            for alias in node.names:
                meaning = f"{source}.{alias.name}"
                yield _Import(source, alias.asname or alias.name, meaning, ast.unparse(alias), node)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                meaning = alias.name if alias.asname else first
                yield _Import(alias.name, alias.asname or first, meaning, ast.unparse(alias), node)


def _check(each: _Import, module: str, joined: set[str], *, at_top: bool) -> None:
    if each.module in joined:
        if each.meaning != f"{each.module}.{each.name}" or each.name == "*" or not at_top:
            raise InvalidInput(
                f"{module} must import from {each.module} at its top, name by name and without `as`, "
                "or model.py cannot join them"
            )
    elif each.source.split(".")[0] not in ALLOWED_PACKAGES:
        raise InvalidInput(
            f"{module} imports {each.source!r}, which model.py cannot carry; it can carry the standard library, torch, "
            f"safetensors, {', '.join(sorted(joined - {module}))}"
        )


def _defined(tree: ast.Module) -> Iterator[str]:
    """Every name that the module's top level gives a meaning to, imports aside."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield statement.name
        else:
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


def _import_text(kept: set[tuple[str, str]]) -> str:
    lines = [f"import {text}" for source, text in sorted(kept) if not source]
    for each in sorted({source for source, _ in kept if source}):
        lines.append(f"from {each} import {', '.join(sorted(text for source, text in kept if source == each))}")
    return "\n".join([*lines, "", ""])


def _without_imports(tree: ast.Module, source: str, module: str) -> str:
    """The source without the imports of its top level, and without the empty lines behind them."""
    lines = source.splitlines()
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in reversed(imports):
        end = node.end_lineno or node.lineno
        while end < len(lines) and not lines[end].strip():
            end += 1
        del lines[node.lineno - 1 : end]
    kept = "\n".join(lines)
    body: list[ast.stmt] = [node for node in tree.body if node not in imports]
    if ast.dump(ast.parse(kept)) != ast.dump(ast.Module(body, [])):
        raise InvalidInput(f"{module} has an import and another statement on one line; give each its own")
    return kept
