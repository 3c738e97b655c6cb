"""Attention's options as the contract's tests build them, at Shape(16, 4, max_len=12)."""

from nas.options import AttentionOptions

OPTIONS = {
    "default": AttentionOptions(),
    "no positions": AttentionOptions(positions="none"),
    "rotary": AttentionOptions(positions="rotary"),
    "relative bias": AttentionOptions(positions="relative_bias"),
    "relative bias only": AttentionOptions(positions="relative_bias_only"),
    "transformer-xl": AttentionOptions(positions="transformer_xl"),
    "two heads": AttentionOptions(n_heads=2),
    "eight heads": AttentionOptions(n_heads=8, n_kv_heads=4, bias=True),
    "grouped keys": AttentionOptions(n_kv_heads=2),
    "one key head, relative bias": AttentionOptions(n_kv_heads=1, positions="relative_bias"),
    "grouped keys, transformer-xl": AttentionOptions(n_kv_heads=2, positions="transformer_xl", bias=True),
    "window": AttentionOptions(window=4),
    "window of one": AttentionOptions(window=1, positions="none"),
    "window beyond the input": AttentionOptions(window=100),
    "window, grouped keys": AttentionOptions(window=3, n_kv_heads=2, positions="none"),
    "window, relative bias": AttentionOptions(window=4, positions="relative_bias"),
    "window, relative bias only": AttentionOptions(window=4, positions="relative_bias_only"),
    "window, transformer-xl": AttentionOptions(window=4, positions="transformer_xl"),
    "biases": AttentionOptions(bias=True),
    "biases, relative bias only": AttentionOptions(bias=True, positions="relative_bias_only"),
    "linear": AttentionOptions(kind="linear"),
    "linear, no positions": AttentionOptions(kind="linear", positions="none", bias=True),
    "linear, grouped keys": AttentionOptions(kind="linear", n_kv_heads=2),
}
