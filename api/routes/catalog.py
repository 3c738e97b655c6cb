"""What can be asked for: blocks, presets, limits, and the schema of a request."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from api import schemas
from api.deps import AppSettings, tagged
from api.settings import Settings
from nas import catalog
from nas.config import SearchRequest
from nas.presets import DESCRIPTIONS, PRESETS
from nas.text import MIN_BYTES

router = APIRouter(prefix="/api/v1", tags=["catalog"])


@router.get("/catalog", response_model=schemas.Catalog)
def get_catalog(request: Request, settings: AppSettings) -> Response:
    """Blocks with their letters, colours and options, presets, limits, and the JSON schema of a request."""
    return tagged(request, whole(settings))


def whole(settings: Settings) -> schemas.Catalog:
    """The catalogue of a service with these settings."""
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
    presets = {name: SearchRequest.model_validate({"preset": name}) for name in PRESETS}
    return schemas.Catalog(
        blocks=blocks,
        families=list(catalog.FAMILIES),
        objectives=["causal_lm"],
        presets={name: preset.model_dump(mode="json") for name, preset in presets.items()},
        preset_descriptions=DESCRIPTIONS,
        request_schema=SearchRequest.model_json_schema(),
        max_dataset_bytes=settings.max_dataset_bytes,
        min_dataset_bytes=MIN_BYTES,
    )
