"""The process that reads an upload: `python -m nas.ingest` within limits, as files of others may be made to harm.

    python -m api.reader MAX_DATA_BYTES RAW FOLDER OPTIONS_JSON MAX_BYTES

It ends with whoever started it: its standard input is held open by that process, and closes with it.
"""

from __future__ import annotations

import os
import resource
import runpy
import sys
import threading

CUT_OFF = 3  # exit status when the api has gone


def _end_with_the_api() -> None:
    while os.read(0, 4096):
        pass
    os._exit(CUT_OFF)


def main() -> None:
    os.umask(0o077)  # what it writes is for the service alone
    # Not the address space: pyarrow reserves more of that than it ever uses.
    most = int(sys.argv.pop(1))
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.Thread(target=_end_with_the_api, daemon=True).start()
    runpy.run_module("nas.ingest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
