"""Every option of the spatial gating unit that matters, for the tests of what all blocks promise."""

from nas.options import SguOptions

OPTIONS = {
    "default": SguOptions(),
    "ratio 1": SguOptions(ratio=1),
    "linear": SguOptions(ratio=2, gate="linear"),
    "additive": SguOptions(ratio=2, gate="additive"),
    "multiplicative": SguOptions(ratio=2, gate="multiplicative"),
    "scalar bias": SguOptions(bias="scalar"),
    "heads": SguOptions(n_heads=4),
    "attention": SguOptions(attention_width=6),
    "toeplitz": SguOptions(spatial="toeplitz"),
    "toeplitz explicit": SguOptions(spatial="toeplitz", apply="explicit", bias="scalar", n_heads=2),
    "toeplitz fft": SguOptions(spatial="toeplitz", apply="fft", bias="scalar"),
    "toeplitz fft heads": SguOptions(ratio=1, gate="linear", spatial="toeplitz", apply="fft", n_heads=16),
    "toeplitz attention": SguOptions(ratio=2, spatial="toeplitz", bias="scalar", n_heads=2, attention_width=5),
}
