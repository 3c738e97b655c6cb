"""Options of MGK that the shared tests go over."""

from nas.options import MgkOptions

OPTIONS: dict[str, MgkOptions] = {
    "default": MgkOptions(),
    "gk": MgkOptions(n_heads=3, n_keys=1),
    "three keys": MgkOptions(n_heads=1, n_keys=3, positions="none"),
    "learned variance": MgkOptions(n_heads=3, variance="learned"),
    "gk with learned variance": MgkOptions(n_keys=1, variance="learned"),
    "shifted": MgkOptions(keys="shifted"),
    "three shifted keys": MgkOptions(n_heads=3, n_keys=3, keys="shifted", variance="learned"),
    "one shifted key": MgkOptions(n_keys=1, keys="shifted", positions="none"),
    "hard": MgkOptions(keys="shifted", assignment="hard"),
    "three hard": MgkOptions(n_heads=1, n_keys=3, keys="shifted", assignment="hard", variance="learned"),
    "linear": MgkOptions(kind="linear"),
    "linear, one key": MgkOptions(n_keys=1, kind="linear", positions="none"),
    "linear, shifted": MgkOptions(n_heads=3, n_keys=3, keys="shifted", kind="linear"),
}
