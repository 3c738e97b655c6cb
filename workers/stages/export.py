"""Export: the folder and the zip that run without Blockwright."""

from __future__ import annotations

from typing import Any

import numpy as np

from nas import metrics
from nas.config.task import ServeMode
from nas.export.bundle import write_bundle
from nas.export.check import check_export
from nas.retrain import load_network
from workers.stages.lengths import at_lengths, line
from workers.stages.passed_on import Comparison, Inputs, Retrained
from workers.store import Store


def export(inputs: Inputs, winner: Retrained, comparison: Comparison | None, store: Store) -> dict[str, Any]:
    """Write the folder and the zip that run without Blockwright, and run them so.

    Raises:
        ExportFailed: the exported model does not run alone, or gives other logits.
    """
    request = inputs.request
    architecture = winner.derived.architecture
    config = request.network_config(architecture.labels, request.task.vocab_size)
    network = load_network(winner.best.path, config)
    bundle = write_bundle(
        store.folder / "export",
        state=network.state_dict(),
        config=config,
        architecture=architecture.to_json(request.space.shape()),
        request=request.model_dump(mode="json"),
        figures=_figures(winner, comparison, inputs),
        tokenizer=inputs.data.tokenizer,
        eos_id=inputs.data.eos_id,
        labels=inputs.data.labels,
    )
    checked = check_export(bundle.zip, network)
    store.artifact("export", bundle.zip, bundle.sha256, "application/zip")
    return {
        "file": bundle.zip.name,
        "sha256": bundle.sha256,
        "logits_max_abs_difference": checked.logits_max_abs_difference,
        "sample": checked.sample,
    }


def _figures(winner: Retrained, comparison: Comparison | None, inputs: Inputs) -> dict[str, Any]:
    task = inputs.request.task
    unit = task.quality_unit
    bits = float(np.mean(winner.test_nats(task))) / float(np.log(2))
    figures: dict[str, Any] = {f"test {unit}, mean of the seeds": bits}
    for each in metrics.report(task, inputs.data.corpus, winner.outcomes):
        if each["name"] != unit:
            figures[f"test {each['name']}, mean of the seeds"] = each["derived"]
        if each.get("majority") is not None:
            figures[f"{each['name']} of always answering the most frequent class"] = each["majority"]
    if task.scored_lengths:
        figures[f"test {unit} by tokens of input"] = line(at_lengths(task, winner, None))
    if comparison is not None:
        quality = comparison.quality
        seeds = "1 seed" if quality.n_seeds == 1 else f"{quality.n_seeds} seeds"
        figures |= {
            f"against the {comparison.against}": f"{quality.verdict}: {quality.mean_bits:+.4f} {unit}, "
            f"95% interval {quality.low:+.4f} to {quality.high:+.4f}, {seeds}",
            f"latency against the {comparison.against}": "; ".join(
                f"{_words(serve)}: {each.ratio:.3f}, repeatable to {each.repeatability:.3f}"
                for serve, each in zip(task.serve, comparison.latencies, strict=True)
            ),
        }
    return figures


def _words(serve: ServeMode) -> str:
    return f"{serve.mode} of {serve.batch} x {serve.query_length} tokens"
