"""From rows of `db` to the answers of `api.schemas`, field by field."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import RootModel, ValidationError

from api import dataset_schemas, estimate_schemas, rule_schemas, schemas
from api.cards import card_of, kind_of
from db import paging
from db.architectures import StoredArchitecture
from db.artifacts import Artifact
from db.datasets import Dataset
from db.events import Event
from db.latency_tables import StoredTable
from db.reports import Matrices, Report
from db.rules import StoredRule
from db.searches import Search
from db.standings import Standing
from db.trials import Trial
from nas import catalog
from nas.config.task import Task
from nas.leading import leading, of_path
from nas.rules import of_today

Row = TypeVar("Row")


class Anything(RootModel[dict[str, Any]]):
    """JSON that was checked when it was stored."""


def page(found: paging.Page[Row], view: Callable[[Row], Any]) -> schemas.Page[Any]:
    return schemas.Page[Any](items=[view(row) for row in found.items], next=found.next_cursor)


def moment(value: datetime | None) -> str | None:
    """RFC 3339 in UTC; what a database returns without a zone is UTC."""
    if value is None:
        return None
    aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return aware.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _moment(value: datetime) -> str:
    return moment(value) or ""


def search(row: Search, standing: Standing, estimate: Mapping[str, Any] | None = None) -> schemas.Search:
    progress = row.progress
    return schemas.Search(
        id=row.id,
        name=row.name,
        state=row.state,
        stage=row.stage,
        cancelling=row.cancelling,
        reason=row.reason,
        created_at=_moment(row.created_at),
        started_at=moment(row.started_at),
        finished_at=moment(row.finished_at),
        attempt=row.attempt,
        labels=list(row.labels),
        last_event=row.last_event,
        progress=schemas.Progress(
            step=progress.step, n_steps=progress.n_steps, share=progress.share, eta_s=progress.eta_s
        ),
        request=row.request,
        latency_table=row.latency_table_id,
        estimate=None if estimate is None else estimate_schemas.TrialEstimate(**estimate),
        result=row.result,
        strip=_strip(row.labels, standing),
        best=_best(row.request, standing),
    )


def _strip(labels: Sequence[str], standing: Standing) -> schemas.Strip | None:
    step = standing.step or 0
    if standing.derived is not None:
        slots, undecided = standing.derived["slots"], standing.derived["undecided"]
        return schemas.Strip(labels=slots, undecided=undecided, step=step, source="derived")
    if standing.probabilities is None:
        return None
    leaders, undecided = leading(standing.probabilities, standing.null_gaps)
    if standing.path is not None:
        leaders, undecided = (
            standing.path,
            of_path(standing.path, undecided, standing.effect_nats, standing.effect_se),
        )
    shown = [labels[index] for index in leaders]
    return schemas.Strip(labels=shown, undecided=undecided, step=step, source="leading")


def _best(request: Mapping[str, Any], standing: Standing) -> schemas.Best | None:
    if standing.test_bits_per_byte is None and standing.val_loss is None:
        return None
    unit, per_token = _unit(request)
    if standing.test_bits_per_byte is not None:
        return schemas.Best(bits_per_byte=standing.test_bits_per_byte, unit=unit, what="test")
    assert standing.val_loss is not None
    bits = standing.val_loss / per_token / math.log(2)
    return schemas.Best(bits_per_byte=bits, unit=unit, what="validation")


def _unit(request: Mapping[str, Any]) -> tuple[str, float]:
    """What quality is told in, and how many of it a token is."""
    try:
        task = Task.model_validate(request["task"])
    except (KeyError, ValidationError):  # of a version that knew other tasks: its list must not break
        return "bits per token", 1.0
    return task.quality_unit, task.units_per_token


def trial(row: Trial) -> schemas.Trial:
    return schemas.Trial(
        id=row.id,
        kind=row.kind,
        sample=row.sample,
        seed=row.seed,
        state=row.state,
        reason=row.reason,
        params=row.params,
        architecture=row.architecture_id,
        step=row.step,
        n_steps=row.n_steps,
        attempt=row.attempt,
        result=row.result,
        created_at=_moment(row.created_at),
        started_at=moment(row.started_at),
        finished_at=moment(row.finished_at),
    )


def report(row: Report) -> schemas.Report:
    return schemas.Report(
        trial=row.trial_id,
        step=row.step,
        phase=row.phase,
        train_loss=row.train_loss,
        val_loss=row.val_loss,
        val_loss_soft=row.val_loss_soft,
        val_loss_argmax=row.val_loss_argmax,
        val_loss_sampled=row.val_loss_sampled,
        tau=row.tau,
        expected_ms=row.expected_ms,
        entropy=row.entropy,
        identity_share=row.identity_share,
        alpha_velocity=row.alpha_velocity,
        dual=row.dual,
        tokens_per_s=row.tokens_per_s,
        warning=row.warning,
    )


def probabilities(row: Matrices, *, evidence: bool) -> schemas.Probabilities:
    """Never without z; with evidence also what else stands beside each cell."""
    return schemas.Probabilities(
        trial=row.trial_id,
        step=row.step,
        probabilities=row.probabilities or [],
        null_gaps=row.null_gaps,
        updates=row.updates if evidence else None,
        z=row.z,
        path=row.path,
        effect_nats=row.effect_nats if evidence else None,
        effect_se=row.effect_se if evidence else None,
        finalists=row.finalists if evidence else None,
        finalist_nats=row.finalist_nats if evidence else None,
    )


def streamed(rows: tuple[Report, Matrices]) -> dict[str, Any]:
    """A row as a `reports` event carries it: curves and matrices together, without what nobody watches."""
    curves, matrices = rows
    unwatched = ("trial_id", "step", "updates", "finalists", "finalist_nats")
    beside = {name: value for name, value in vars(matrices).items() if name not in unwatched}
    return {**report(curves).model_dump(exclude={"trial"}), **beside}


def event(row: Event, data: dict[str, Any]) -> schemas.Event:
    return schemas.Event(number=row.number, type=row.type, at=_moment(row.created_at), data=data)


def architecture(row: StoredArchitecture) -> schemas.Architecture:
    return schemas.Architecture(
        id=row.id,
        role=row.role,
        trial=row.trial_id,
        string=row.string,
        hash=row.hash,
        predicted_ms=row.predicted_ms,
        is_result=row.is_result,
        architecture=row.body,
    )


def rule(row: StoredRule) -> rule_schemas.Rule:
    line = of_today({"statement": row.statement, "verdict": row.verdict})
    return rule_schemas.Rule(id=row.id, **line, evidence=of_today(row.body))


def artifact(row: Artifact) -> schemas.Artifact:
    return schemas.Artifact(
        id=row.id, kind=row.kind, name=row.name, media_type=row.media_type, sha256=row.sha256, n_bytes=row.n_bytes
    )


def dataset(name: str, row: Dataset | None, *, n_uses: int) -> dataset_schemas.Dataset:
    """Without a row it is a built-in text that nobody has used yet, or a synthetic task."""
    kind = _kind(name, row)
    return dataset_schemas.Dataset(
        name=name,
        description=_description(name, kind),
        built_in=name in catalog.DATASETS or name in catalog.TASKS,
        kind=kind,
        fingerprint=row.fingerprint if row else None,
        n_bytes=row.n_bytes if row else None,
        created_at=moment(row.created_at) if row else None,
        n_uses=n_uses,
        card=_card(row),
    )


def _kind(name: str, row: Dataset | None) -> dataset_schemas.DatasetKind:
    if name in catalog.TASKS:
        return "synthetic"
    return "text" if row is None else kind_of(row)


def _description(name: str, kind: dataset_schemas.DatasetKind) -> str:
    if kind == "synthetic":
        return catalog.TASKS[name].description
    return catalog.DATASETS.get(name, f"uploaded {kind}")


def _card(row: Dataset | None) -> dataset_schemas.Card | None:
    card = None if row is None else card_of(row)
    return None if card is None else dataset_schemas.Card(**card.to_json(), majority=card.majority)


def table(row: StoredTable) -> schemas.LatencyTableRow:
    body = row.body
    return schemas.LatencyTableRow(
        id=row.id,
        device=body["device"],
        serve=body["serve"],
        n_entries=len(body["entries"]),
        error_median=body["error_median"],
        error_p95=body["error_p95"],
        created_at=_moment(row.created_at),
    )
