from nas.options import FfnOptions

OPTIONS = {
    "default": FfnOptions(),
    "narrow relu": FfnOptions(ratio=1, activation="relu"),
    "swiglu": FfnOptions(activation="swiglu", bias=False),
    "swiglu with biases": FfnOptions(ratio=3, activation="swiglu"),
}
