"""Images: networks, data sets, transforms, and functions that detect objects."""

from oar._lazy import LazyNames as _LazyNames
from oar.vision import ops

__all__ = ["get_image_backend", "image_load", "ops", "set_image_backend"]

_lazy_names = _LazyNames(
    "oar.vision", ("datasets", "models", "ocr", "transforms"),
    {"oar.vision.image": ("get_image_backend", "image_load", "set_image_backend")})


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    if not name.startswith("_"):  # Paddle has the names of networks, data sets and transforms here, too
        from oar.vision import datasets, models, transforms

        for module in (models, transforms, datasets):
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'oar.vision' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_names})
