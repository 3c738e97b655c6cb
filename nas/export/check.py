"""Runs an export as its user would: unpacked in an empty folder, by a Python that has only torch and safetensors.

That Python is a bare virtual environment with links to the installed files of the two and of what they require, and to
those of `tokenizers` where the model has a file of that. So a forgotten import fails here, not on the user's machine.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from nas.errors import ExportFailed
from nas.export.vocabulary import Form, read_form
from nas.network import Network

TOLERANCE = 1e-5  # largest difference of a logit; another order of summation gives about 1e-6
TIMEOUT_S = 300
MOST_LOGITS = 2**24  # of an input: 64 MiB; a vocabulary of words at every position could take all memory

_LOGITS = """
import sys
sys.path.insert(0, sys.argv[1])
import model, torch
from safetensors.torch import load_file
network = model.load()
inputs, most = load_file(sys.argv[2]), int(sys.argv[4])
memory, logits = None, []
with torch.inference_mode():
    for name in sorted(inputs):
        if not name.endswith(".real"):
            real = inputs.get(name + ".real")
            hidden, memory = network.body(inputs[name], memory, key_padding=real)
            pools = network.backbone.pools
            told = network.backbone.classes(hidden, real) if pools else network.backbone.head(hidden[:, -most:])
            logits.append(told.flatten())
