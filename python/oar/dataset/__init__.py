"""Datasets as readers, under Paddle's older path: functions that return an iterator over samples."""

from oar._lazy import LazyNames as _LazyNames

# The readers use the datasets of oar.text, which use oar.dataset.common.
_MODULES = ("cifar", "common", "conll05", "imdb", "imikolov", "mnist", "movielens", "uci_housing", "wmt14", "wmt16")
_lazy_names = _LazyNames("oar.dataset", _MODULES, {})

__all__ = [*_MODULES]


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module 'oar.dataset' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_names})
