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
    trials = tuple(
        sorted(
            (_trial(each) for each in (folder / "trials").glob("*-*-*") if each.is_dir()),
            key=lambda each: (each.kind != "search", each.sample, each.seed),
        )
    )
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
        warnings=_warnings(folder, trials),
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


def _trial(folder: Path) -> Trial:
    kind, sample, seed = folder.name.split("-", 2)
    records = _records(folder / "reports.jsonl")
    saved = read.mappings(_json(folder / "checkpoints.json"))
    taken = steps.chosen(list(records))
    newest = records[max(records)] if records else {}
    large = set(steps.with_matrices(taken, len(read.items(newest.get("probabilities")))))
    told = [records[step] if step in large else {**records[step], "probabilities": None} for step in taken]
    return Trial(
        id=folder.name,
        kind=kind,
        sample=int(sample) if sample.isdecimal() else 0,
        seed=int(seed) if seed.isdecimal() else 0,
        state="succeeded" if any(each.get("last") for each in saved) else "unfinished",
        steps=tuple(steps.step_of(each) for each in told),
        evidence=Evidence.of(newest) if newest.get("probabilities") else None,
    )


def _records(path: Path) -> dict[int, Mapping[str, Any]]:
    """By step; a line that was cut off is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return {}
    found = {}
    for line in lines[:-1]:
        try:
            record = read.mapping(read.at(json.loads(line), "record"))
        except ValueError:
            continue
        if (step := read.whole(record.get("step"))) is not None:
            found[step] = record
    return found


def _architectures(result: object, trials: tuple[Trial, ...]) -> tuple[KeptArchitecture, ...]:
    """Of the result, under the names that the folder's store gives them: role and trial."""
    chosen = read.at(result, "derived")
    found = []
    for each in read.mappings(read.at(result, "architectures")):
        sample, seed = read.whole(each.get("sample")), read.whole(each.get("seed"))
        trial = None if sample is None or seed is None else f"search-{sample}-{seed}"
        found.append(
            KeptArchitecture(
                id=f"{each.get('role')}-{trial}",
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


def _warnings(folder: Path, trials: tuple[Trial, ...]) -> tuple[str, ...]:
    """What the stages told, then what each trial did; each once."""
    told = [each for each in read.items(_json(folder / WARNINGS)) if isinstance(each, str)]
    for trial in trials:
        for _, record in sorted(_records(folder / "trials" / trial.id / "reports.jsonl").items()):
            told += [f"{trial.name}: {line}" for line in (read.text(record.get("warning")) or "").splitlines()]
    return tuple(dict.fromkeys(told))
