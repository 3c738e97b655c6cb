"""The REST service as an ASGI application. Imports neither torch, ray nor pandas; scipy and alembic stay out too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from api import errors, page
from api.document import corrected
from api.follow import Follower
from api.gate import Gate
from api.linger import Linger
from api.routes import (
    architectures,
    artifacts,
    catalog,
    datasets,
    derive,
    estimates,
    events,
    health,
    rules,
    searches,
    session,
    tables,
    uploads,
)
from api.settings import Settings
from api.slots import Slots
from api.version import installed
from db.engine import make_engine, reading
from db.events import last_numbers


class Service(FastAPI):
    """FastAPI behind the gate: outside of its own middleware, so that no answer can get around it."""

    def build_middleware_stack(self) -> ASGIApp:
        return Linger(Gate(super().build_middleware_stack(), self.state.settings))

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = corrected(super().openapi())
        return self.openapi_schema


def create_app(settings: Settings) -> Service:
    """The application over one database; it neither migrates nor starts anything.

    Args:
        settings: address (for the Host check), token, database and limits.
    """
    engine = make_engine(settings.database_url)

    def last_events(search_ids: Collection[str]) -> Mapping[str, int]:
        with reading(engine) as connection:
            return last_numbers(connection, search_ids)

    follower = Follower(last_events)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(datasets.clean_up, engine, settings.data_dir)
        yield
        follower.close()
        follower.join()
        engine.dispose()

    app = Service(
        title="Blockwright",
        version=installed(),
        description="Which block does each layer of a Transformer need? Searches and what they found.",
        lifespan=lifespan,
        max_body_size=settings.max_body_size,
        # The interactive pages load their scripts from elsewhere, which our content policy forbids.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect drops the body of a POST
        openapi_url="/api/v1/openapi.json",
        responses={"default": {"model": errors.Problem, "description": "a problem (RFC 9457)"}},
        generate_unique_id_function=lambda route: route.name,  # short names for generated clients
    )
    app.state.settings = settings
    app.state.engine = engine
    app.state.follower = follower
    app.state.uploads = Slots(settings.max_uploads)
    errors.install(app)
    for part in (
        searches,
        derive,
        estimates,
        events,
        architectures,
        artifacts,
        tables,
        rules,
        catalog,
        datasets,
        uploads,
        health,
        session,
    ):
        app.include_router(part.router)
    page.install(app)
    return app
