"""Has an uploaded file read by a process of its own (api/reader.py), so that the api stays small and answers meanwhile.

Whatever a file does to its reader, the api lives on: the reader has its own memory and its own time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from api.errors import ApiError
from nas.ingest.card import Card
from nas.ingest.options import Options

MAX_DATA_BYTES = 2**31  # of the reader's own memory; it takes under 500 MB
# What Python needs to start; neither the token nor the database's address.
_ENVIRONMENT = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")
_STATUS = {"too-large": 413, "disk-full": 507, "storage": 507}


class Reader:
    """One reading; `stop` from another thread ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._held, self._open = os.pipe()  # the reader ends when this end of it closes, with the api at the latest

    def close(self) -> None:
        """After the reading, or instead of it; from then on nobody writes among its files."""
        self.stop()
        if self._process is not None:
            self._process.wait()  # killed, it may still have been writing
        for descriptor in (self._held, self._open):
            os.close(descriptor)

    def read(self, raw: Path, folder: Path, options: Options, *, max_bytes: int, timeout_s: float) -> Card:
        """Write the canonical file of `raw` into the folder.

        Args:
            max_bytes: of what the file holds, once unpacked.
            timeout_s: after which the reader is ended.

        Raises:
            ApiError: what is wrong with the file, with the code of its DataError; disk-full, storage: it cannot be
                kept; too-slow; unreadable: the reader ended without an answer.
        """
        arguments = [str(raw), str(folder), json.dumps(options.to_json()), str(max_bytes), "--move"]
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        with self._lock:
            if self._stopped:
                raise _ended("it was stopped")
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "api.reader", str(MAX_DATA_BYTES), *arguments],
                env={**environment, "OMP_NUM_THREADS": "1"},
                stdin=self._held,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C in the terminal of the api is for the api
            )
        try:
            out, err = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            self._process.communicate()
            detail = f"the file was not read within {timeout_s:g} s, which BLOCKWRIGHT_READ_TIMEOUT_S sets; cut it"
            raise ApiError(422, "too-slow", detail) from None
        return _card(out, err, self._process.returncode)

    def stop(self) -> None:
        """End the reading; one that has not begun does not begin."""
        with self._lock:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


def _card(out: bytes, err: bytes, status: int) -> Card:
    """Raises: ApiError: the reader's own, or that it gave no answer."""
    try:
        answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        raise _ended(_last_words(err, status)) from None
    if "card" in answer:
        return Card.from_json(answer["card"])
    code, message = answer["error"]["code"], answer["error"]["message"]
    raise ApiError(_STATUS.get(code, 422), code, message)


def _last_words(err: bytes, status: int) -> str:
    lines = err.decode(errors="replace").strip().splitlines()
    if status < 0:
        return f"its reader was ended by {signal.Signals(-status).name}"
    return f"its reader ended with {lines[-1][:200]}" if lines else f"its reader ended with status {status}"


def _ended(why: str) -> ApiError:
    return ApiError(422, "unreadable", f"the file cannot be read: {why}; check it, or give it in another format")
