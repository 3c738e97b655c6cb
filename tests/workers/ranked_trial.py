"""A trial on two ranks in a process of its own, to be killed: `python ranked_trial.py SPEC`; prints a line a report."""

from __future__ import annotations

import sys
from pathlib import Path

from workers import peers
from workers.trainable import TrialSpec

if __name__ == "__main__":
    peers.run(TrialSpec.from_json(Path(sys.argv[1]).read_text()), lambda report: print(report.record.step, flush=True))
