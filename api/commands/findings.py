"""What `blockwright doctor` finds: one thing looked at, how it is, and what to do about it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Args:
        name: of the thing, such as torch.
        level: ok; warn: it runs, but not as well as it could; fail: it does not.
        what: one line on how it is.
        todo: one line on what to do; None where all is well.
    """

    name: str
    level: Level
    what: str
    todo: str | None = None


Check = Callable[[], Finding]


def look(checks: Mapping[str, Check], timeout_s: float) -> list[Finding]:
    """The findings of all checks, side by side and in their order; one that breaks or takes too long fails.

    Args:
        checks: by the name of their finding.
        timeout_s: of all together.
    """
    found: dict[str, Finding] = {}
    threads = []
    for name, check in checks.items():

        def run(name: str = name, check: Check = check) -> None:
            try:
                found[name] = check()
            except Exception as error:  # noqa: BLE001 - such as a folder that we may not even look into
                found[name] = _broken(name, error)

        threads.append(threading.Thread(target=run, name=name, daemon=True))
        threads[-1].start()
    deadline = time.monotonic() + timeout_s
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    slow = Finding("", "fail", f"no answer within {timeout_s:g} s", "look at what it depends on: disk, network, load")
    return [found.get(name) or Finding(name, slow.level, slow.what, slow.todo) for name in checks]


def _broken(name: str, error: Exception) -> Finding:
    """Without the message of an error that is not the system's: it might hold a secret."""
    reason = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror.lower() + (f": {error.filename}" if error.filename else "")
    return Finding(
        name, "fail", f"cannot be looked at: {reason}", "give this user the right to, or correct its setting"
    )
