"""The export as a user gets it: what is written, and that it runs alone."""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from nas.architecture import Architecture
from nas.blocks import block_classes
from nas.config.request import SearchRequest
from nas.config.space import SearchSpace
from nas.errors import ExportFailed, InvalidInput
from nas.export import check
from nas.export.bundle import Bundle, write_bundle
from nas.export.check import check_export, unpacked
from nas.network import Network
from nas.options import NetworkConfig, SlotConfig

FILES = {
    "README.md",
    "architecture.json",
    "config.json",
    "manifest.json",
    "model.py",
    "model.safetensors",
    "request.json",
    "tokenizer.json",
}
LABELS = ("attention", "ffn", "identity", "sgu", "mgk")
REQUEST = SearchRequest(name="a | b", space=SearchSpace(n_slots=5, d_model=16, n_heads=2))
CONFIG = NetworkConfig(REQUEST.space.shape(), 256, tuple(SlotConfig(label) for label in LABELS))


ENCODER = replace(CONFIG, shape=replace(CONFIG.shape, causal=False), vocab_size=257)
RECURRENT = replace(
    CONFIG, shape=replace(CONFIG.shape, positions="transformer_xl", memory_length=64, eval_memory_length=96)
)


def network(seed: int = 0, config: NetworkConfig = CONFIG) -> Network:
    torch.manual_seed(seed)
    return Network(config, block_classes(LABELS))


def write(folder: Path, config: NetworkConfig = CONFIG, net: Network | None = None) -> Bundle:
    return write_bundle(
        folder,
        state=(net or network()).state_dict(),
        config=config,
        architecture=Architecture(LABELS, REQUEST.space.candidates).to_json(),
        request=REQUEST.model_dump(mode="json"),
        figures={"test bits per byte": 1.94321, "latency against the parent": "0.97 (0.95 to 0.99)"},
    )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return write(tmp_path_factory.mktemp("export") / "export")


def test_folder_and_zip_hold_the_same_files(bundle: Bundle) -> None:
    assert {path.name for path in bundle.folder.iterdir()} == FILES
    with zipfile.ZipFile(bundle.zip) as archive:
        assert archive.namelist() == sorted(FILES)
        for name in FILES:
            assert archive.read(name) == (bundle.folder / name).read_bytes()
    assert bundle.sha256 == hashlib.sha256(bundle.zip.read_bytes()).hexdigest()


def test_manifest_has_size_and_sha256_of_every_other_file(bundle: Bundle) -> None:
    files = json.loads((bundle.folder / "manifest.json").read_text())["files"]
    assert files.keys() == FILES - {"manifest.json"}
    for name, entry in files.items():
        content = (bundle.folder / name).read_bytes()
        assert entry == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_files_are_what_the_service_itself_reads(bundle: Bundle) -> None:
    read = {
        name: json.loads((bundle.folder / f"{name}.json").read_text()) for name in ("config", "architecture", "request")
    }
    assert NetworkConfig.from_json(read["config"]) == CONFIG
    assert str(Architecture.from_json(read["architecture"])) == "AF.SM"
    assert SearchRequest.model_validate(read["request"]) == REQUEST
    tensors = load_file(bundle.folder / "model.safetensors")
    assert all(torch.equal(tensors[name], value) for name, value in network().state_dict().items())


def test_readme_tells_how_to_run_it_and_the_figures(bundle: Bundle) -> None:
    readme = (bundle.folder / "README.md").read_text()
    assert 'python model.py --prompt "some text" --bytes 200' in readme
    assert "| search | a \\| b |" in readme
    assert "| test bits per byte | 1.943 |" in readme
    assert "| latency against the parent | 0.97 (0.95 to 0.99) |" in readme


def test_same_export_has_the_same_bytes_and_replaces_the_old_one(bundle: Bundle, tmp_path: Path) -> None:
    first = write(tmp_path / "again")
    (first.folder / "stray.txt").write_text("left by hand")
    assert write(tmp_path / "again").sha256 == bundle.sha256
    assert {path.name for path in first.folder.iterdir()} == FILES
    assert {path.name for path in tmp_path.iterdir()} == {"again", "again.zip"}


def test_vocabulary_other_than_bytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="the network has 300 token ids; an export with its byte tokenizer has 256"):
        write(tmp_path / "export", replace(CONFIG, vocab_size=300))
    with pytest.raises(InvalidInput, match="the network has 256 token ids; an export with its byte tokenizer has 257"):
        write(tmp_path / "export", replace(ENCODER, vocab_size=256))
    assert list(tmp_path.iterdir()) == []


def test_export_runs_alone_with_the_trained_models_logits(bundle: Bundle) -> None:
    result = check_export(bundle.zip, network(), prompt="def ", n_bytes=40)
    assert result.logits_max_abs_difference <= 1e-5
    assert result.sample.startswith("def ")
    with unpacked(bundle.zip) as export:
        for missing in ("numpy", "pydantic", "nas", "ray"):
            with pytest.raises(ExportFailed, match=f"does not run alone: .*No module named '{missing}'"):
                export.run(["-c", f"import {missing}"])


def test_an_encoder_is_exported_as_what_fills_in_hidden_bytes(tmp_path: Path) -> None:
    written = write(tmp_path / "export", ENCODER, network(config=ENCODER))
    tokenizer = json.loads((written.folder / "tokenizer.json").read_text())
    assert (tokenizer["vocab_size"], tokenizer["mask_id"]) == (257, 256)
    readme = (written.folder / "README.md").read_text()
    assert 'python model.py --prompt "some te_t"' in readme
    assert "| longest input | 128 tokens |" in readme
    result = check_export(written.zip, network(config=ENCODER))
    assert result.logits_max_abs_difference <= 1e-5
    assert result.sample.startswith("a ")


def test_a_network_with_memory_is_checked_with_it(tmp_path: Path) -> None:
    written = write(tmp_path / "export", RECURRENT, network(config=RECURRENT))
    assert "| memory | 96 tokens between segments |" in (written.folder / "README.md").read_text()
    result = check_export(written.zip, network(config=RECURRENT), n_bytes=20)
    assert result.logits_max_abs_difference <= 1e-5
    assert result.sample.startswith("\n")


def test_compared_logits_depend_on_memory() -> None:
    forgetful = network(config=replace(RECURRENT, shape=replace(RECURRENT.shape, eval_memory_length=1)))
    inputs = {"full": torch.zeros(2, 128, dtype=torch.long), "short": torch.ones(2, 42, dtype=torch.long)}
    first, second = (check._logits(each.eval(), inputs, 128) for each in (network(config=RECURRENT), forgetful))
    assert torch.equal(first[: 2 * 128 * 256], second[: 2 * 128 * 256])
    assert not torch.allclose(first[2 * 128 * 256 :], second[2 * 128 * 256 :], atol=1e-4)


def test_other_logits_fail_the_check(bundle: Bundle) -> None:
    with pytest.raises(ExportFailed, match=r"logits differ from the trained model's by .*; 1e-05 is the most"):
        check_export(bundle.zip, network(seed=1))


def test_file_that_is_no_zip_fails_the_check(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    path.write_bytes(b"text")
    with pytest.raises(ExportFailed, match=r"cannot unpack .*export.zip: File is not a zip file"):
        check_export(path, network())


def test_export_that_never_ends_fails_the_check(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.export.check.TIMEOUT_S", 0.5)
    with (
        unpacked(bundle.zip) as export,
        pytest.raises(ExportFailed, match=r"the exported model did not finish within 0\.5 s"),
    ):
        export.run(["-c", "import time; time.sleep(60)"])
