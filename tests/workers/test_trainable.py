"""What a trial says of the device that it runs on."""

from __future__ import annotations

import pytest
import torch

from workers.trainable import device_fingerprint


def test_fingerprints_differ_by_threads_and_by_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {device_fingerprint(cpus, "cpu") for cpus in (0.5, 1, 2)}
    assert len(found) == 2  # half a processor is one thread too
    for name in ("one accelerator", "another"):
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda _, name=name: name)
        found.add(device_fingerprint(1, "cuda"))
    assert len(found) == 4
    assert device_fingerprint(1, "cuda") in found
    assert device_fingerprint(1, "cuda", world=2) not in found
