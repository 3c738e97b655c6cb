"""NNI 3.0's GumbelDARTS on this project's block modules, through its public API: a part of `search_step.py`.

It runs in an environment of its own (NNI wants an older numpy), in which this repository is only on the path. Each
epoch waits for a line on stdin, and answers with one line of JSON: the processor seconds of each of its batches. A
batch is NNI's own: an alpha step and a weight step, or in its `warmup_epochs` a weight step alone. The line `peak`
first measures one batch's peak of allocations.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from typing import Any

import torch
from torch import Tensor, nn

warnings.filterwarnings("ignore")

from nni.nas.evaluator.pytorch import DataLoader, Lightning, LightningModule, Trainer  # noqa: E402
from nni.nas.experiment import NasExperiment  # noqa: E402
from nni.nas.nn.pytorch import LayerChoice, ModelSpace  # noqa: E402
from nni.nas.strategy import GumbelDARTS  # noqa: E402
from pytorch_lightning.callbacks import Callback  # noqa: E402

from nas import catalog  # noqa: E402
from nas.allocations import peak_bytes  # noqa: E402
from nas.backbone import Backbone, make_norm  # noqa: E402
from nas.blocks import block_classes  # noqa: E402
from nas.blocks.base import Context  # noqa: E402
from nas.config.method import Method  # noqa: E402
from nas.config.space import SearchSpace  # noqa: E402
from nas.options import NetworkConfig  # noqa: E402
from nas.training import weights_optimiser  # noqa: E402


class Nothing(nn.Module):
    """What identity adds to the residual stream."""

    def forward(self, x: Tensor, context: Context) -> Tensor:
        return torch.zeros_like(x)


class Space(ModelSpace):
    """Our backbone and blocks, with NNI's choice in each slot."""

    def __init__(self, space: SearchSpace, vocab_size: int) -> None:
        super().__init__()
        shape = space.shape()
        classes = block_classes(sorted({candidate.block for candidate in space.candidates}))
        self.backbone = Backbone(NetworkConfig(shape, vocab_size, (), space.norm, space.norm_position, space.backbone))
        self.norms = nn.ModuleList(make_norm(space.norm, space.d_model) for _ in range(space.n_slots))
        self.choices = nn.ModuleList(
            LayerChoice(
                {
                    candidate.label: Nothing()
                    if candidate.family == "identity"
                    else classes[candidate.block](shape, catalog.block(candidate.block).options(**candidate.options))
                    for candidate in space.candidates
                },
                label=f"slot{slot}",
            )
            for slot in range(space.n_slots)
        )

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        context = self.backbone.context(tokens)
        x = self.backbone.embed(tokens)
        for norm, choice in zip(self.norms, self.choices, strict=True):
            x = x + choice(norm(x), context)
        return self.backbone.nats(x, targets, None).mean()


class Recipe(LightningModule):
    """Our loss and optimiser; everything else is NNI's and Lightning's."""

    def __init__(self, method: Method) -> None:
        super().__init__()
        self.method = method

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        tokens, targets = batch
        return self.model(tokens, targets)

    def configure_optimizers(self) -> Any:
        return weights_optimiser(dict(self.model.named_parameters()), self.method)


class Driven(Callback):
    """Waits before each epoch, tells its times behind it."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.began = 0.0
        self.peak: int | None = None

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        asked = sys.stdin.readline().strip()
        if not asked:
            sys.exit(0)
        self.seconds = []
        step = module.training_step
        if asked == "peak":

            def measured(*arguments: Any) -> Any:
                module.training_step = step
                self.peak, out = peak_bytes(lambda: step(*arguments))
                return out

            module.training_step = measured

    def on_train_batch_start(self, *_: Any) -> None:
        self.began = time.process_time()

    def on_train_batch_end(self, *_: Any) -> None:
        self.seconds.append(time.process_time() - self.began)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        weights = sum(each.nbytes for each in module.training_module.parameters())
        answer = {"seconds": self.seconds, "peak": self.peak, "weights": weights}
        print("answer " + json.dumps(answer), flush=True)
        self.peak = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", type=SearchSpace.model_validate_json, required=True)
    parser.add_argument("--method", type=Method.model_validate_json, required=True)
    parser.add_argument("--length", type=int, required=True, help="tokens of a window")
    parser.add_argument("--vocab", type=int, required=True)
    parser.add_argument("--batches", type=int, required=True, help="of an epoch")
    parser.add_argument("--weights-only", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    method = arguments.method
    rows = (method.batch_size * arguments.batches, arguments.length)
    tokens = torch.randint(0, arguments.vocab, rows, generator=torch.Generator().manual_seed(0))

    def loader() -> Any:
        data = torch.utils.data.TensorDataset(tokens, tokens.roll(-1, dims=1))
        return DataLoader(data, batch_size=method.batch_size)

    many = 10**6
    trainer = Trainer(
        max_epochs=many,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        num_sanity_val_steps=0,
        callbacks=[Driven()],
    )
    evaluator = Lightning(Recipe(method), trainer, train_dataloaders=loader(), val_dataloaders=loader())
    strategy = GumbelDARTS(gradient_clip_val=method.grad_clip, warmup_epochs=many if arguments.weights_only else 0)
    NasExperiment(Space(arguments.space, arguments.vocab), evaluator, strategy).run()


if __name__ == "__main__":
    main()
