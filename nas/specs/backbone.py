"""Parameters of what stands around the slots, and of whole networks, by formula and without torch.

D model width, V vocabulary, C clusters behind the shortlist of an adaptive softmax.
"""

from __future__ import annotations

from nas import catalog
from nas.options import NetworkConfig


def norm_parameters(config: NetworkConfig) -> int:
    return (2 if config.norm == "layer" else 1) * config.shape.d_model


def parameters(config: NetworkConfig) -> int:
    """Parameters of embeddings, last norm and head, and of Transformer-XL's u and v."""
    shape, backbone = config.shape, config.backbone
    width, vocab_size = shape.d_model, config.vocab_size
    cutoffs = backbone.clusters(vocab_size)
    bounds = [0, *cutoffs, vocab_size]
    widths: list[int] = [width // backbone.div_value**cluster for cluster in range(len(bounds) - 1)]
    tables = sum((bounds[cluster + 1] - bounds[cluster]) * each for cluster, each in enumerate(widths))
    projected = bool(cutoffs) and backbone.div_value > 1
    if projected:
        tables += width * sum(widths)

    total = tables + backbone.token_types * width
    total += shape.max_len * width if backbone.position_embedding == "learned" else 0
    total += norm_parameters(config) if backbone.embedding_norm else 0
    total += 2 * width if shape.positions == "transformer_xl" else 0  # u and v are (H, W) each, and H * W is D
    total += norm_parameters(config) if config.norm_position == "pre" else 0
    total += backbone.head_layers * (width * width + width + norm_parameters(config))
    if backbone.n_classes:
        return total + (width + 1) * backbone.n_classes
    total += vocab_size + len(cutoffs) * (width + 1)  # biases, and the rows that score whole clusters
    if not backbone.tied_head:
        return total + tables
    return total + (width * width if projected else 0)  # a tied head has a projection of its own for the shortlist


def network_parameters(config: NetworkConfig) -> int:
    """Parameters of the whole network.

    Raises:
        InvalidInput: a slot names an unknown block.
    """
    total = parameters(config)
    for slot in config.slots:
        spec = catalog.block(slot.block)
        if spec.family != "identity":
            total += norm_parameters(config) + spec.parameters(config.shape, spec.options(**slot.options))
    return total
