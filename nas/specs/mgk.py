"""The entry of attention with Gaussian keys in the catalogue. D model width, T tokens, S = memory + T keys.

H heads of width W, M Gaussians per position (spec: mgk, section 5).
"""

from __future__ import annotations

from nas.options import MgkOptions, Shape
from nas.specs.attention import linear_flops
from nas.specs.base import BlockSpec, Reach


def parameters(shape: Shape, options: MgkOptions) -> int:
    """Projections without biases; M H W of shifts; H M logits where weights are learned; learned variances."""
    heads, width = options.heads(shape), options.heads(shape) * shape.head_width
    count = (3 + options.n_projected) * shape.d_model * width
    if options.keys == "shifted":
        count += options.n_keys * width
    if options.is_weighted:
        count += heads * options.n_keys
    if options.variance == "learned":
        count += heads * options.n_projected
    return count


def extra_channels(options: MgkOptions) -> int:
    """What free keys carry beside their W channels: their own term, and one more where variances differ."""
    return 2 if options.variance == "learned" and options.n_keys > 1 else 1


def flops(shape: Shape, options: MgkOptions, tokens: int, memory: int) -> int:
    """The projections, and behind them:

    - free keys: one softmax over M slots a position, 4 M (W + E) for each pair of a query and a position, where E extra
      channels hold the keys' own terms (on accelerators W + E is rounded up to a multiple of 8, not counted here);
    - shifted keys: 4 W for each pair, whatever M, and 2 (M - 1) W for each query and each key of their rank-one terms;
      the M exponentials for each pair are no matrix products;
    - linear form: as linear attention; M plays no role.

    Pairs are those of the blocks in which causal queries are computed, with all keys up to the end of the block.
    """
    heads, width = options.heads(shape), shape.head_width
    keys = memory + tokens
    count = 2 * shape.d_model * heads * width * (2 * tokens + (1 + options.n_projected) * keys)
    if options.kind == "linear":
        return count + linear_flops(heads, heads, width, width, tokens, memory, causal=shape.causal)
    pairs = sum((end - first) * seen for first, end, seen in options.blocks(tokens, memory, shape.causal))
    if options.keys == "free":
        return count + 4 * options.n_keys * heads * (width + extra_channels(options)) * pairs
    return count + heads * width * (4 * pairs + 2 * (options.n_keys - 1) * (tokens + keys))


def cache_bytes(shape: Shape, options: MgkOptions, tokens: int, batch: int) -> int:
    width, n_keys = shape.head_width, options.n_keys
    if options.kind == "linear":
        numbers = width * (width + 1)
    elif options.keys == "free":
        numbers = tokens * (n_keys * (width + extra_channels(options)) + width)
    else:
        numbers = tokens * (2 * width + n_keys)
    return 4 * batch * options.heads(shape) * numbers


def reach(shape: Shape, options: MgkOptions) -> Reach:
    if options.kind == "linear":
        return Reach(None, "it sums over any number of keys, but the more there are, the less each one weighs")
    if options.where(shape) == "none":
        return Reach(None, "it tells no positions apart, so any length runs; scores spread over more keys")
    if options.keys == "shifted":
        return Reach(None, "any length runs, but shifts tell absolute positions apart, and later ones are new to it")
    return Reach(None, "any length runs, but turns by distances beyond those of training are new to it")


SPEC = BlockSpec(
    name="mgk",
    description="attention with a mixture of Gaussian keys, half the heads",
    family="mgk",
    letter="M",
    colour="#AA3377",
    options=MgkOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.mgk:MixtureOfGaussianKeys",
    cache_bytes=cache_bytes,
    reach=reach,
)
