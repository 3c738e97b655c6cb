"""Attention's entry in the catalogue. D model width, H query heads, W head width, T tokens."""

from __future__ import annotations

from nas.options import LINEAR_CHUNK, T5_BUCKETS, T5_FARTHEST, AttentionOptions, Shape
from nas.specs.base import BlockSpec, Reach


def parameters(shape: Shape, options: AttentionOptions) -> int:
    heads, where = options.heads(shape), options.where(shape)
    width, kv_width = heads * shape.head_width, options.kv_heads(shape) * shape.head_width
    content = where != "relative_bias_only"
    count = shape.d_model * (2 * width + 2 * kv_width if content else width + kv_width)
    if options.bias:
        count += kv_width + shape.d_model + (width + kv_width if content else 0)
    if where in ("relative_bias", "relative_bias_only"):
        count += T5_BUCKETS * heads
    if where == "transformer_xl":
        count += shape.d_model * width
    return count


def flops(shape: Shape, options: AttentionOptions, tokens: int, memory: int) -> int:
    """For Transformer-XL, with q = T, d = D and D = H W of spec par-search, section 1.4:

        2 q d D + 4 (q + m) d D + 4 q (q + m) D + 2 q (q + m) D + 2 q d D + 2 (q + m) d D for the position keys

    The spec has 6 (q + m) d D for queries, keys and values, since released code makes queries of memory too.
    """
    if options.window is not None:
        memory = min(memory, options.window - 1)
    heads, kv_heads, where = options.heads(shape), options.kv_heads(shape), options.where(shape)
    width, kv_width = heads * shape.head_width, kv_heads * shape.head_width
    content = where != "relative_bias_only"
    query_side = (2 if content else 1) * tokens * width  # queries and what comes out
    key_side = (2 if content else 1) * (tokens + memory) * kv_width
    count = 2 * shape.d_model * (query_side + key_side)
    if options.kind == "linear":
        return count + linear_flops(
            heads, kv_heads, shape.head_width, shape.head_width, tokens, memory, causal=shape.causal
        )
    rows, keys = tokens, memory + tokens
    chunk = options.chunk(shape, tokens, memory)
    if chunk is not None and options.window is not None:
        rows = -(-tokens // chunk) * chunk
        keys = chunk + (1 if shape.causal else 2) * (options.window - 1)
    products = (2 if content else 1) + (where == "transformer_xl")  # scores and values, and scores of distances
    if where == "transformer_xl":
        count += 2 * keys * shape.d_model * width
    return count + 2 * products * rows * keys * width


def linear_flops(
    heads: int, kv_heads: int, width: int, value_width: int, tokens: int, memory: int, *, causal: bool
) -> int:
    """What `nas.blocks.linear.linear_attention` counts for one sequence; values have one more column there, of ones."""
    values = value_width + 1
    if not causal:
        return 2 * width * values * (kv_heads * (memory + tokens) + heads * tokens)
    chunk = min(LINEAR_CHUNK, tokens)
    rows = -(-tokens // chunk) * chunk
    count = heads * rows * chunk * (width + values)  # inside the chunks
    if memory or rows > chunk:  # and from the sums over what is before each
        count += (heads * rows + kv_heads * (memory + rows)) * width * values
    return 2 * count


def cache_bytes(shape: Shape, options: AttentionOptions, tokens: int, batch: int) -> int:
    heads, kv_heads, where, width = (
        options.heads(shape),
        options.kv_heads(shape),
        options.where(shape),
        shape.head_width,
    )
    if options.kind == "linear":
        return 4 * batch * kv_heads * width * (width + 1)
    kept = min(options.window or tokens, tokens)
    numbers = (1 if where == "relative_bias_only" else 2) * batch * kv_heads * kept * width
    if where in ("relative_bias", "relative_bias_only"):
        numbers += heads * kept
    if where == "transformer_xl":
        numbers += heads * kept * width
    return 4 * numbers


def reach(shape: Shape, options: AttentionOptions) -> Reach:
    if options.kind == "linear" and options.where(shape) == "rotary":
        return Reach(None, "any length runs, but its features depend on positions, and later ones are new to it")
    if options.kind == "linear":
        return Reach(None, "it sums over any number of keys; the more there are, the less each one weighs")
    if options.window is not None:
        return Reach(None, f"it looks no farther than its window, {options.window} keys, so any length will do")
    if "relative_bias" in options.where(shape) and shape.max_len + shape.memory_length <= T5_FARTHEST:
        return Reach(None, "any length runs, but it has learned nothing of distances beyond those of training")
    return Reach(
        None,
        {
            "none": "it tells no positions apart, so any length runs; scores spread over more keys than in training",
            "rotary": "any length runs, but turns by distances beyond those of training are new to it",
            "relative_bias": "any length runs; keys 128 or more tokens away share one bias, whatever the length",
            "relative_bias_only": "any length runs; keys 128 or more tokens away share one weight, whatever the length",
            "transformer_xl": "any length runs; longer distances than in training are new to it without clamp_len",
        }[options.where(shape)],
    )


SPEC = BlockSpec(
    name="attention",
    description="softmax or linear self-attention",
    family="attention",
    letter="A",
    colour="#4477AA",
    options=AttentionOptions,
    parameters=parameters,
    flops=flops,
    class_path="nas.blocks.attention:Attention",
    cache_bytes=cache_bytes,
    reach=reach,
)
