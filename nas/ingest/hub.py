"""A dataset of the Hugging Face hub, or one that `save_to_disk` wrote, through the optional library `datasets`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nas.errors import InvalidInput
from nas.ingest.errors import WrongOptions
from nas.ingest.fields import find_fields, listed
from nas.ingest.options import Options

_PARTS = {"train": "train", "validation": "validation", "valid": "validation", "dev": "validation", "test": "test"}
_UNLABELLED = -1  # how published test splits mark labels that are withheld


class NotAvailable(InvalidInput):
    """The library is not installed, or the hub or a dataset of it cannot be reached."""

    code = "not-available"


def hub(
    name: str, options: Options, *, config: str | None = None, split: str | None = None
) -> tuple[Iterator[bytes], Options]:
    """A dataset as JSON lines, and the options to read them with.

    Its splits train, validation (or valid, dev) and test become the parts; where it has only one of them, or one was
    asked for, we deal. Classes are written by name. Rows without a label that is asked for (-1), and those without a
    text where there are no labels, are passed over.

    Args:
        name: on the hub, such as "ag_news"; or the path of a folder that `save_to_disk` wrote.
        options: which columns mean what, as for a file's rows.
        config: which of the dataset's configurations, where it has several.
        split: the only split that is read.

    Raises:
        NotAvailable: the library is not installed, or the hub cannot be reached.
        WrongOptions: no such dataset, configuration or split.
        BadRow: no such column.
    """
    options = replace(options, format="jsonl", compression="none")
    options.check()
    splits = _load(name, config)
    if split is not None:
        if split not in splits:
            raise WrongOptions(f"{name} has no split {split!r}, it has: {listed(splits)}; name one of them")
        splits = {split: splits[split]}
    parts = {_PARTS[key]: value for key, value in splits.items() if key in _PARTS}
    if split is None and len(splits) > 1:
        if len(parts) < 2:
            raise WrongOptions(f"{name} has the splits {listed(splits)}; name the one to read with option split")
        return _stream(name, parts, options, named=True)
    return _stream(name, splits, options, named=False)


def _load(name: str, config: str | None) -> dict[str, Any]:
    """Splits by name."""
    try:
        import datasets
    except ImportError:
        raise NotAvailable(
            "the library datasets is not installed; install it with: pip install 'blockwright[datasets]'"
        ) from None
    datasets.disable_progress_bars()
    try:
        found = datasets.load_from_disk(name) if Path(name).is_dir() else datasets.load_dataset(name, config)
    except datasets.exceptions.DatasetNotFoundError:
        raise WrongOptions(
            f"there is no dataset {name!r} on the hub that you may read; give its name, or a folder of save_to_disk"
        ) from None
    except FileNotFoundError as error:
        raise WrongOptions(f"no dataset {name!r}: {_line(error)}; give a folder that save_to_disk wrote") from None
    except ConnectionError as error:
        raise NotAvailable(
            f"{name!r} cannot be fetched, the hub is out of reach: {_line(error)}; "
            "go online, or give a folder that save_to_disk wrote"
        ) from None
    except ValueError as error:  # of a configuration that is unknown, or was not named
        raise WrongOptions(f"{name!r} cannot be read: {_line(error)}") from None
    return dict(found) if isinstance(found, datasets.DatasetDict) else {"all": found}


def _line(error: Exception) -> str:
    return f"{' '.join(str(error).split()):.300}"


def _stream(name: str, splits: Mapping[str, Any], options: Options, *, named: bool) -> tuple[Iterator[bytes], Options]:
    first = next(iter(splits.values()))
    fields = find_fields(first.column_names, replace(options, part="train"), name)  # its own column "part" is no part
    columns = {
        role: column
        for role in ("text", "pair", "label", "words", "labels")
        if (column := getattr(fields, role)) is not None
    }
    told = {"format": "jsonl", "compression": "none", "part": options.part, "corpus": options.corpus}
    read = Options.from_json({**told, **{role: role for role in columns if role != "text"}})
    return _lines(splits, columns, named=named), read


def _lines(splits: Mapping[str, Any], columns: Mapping[str, str], *, named: bool) -> Iterator[bytes]:
    labelled = "label" in columns or "labels" in columns
    for part, split in splits.items():
        classes = {role: _classes(split.features[column]) for role, column in columns.items()}
        for row in split.select_columns(list(columns.values())):
            said = {role: _named(row[column], classes[role]) for role, column in columns.items()}
            if said.get("label") == _UNLABELLED or not (labelled or str(said["text"]).strip()):
                continue
            if named:
                said["part"] = part
            yield json.dumps(said, ensure_ascii=False).encode() + b"\n"


def _classes(feature: Any) -> list[str] | None:
    """Names of a column's classes, where it tells them; also of a list of classes."""
    names: list[str] | None = getattr(getattr(feature, "feature", feature), "names", None)
    return names


def _named(value: Any, classes: list[str] | None) -> Any:
    if classes is None or value is None or value == _UNLABELLED:
        return value
    return [_named(each, classes) for each in value] if isinstance(value, list) else classes[value]