logits = torch.cat(logits)
torch.from_file(sys.argv[3], shared=True, size=len(logits)).copy_(logits)  # saving with safetensors would need numpy
"""


@dataclass(frozen=True)
class CheckResult:
    """How far the export's logits are from the trained model's at most, and what `python model.py` printed."""

    logits_max_abs_difference: float
    sample: str


def check_export(archive: Path, network: Network, *, prompt: str | None = None, n_bytes: int = 200) -> CheckResult:
    """Unpack an export's zip where nothing else is, run it, and compare its logits with the trained network's.

    Args:
        archive: the zip of `write_bundle`.
        network: the trained network that it was made from.
        prompt: what `model.py` reads, text or token ids; None: a short one.
        n_bytes: by how much it continues, bytes or tokens.

    Raises:
        ExportFailed: it does not run alone, or a logit differs by more than TOLERANCE.
    """
    shape = network.config.shape
    generator = torch.Generator().manual_seed(0)
    inputs = {
        name: torch.randint(network.config.vocab_size, (2, length), generator=generator)
        for name, length in {"full": shape.max_len, "short": max(1, shape.max_len // 3)}.items()
    }
    if network.config.backbone.n_classes:  # those alone are given texts of several lengths together
        inputs["padded"] = inputs["full"].clone()
        inputs["padded.real"] = torch.arange(shape.max_len) < torch.tensor([[shape.max_len], [-(-shape.max_len // 3)]])
    with unpacked(archive) as export:
        given, answered = export.scratch / "tokens.safetensors", export.scratch / "logits"
        save_file(inputs, given)
        most = max(1, MOST_LOGITS // (2 * network.config.vocab_size))
        export.run(["-I", "-c", _LOGITS, str(export.folder), str(given), str(answered), str(most)])
        got = torch.from_file(str(answered), size=answered.stat().st_size // 4)
        difference = (got - _logits(network.eval(), inputs, most)).abs().max().item()
        sample = export.sample(_prompt(export.form, shape.max_len) if prompt is None else prompt, n_bytes)
    if not difference <= TOLERANCE:  # not: a NaN fails too
        raise ExportFailed(
            f"the exported model's logits differ from the trained model's by {difference:.1e}; {TOLERANCE} is the most"
        )
    return CheckResult(difference, sample)


def _prompt(form: Form, longest: int) -> str:
    """Something for any vocabulary, of few tokens."""
    hidden = form.objective == "masked_lm"
    if form.tokenizer == "ids":
        return "0 _" if hidden else "0 0"
    if form.tokenizer == "bytes":
        return ("a _" if hidden else "a" if form.classifies else "\n")[-longest:]
    return "[MASK]" if hidden else "a"


@torch.inference_mode()
def _logits(network: Network, inputs: Mapping[str, Tensor], most: int) -> Tensor:
    """What _LOGITS computes: of all inputs in the order of their names, each with the memory of the one before.

    Args:
        network: in evaluation mode.
        inputs: name -> (B, T) token ids; "<name>.real" -> (B, T) bool, True where a token of <name> is real.
        most: of each row, the logits of so many last positions; of whole sequences there are no positions.
    """
    memory, logits = None, []
    for name in sorted(inputs):
        if not name.endswith(".real"):
            real = inputs.get(f"{name}.real")
            hidden, memory = network.body(inputs[name], memory, key_padding=real)
            pools = network.backbone.pools
            told = network.backbone.classes(hidden, real) if pools else network.backbone.head(hidden[:, -most:])
            logits.append(told.flatten())
    return torch.cat(logits)


@dataclass(frozen=True)
class UnpackedExport:
    """An export's folder, what it reads and tells, and the Python that runs it; `scratch` is an empty folder beside."""

    folder: Path
    form: Form
    python: Path
    scratch: Path

    def run(self, arguments: Sequence[str]) -> str:
        """What the Python prints. Raises: ExportFailed: it ends with an error, or not within TIMEOUT_S."""
        environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8"}
        environment["OMP_NUM_THREADS"] = str(torch.get_num_threads())  # as many as here: the same sums, no waiting
        try:
            done = subprocess.run(
                [self.python, *arguments],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ExportFailed(f"the exported model did not finish within {TIMEOUT_S} s") from error
        if done.returncode:
            last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
            raise ExportFailed(f"the exported model does not run alone: {last}")
        return done.stdout

    def sample(self, prompt: str, n_bytes: int) -> str:
        """What `python model.py` prints: the prompt, continued or filled in, or labels. Raises: ExportFailed: as `run`.

        Args:
            prompt: text, or token ids where the model reads those.
            n_bytes: by how much it continues, bytes or tokens.
        """
        arguments = [f"--{'ids' if self.form.tokenizer == 'ids' else 'prompt'}={prompt}"]
        if self.form.objective == "causal_lm":
            arguments.append(f"--{'bytes' if self.form.tokenizer == 'bytes' else 'tokens'}={n_bytes}")
        return self.run(["model.py", *arguments])


@contextmanager
def unpacked(archive: Path) -> Iterator[UnpackedExport]:
    """An export's zip, unpacked in an empty temporary folder that goes with the context.

    Raises:
        ExportFailed: it is no zip, or lacks what tells of its text.
    """
    with tempfile.TemporaryDirectory(prefix="blockwright-export-") as temporary:
        folder, scratch = Path(temporary, "export"), Path(temporary, "scratch")
        folder.mkdir()
        scratch.mkdir()
        try:
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(folder)
            form = read_form(folder)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            raise ExportFailed(f"cannot unpack {archive}: {error}") from error
        more = () if form.tokenizer in ("bytes", "ids") else ("tokenizers",)
        yield UnpackedExport(folder, form, make_bare_python(Path(temporary, "python"), more), scratch)


def make_bare_python(folder: Path, more: Sequence[str] = ()) -> Path:
    """A new Python in `folder` that can import torch, safetensors and what these require, and nothing else installed.

    Args:
        folder: where it is made.
        more: distributions to link beside, without what they require: `tokenizers` needs that for downloads alone.
    """
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    for each in [*_with_requirements("torch", "safetensors"), *map(distribution, more)]:
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            link = site_packages / top
            if not link.exists():  # several distributions may share a namespace folder
                link.symlink_to(Path(str(each.locate_file(top))).resolve())
    return folder / "bin" / "python"


def _with_requirements(*names: str) -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # required on another platform only
        for requirement in found[name].requires or ():
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            if match and "extra ==" not in requirement:
                waiting.append(match[0])
    return list(found.values())
