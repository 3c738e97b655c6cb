"""What a search has left in its folder, for a report: read of the files alone, so that an unfinished one is told too.

Loads no torch: `blockwright report FOLDER` uses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.errors import InvalidInput
from nas.report import read, steps
from nas.report.data import Evidence, KeptArchitecture, KeptTable, ReportData, Trial

WARNINGS = "warnings.json"


def report_data(folder: Path, result: Mapping[str, Any] | None = None) -> ReportData:
    """Everything behind a report.

    Args:
        folder: of the search.
        result: what result.json is going to hold; None reads it where it is.

    Raises:
        InvalidInput: the folder holds no search, or a file of it cannot be read.
    """
    folder = folder.resolve()
    request = _json(folder / "request.json")
    found = result if result is not None else _json(folder / "result.json")
    if not isinstance(request, dict):
        raise InvalidInput(f"{folder} holds no search; the folder of one has a request.json")
    known = sorted(
        (_trial(each) for each in (folder / "trials").glob("*-*-*") if each.is_dir()),
        key=lambda each: (each[0].kind != "search", each[0].sample, each[0].seed),
    )
    trials = tuple(trial for trial, _ in known)
    warned = [each for each in read.items(_json(folder / WARNINGS)) if isinstance(each, str)]
    warned += [line for _, lines in known for line in lines]
    table = _json(folder / "table.json")
    others = [_json(path) for path in sorted((folder / "tables").glob("*.json"))]
    return ReportData(
        search_id=folder.name,
        name=read.text(request.get("name")) or "search",
        state="succeeded" if found else "unfinished",
        origin="folder",
        request=request,
        result=found if isinstance(found, Mapping) else None,
        trials=trials,
        architectures=_architectures(found, trials),
        tables=_tables([table, *others]),
        warnings=tuple(dict.fromkeys(warned)),
    )


def _json(path: Path) -> Any:
    """None where there is no such file.

    Raises:
        InvalidInput: it is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {str(error).lower()}") from None


def _trial(folder: Path) -> tuple[Trial, list[str]]:
    """A trial, and what it warned of."""
    kind, sample, seed = folder.name.split("-", 2)
    path = folder / "reports.jsonl"
    found = _index(path)
    taken = steps.chosen(list(found))
    records = _records(path, [found[step][0] for step in taken])
    newest = records[-1] if records else {}
    large = set(steps.with_matrices(taken, len(read.items(newest.get("probabilities")))))
    told = [
        each if step in large else {**each, "probabilities": None} for step, each in zip(taken, records, strict=True)
    ]
    saved = read.mappings(_json(folder / "checkpoints.json"))
    trial = Trial(
        id=folder.name,
        kind=kind,
        sample=int(sample) if sample.isdecimal() else 0,
        seed=int(seed) if seed.isdecimal() else 0,
        state="succeeded" if any(each.get("last") for each in saved) else "unfinished",
        steps=tuple(steps.step_of(each) for each in told),
        evidence=Evidence.of(newest) if newest.get("probabilities") else None,
    )
    warned = [f"{trial.name}: {line}" for _, (_, lines) in sorted(found.items()) for line in lines]
    return trial, warned


def _index(path: Path) -> dict[int, tuple[int, list[str]]]:
    """By step, where its line begins and what it warns of; a line that was cut off is left out."""
    found: dict[int, tuple[int, list[str]]] = {}
    if not path.exists():
        return found
    with path.open("rb") as file:
        start = 0
        for line in file:  # one at a time: a long search of a deep space has reported a lot
            record = _record(line)
            if (step := read.whole(record.get("step"))) is not None:
                found[step] = (start, (read.text(record.get("warning")) or "").splitlines())
            start += len(line)
    return found


def _records(path: Path, starts: list[int]) -> list[Mapping[str, Any]]:
    """The records whose lines begin there."""
    if not starts:
        return []
    found = []
    with path.open("rb") as file:
        for start in starts:
            file.seek(start)
            found.append(_record(file.readline()))
    return found


def _record(line: bytes) -> Mapping[str, Any]:
    try:
        return read.mapping(read.at(json.loads(line), "record"))
    except ValueError:
        return {}


def _architectures(result: object, trials: tuple[Trial, ...]) -> tuple[KeptArchitecture, ...]:
    """Of the result, under the names that the folder's store gives them: role and trial."""
    chosen = read.at(result, "derived")
    found = []
    for each in read.mappings(read.at(result, "architectures")):
        sample, seed = read.whole(each.get("sample")), read.whole(each.get("seed"))
        trial = None if sample is None or seed is None else f"search-{sample}-{seed}"
        found.append(
            KeptArchitecture(
                id=f"{each.get('role')}-{trial}" if trial else str(each.get("role")),
                role=str(each.get("role")),
                string=str(each.get("string")),
                trial=trial if trial in {known.id for known in trials} else None,
                slots=read.texts(each.get("slots")),
                undecided=read.wholes(each.get("undecided")),
                predicted_ms=read.number(each.get("predicted_ms")),
                is_result=each == chosen,
            )
        )
    return tuple(found)


def _tables(bodies: list[Any]) -> tuple[KeptTable, ...]:
    """Each once, by the hash of its content; one of another format keeps its place under no id of ours."""
    from nas.cost import LatencyTable

    found: dict[str, KeptTable] = {}
    for body in bodies:
        if isinstance(body, dict):
            try:
                own = LatencyTable.model_validate(body).id
            except ValueError:
                continue
            found.setdefault(own, KeptTable(own, body))
    return tuple(found.values())
