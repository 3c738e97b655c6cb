"""What can be asked for: blocks, presets, limits, and the schema of a request."""

from __future__ import annotations

from dataclasses import asdict, fields
from functools import cache
from typing import Any, get_args

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from api import catalog_schemas
from api.deps import AppSettings, tagged
from api.settings import Settings
from nas import catalog
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.config.task import Task
from nas.presets import DESCRIPTIONS, PRESETS
from nas.text import MIN_BYTES

router = APIRouter(prefix="/api/v1", tags=["catalog"])

TOKENIZERS = {
    "bytes": "256 values, without a vocabulary to learn; any language, long sequences",
    "characters": "the distinct characters of the training parts",
    "words": "what stands between white space; those of the training parts, the rest is <unk>",
    "bpe": "pieces of words, learnt on the training parts (byte-level byte-pair encoding); nothing is unknown",
    "file": "an uploaded tokenizer.json, by its name",
    "given": "the dataset holds token ids already",
}


@router.get("/catalog", response_model=catalog_schemas.Catalog)
def get_catalog(request: Request, settings: AppSettings) -> Response:
    """Blocks with their letters, colours and options, presets, limits, and the JSON schema of a request."""
    return tagged(request, whole(settings))


def whole(settings: Settings) -> catalog_schemas.Catalog:
    """The catalogue of a service with these settings."""
    shape = SearchSpace().shape()
    blocks = [
        catalog_schemas.Block(
            name=spec.name,
            description=spec.description,
            family=spec.family,
            letter=spec.letter,
            colour=spec.colour,
            options=options_schema(spec.options),
            cache_known=spec.cache_bytes is not None,
            reach=catalog_schemas.Reach(**asdict(spec.reach(shape, spec.options()))),
        )
        for spec in catalog.blocks().values()
    ]
    tasks = [
        catalog_schemas.SyntheticTask(
            name=task.name,
            description=task.description,
            objective=task.objective,
            causal=task.causal,
            unrolled=task.unrolled,
            options=options_schema(task.options),
            best_accuracy=task.best[0],
            best_why=task.best[1],
            source=task.source,
        )
        for task in catalog.TASKS.values()
    ]
    return catalog_schemas.Catalog(
        blocks=blocks,
        families=list(catalog.families()),
        objectives=list(get_args(Task.model_fields["objective"].annotation)),
        tasks=tasks,
        tokenizers=[catalog_schemas.TokenizerType(type=name, description=told) for name, told in TOKENIZERS.items()],
        presets=_presets(),
        preset_descriptions=DESCRIPTIONS,
        request_schema=_request_schema(),
        max_dataset_bytes=settings.max_dataset_bytes,
        min_dataset_bytes=MIN_BYTES,
    )


@cache
def _presets() -> dict[str, dict[str, Any]]:
    """Each preset written out; once a process, since the page asks at every visit."""
    requests = {name: SearchRequest.model_validate({"preset": name}) for name in PRESETS}
    return {name: request.model_dump(mode="json") for name, request in requests.items()}


@cache
def _request_schema() -> dict[str, Any]:
    return SearchRequest.model_json_schema()


def options_schema(options: type[Any]) -> dict[str, Any]:
    """JSON schema of the options of a block or task, with the `minimum` and `maximum` that its fields state."""
    schema = TypeAdapter(options).json_schema()
    for field in fields(options):
        declared = schema["properties"][field.name]
        for each in (declared, *declared.get("anyOf", ())):
            if each.get("type") == "integer":
                each |= {name: field.metadata[name] for name in ("minimum", "maximum") if name in field.metadata}
    return schema
