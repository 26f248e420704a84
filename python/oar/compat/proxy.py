"""``import torch`` that imports Oar, for programs and libraries that are written for PyTorch.

Each module ``torch.x`` stands for ``oar.x``. A name that ``oar.compat`` has, such as ``torch.max`` or ``torch.nn.Linear``,
comes from there, since its arguments and results are PyTorch's.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["disable_compat", "enable_compat", "use_compat_guard"]


def _is_in(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


class _TorchModule(types.ModuleType):
    """A module of Oar under the name of PyTorch's."""

    _source: types.ModuleType

    def __getattr__(self, name: str) -> Any:
        below = f"oar.compat{self.__name__.removeprefix('torch')}"
        same = sys.modules.get(below)
        if name in getattr(same, "__all__", ()):
            return getattr(same, name)
        if self.__name__ == "torch" and name == "relu":
            return importlib.import_module("oar.nn.functional").relu
        value = getattr(self._source, name)
        if isinstance(value, types.ModuleType) and value.__name__ == f"{self._source.__name__}.{name}":
            return importlib.import_module(f"{self.__name__}.{name}")
        return value

    def __dir__(self) -> list[str]:
        return dir(self._source)


class _TorchLoader(importlib.abc.Loader):
    def __init__(self, source: types.ModuleType) -> None:
        self._source = source

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _TorchModule(spec.name, self._source.__doc__)
        module._source = self._source
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__file__ = self._source.__file__


class _GuardedLoader(importlib.abc.Loader):
    """Executes a module while ``import torch`` means Oar, or while it does not."""

    def __init__(self, loader: Any, enable: bool) -> None:
        self._loader, self._enable = loader, enable

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        with use_compat_guard(enable=self._enable, silent=True):
            self._loader.exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``torch`` and its modules: everywhere if ``scope`` is None, or else for the code of the packages in it."""

    def __init__(self) -> None:
        self.scope: frozenset[str] | None = None
        self.blocked: frozenset[str] = frozenset()
        self.real: dict[str, types.ModuleType] = {}

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if _is_in(fullname, ("torch",)):
            return self._spec_of_torch(fullname) if self._is_meant() else None
        if _is_in(fullname, self.blocked):
            return self._guarded(fullname, path, target, False)
        if self.scope is not None and _is_in(fullname, self.scope):
            return self._guarded(fullname, path, target, True)
        return None

    def _is_meant(self) -> bool:
        """Whether the code that imports ``torch`` means Oar by it."""
        found = self.scope is None
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None:
            name = str(frame.f_globals.get("__name__"))
            if _is_in(name, self.blocked):
                return False
            found = found or _is_in(name, self.scope or ())
            frame = frame.f_back
        return found

    @staticmethod
    def _spec_of_torch(fullname: str) -> importlib.machinery.ModuleSpec:
        path = fullname.removeprefix("torch")
        try:
            source = importlib.import_module(f"oar{path}")
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(f"Oar has no module for {fullname}: {error}", name=fullname) from None
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(f"oar.compat{path}")
        return importlib.machinery.ModuleSpec(fullname, _TorchLoader(source), is_package=hasattr(source, "__path__"))

    def _guarded(self, fullname: str, path: Any, target: Any, enable: bool) -> importlib.machinery.ModuleSpec | None:
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _GuardedLoader(spec.loader, enable)
                return spec
        return None


_finder = _Finder()


def _take_torch_modules() -> dict[str, types.ModuleType]:
    """Removes the modules of ``torch`` that are imported; the next import asks the finders again."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_in(name, ("torch",))}


def _names(value: str | Iterable[str] | None, what: str) -> frozenset[str]:
    names = [value] if isinstance(value, str) else list(value or ())
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"[enable_compat] {what} must be the name of a module, or several, not {names}.")
    return frozenset(names)


def enable_compat(
    *, scope: str | Iterable[str] | None = None, blocked_modules: str | Iterable[str] | None = None,
    backend: str = "torch", silent: bool = False,
) -> None:  # fmt: skip
    """From now on ``import torch`` imports Oar: ``torch.x`` is ``oar.x``, or what ``oar.compat`` has of that name.

    Modules of PyTorch that were imported before stay with those who have them.

    Args:
        scope: packages for whose code this holds; None for all code.
        blocked_modules: packages for whose code this does not hold.
        backend: whose names are imported, ``'torch'``.
        silent: whether there is no warning if another scope was set before.

    Examples:
        >>> import oar
        >>> oar.enable_compat()
        >>> import torch
        >>> torch.max(torch.to_tensor([[1.0, 5.0]]), dim=1).indices.tolist()
        [1]
        >>> oar.disable_compat()
    """
    if backend != "torch":
        raise ValueError(f"[enable_compat] the backend must be 'torch', not {backend!r}.")
    wanted = None if scope is None else _names(scope, "scope")
    _finder.blocked |= _names(blocked_modules, "blocked_modules")
    if _finder not in sys.meta_path:
        _finder.scope = wanted
        sys.meta_path.insert(0, _finder)
    elif _finder.scope != wanted:
        if not silent:
            before = "all code" if _finder.scope is None else ", ".join(sorted(_finder.scope))
            warnings.warn(f"[enable_compat] `import torch` was set up for {before} already; now it is for "
                          f"{'all code' if wanted is None or _finder.scope is None else 'the new scope, too'}.", stacklevel=2)
        _finder.scope = None if wanted is None or _finder.scope is None else _finder.scope | wanted
    if _finder.scope is None:
        taken = _take_torch_modules()
        _finder.real.update({name: module for name, module in taken.items() if not isinstance(module, _TorchModule)})


def disable_compat() -> None:
    """From now on ``import torch`` imports PyTorch again, if it is installed.

    Examples:
        >>> import oar
        >>> oar.enable_compat()
        >>> import torch
        >>> torch.sin is oar.sin
        True
        >>> oar.disable_compat()
    """
    if _finder not in sys.meta_path:
        warnings.warn("[disable_compat] `import torch` does not import Oar; there is nothing to disable.", stacklevel=2)
        return
    sys.meta_path.remove(_finder)
    taken = _take_torch_modules()
    sys.modules.update({name: module for name, module in taken.items() if not isinstance(module, _TorchModule)})
    sys.modules.update(_finder.real)
    _finder.scope, _finder.blocked = None, frozenset()
    _finder.real.clear()


@contextlib.contextmanager
def use_compat_guard(*, enable: bool = True, scope: str | Iterable[str] | None = None, silent: bool = False) -> Iterator[None]:
    """Within the block ``import torch`` imports Oar, or does not.

    Args:
        enable: whether it does.
        scope: packages for whose code this holds; None for all code.
        silent: accepted for compatibility; a block does not warn.

    Examples:
        >>> import oar
        >>> with oar.use_compat_guard():
        ...     import torch
        ...
        >>> torch.sin is oar.sin
        True
    """
    was_enabled = _finder in sys.meta_path
    before, kept_scope, kept_blocked, kept_real = dict(sys.modules), _finder.scope, _finder.blocked, dict(_finder.real)
    if was_enabled:
        disable_compat()
    if enable:
        enable_compat(scope=scope, blocked_modules=kept_blocked)
    try:
        yield
    finally:
        if _finder in sys.meta_path:
            disable_compat()
        if was_enabled:
            enable_compat(scope=kept_scope, blocked_modules=kept_blocked)
            sys.modules.update({name: module for name, module in before.items() if _is_in(name, ("torch",))})
            _finder.real.update(kept_real)
