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
        settings = Settings.model_construct(
            **{
                **{name: field.get_default(call_default_factory=True) for name, field in Settings.model_fields.items()},
                "data_dir": Path(folder),
                "database_url": f"sqlite:///{folder}/none.db",
            }
        )
        app = create_app(settings)
        try:
            return json.dumps(app.openapi(), indent=2)
        finally:
            app.state.engine.dispose()


if __name__ == "__main__":
    print(document())
