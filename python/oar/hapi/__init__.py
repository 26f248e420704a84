"""The high-level API: a network with its training, its evaluation and its reports."""

from oar._lazy import LazyNames as _LazyNames

__all__: list[str] = []

_lazy_names = _LazyNames(
    "oar.hapi",
    ("callbacks", "dynamic_flops", "hub", "logger", "model", "model_summary", "progressbar", "static_flops"),
    {"oar.hapi.dynamic_flops": ("flops",), "oar.hapi.model": ("Model",), "oar.hapi.model_summary": ("summary",)})


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_names})
