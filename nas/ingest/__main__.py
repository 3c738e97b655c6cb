"""Reads a file in a process of its own: `python -m nas.ingest RAW FOLDER OPTIONS_JSON MAX_BYTES [--move]`.

One JSON line tells the end: {"card": {...}} with status 0, or {"error": {"code", "message"}} with status 1. With
--move a raw file that is canonical already is moved, not copied. SIGTERM leaves nothing behind.
"""

from __future__ import annotations

import errno
import json
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from nas.errors import DataError
from nas.ingest.errors import TooLarge
from nas.ingest.options import Options
from nas.ingest.read import ingest


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, _stop)
    move = arguments[4:] == ["--move"]
    raw, folder, options, max_bytes = arguments[: 4 if move else None]
    try:
        read = Options.from_json(json.loads(options))
        card = ingest(Path(raw), Path(folder), read, max_bytes=int(max_bytes), keep_raw=not move)
    except DataError as error:
        return _tell(1, {"error": {"code": error.code, "message": str(error)}})
    except MemoryError:
        message = "the file takes more memory to read than is allowed; write shorter rows, or another format"
        return _tell(1, {"error": {"code": TooLarge.code, "message": message}})
    except OSError as error:
        code = "disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "storage"
        reason = (error.strerror or type(error).__name__).lower()  # its own words name paths of the server
        return _tell(1, {"error": {"code": code, "message": f"the file cannot be read or kept: {reason}"}})
    return _tell(0, {"card": card.to_json()})


def _tell(status: int, message: dict[str, Any]) -> int:
    print(json.dumps(message))
    return status


def _stop(signum: int, frame: object) -> NoReturn:
    raise SystemExit(128 + signum)  # unwinds, which removes the scratch folder


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
