"""The file that holds a trial's state."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.testing import assert_close

from nas import checkpoint


def test_tensors_that_share_their_memory_are_written_each_for_itself(tmp_path: Path) -> None:
    whole = torch.arange(24.0).reshape(4, 6)
    given = {"whole": whole, "same": whole, "part": whole[:, 2:], "turned": whole.t()}
    checkpoint.write(tmp_path / "state.safetensors", given, {"step": 3})
    tensors, state = checkpoint.read(tmp_path / "state.safetensors")
    assert state["step"] == 3
    for name, tensor in given.items():
        assert_close(tensors[name], tensor)
