"""Prints the OpenAPI document without starting anything: `python -m api.openapi`. The page's types are made of it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from api.app import create_app
from api.settings import Settings


def document() -> str:
    """The document as JSON; no database is opened for it."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(data_dir=Path(folder)))
        found = json.dumps(app.openapi(), indent=2)
        app.state.engine.dispose()
    return found


if __name__ == "__main__":
    print(document())
