"""Report: what was found as one page and as Markdown, kept for download beside the export."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nas.report.markdown import markdown
from nas.report.page import html
from workers.store import Store
from workers.trainable import file_sha256


def report(result: Mapping[str, Any], store: Store) -> None:
    """Write report.html and report.md of a result that is about to be kept; the same rows give the same bytes."""
    data = store.report_data(json.loads(json.dumps(result)))  # as whoever asks for it later reads it
    files = (
        ("report", "report.html", html(data), "text/html"),
        ("markdown", "report.md", markdown(data), "text/markdown"),
    )
    for kind, name, text, media_type in files:
        path = store.folder / name
        _write(path, text)
        store.artifact(kind, path, file_sha256(path), media_type)


def _write(path: Path, text: str) -> None:
    """A reader sees the old text or the new one."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
