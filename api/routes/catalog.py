"""What can be asked for: blocks, data sets, presets, and the schema of a request."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from api import schemas
from api.deps import Database, tagged
from api.examples import DESCRIPTIONS, PRESETS
from db import datasets
from db.engine import reading
from nas import catalog
from nas.config import SearchRequest

router = APIRouter(prefix="/api/v1", tags=["catalog"])


@router.get("/catalog", response_model=schemas.Catalog)
def get_catalog(request: Request) -> Response:
    """Blocks with their letters, colours and options, presets, and the JSON schema of a request."""
    blocks = [
        schemas.Block(
            name=spec.name,
            description=spec.description,
            family=spec.family,
            letter=spec.letter,
            colour=spec.colour,
            options=TypeAdapter(spec.options).json_schema(),
        )
        for spec in catalog.blocks().values()
    ]
    presets = {name: SearchRequest.model_validate(preset) for name, preset in PRESETS.items()}
    answer = schemas.Catalog(
        blocks=blocks,
        families=list(catalog.FAMILIES),
        objectives=["causal_lm"],
        presets={name: preset.model_dump(mode="json") for name, preset in presets.items()},
        preset_descriptions=DESCRIPTIONS,
        request_schema=SearchRequest.model_json_schema(),
    )
    return tagged(request, answer)


@router.get("/datasets", response_model=schemas.Page[schemas.Dataset])
def list_datasets(request: Request, engine: Database) -> Response:
    """Built-in texts, then registered ones."""
    with reading(engine) as connection:
        stored = {row.name: row for row in datasets.list(connection)}
    items = []
    for name in [*catalog.DATASETS, *(name for name in stored if name not in catalog.DATASETS)]:
        row = stored.get(name)
        items.append(
            schemas.Dataset(
                name=name,
                description=catalog.DATASETS.get(name, "registered text"),
                built_in=name in catalog.DATASETS,
                fingerprint=row.fingerprint if row else None,
                n_bytes=row.n_bytes if row else None,
            )
        )
    return tagged(request, schemas.Page[schemas.Dataset](items=items))
