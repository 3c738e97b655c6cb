from nas.options import IdentityOptions

OPTIONS = {"default": IdentityOptions()}
