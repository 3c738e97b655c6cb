"""Prints the OpenAPI document without starting anything: `python -m api.openapi`. The page's types are made of it.

`python -m api.openapi catalog` prints what GET /api/v1/catalog answers, which the tests of the page's form read.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from api.app import create_app
from api.routes.catalog import whole
from api.settings import Settings


def document() -> str:
    """The document as JSON; no database is opened for it."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(Settings(data_dir=Path(folder)))
        found = json.dumps(app.openapi(), indent=2)
        app.state.engine.dispose()
    return found


def catalog() -> str:
    """The catalogue as JSON, with the limits that hold where none are set."""
    return json.dumps(whole(Settings()).model_dump(), indent=1, ensure_ascii=False)


if __name__ == "__main__":
    print(catalog() if sys.argv[1:] == ["catalog"] else document())
