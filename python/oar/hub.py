"""Models from a folder with a file ``hubconf.py``, whose public functions make them."""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from typing import Any

__all__ = ["help", "list", "load", "load_state_dict_from_url"]

_CONFIG = "hubconf.py"


def _config(repo_dir: str, source: str) -> types.ModuleType:
    """The module ``hubconf.py`` of a folder, after a look at what it says it needs."""
    if source in ("github", "gitee"):
        raise NotImplementedError(f"[hub] source={source!r} is not available yet. hint: clone the repository and pass its "
                                  "folder with source='local'.")
    if source != "local":
        raise ValueError(f"[hub] source is {source!r}; it can be 'local'.")
    path = os.path.join(repo_dir, _CONFIG)
    if not os.path.exists(path):
        raise FileNotFoundError(f"[hub] there is no {_CONFIG} in {repo_dir!r}.")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, repo_dir)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(repo_dir)
    lacking = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if lacking:
        raise RuntimeError(f"[hub] {repo_dir!r} needs modules that are not installed: {', '.join(lacking)}.")
    return module


def _makers(module: types.ModuleType) -> dict[str, Callable[..., Any]]:
    return {name: value for name, value in vars(module).items() if callable(value) and not name.startswith("_")}


def _maker(repo_dir: str, model: str, source: str) -> Callable[..., Any]:
    if not isinstance(model, str):
        raise ValueError(f"[hub] model is {model!r}; it should be the name of a function in {_CONFIG}.")
    makers = _makers(_config(repo_dir, source))
    if model not in makers:
        raise RuntimeError(f"[hub] {_CONFIG} has no function {model!r}. It has {', '.join(makers)}.")
    return makers[model]


def list(repo_dir: str, source: str = "github", force_reload: bool = False) -> builtins.list[str]:
    """The names of the models that a folder offers.

    Args:
        repo_dir: the folder.
        source: ``'local'``. Repositories of ``'github'`` and ``'gitee'`` are not available yet.
        force_reload: accepted for compatibility.

    Returns:
        a list of strings.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> _ = pathlib.Path(folder, 'hubconf.py').write_text('def small(size=2):\\n    "A list."\\n    return [0] * size')
        >>> oar.hub.list(folder, source='local')
        ['small']
    """
    return [*_makers(_config(repo_dir, source))]


def help(repo_dir: str, model: str, source: str = "github", force_reload: bool = False) -> str | None:
    """The docstring of the function that makes a model.

    Args:
        repo_dir: the folder.
        model: the name of the model.
        source: ``'local'``. Repositories of ``'github'`` and ``'gitee'`` are not available yet.
        force_reload: accepted for compatibility.

    Returns:
        a string, or None if it has no docstring.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> _ = pathlib.Path(folder, 'hubconf.py').write_text('def small(size=2):\\n    "A list."\\n    return [0] * size')
        >>> oar.hub.help(folder, 'small', source='local')
        'A list.'
    """
    return _maker(repo_dir, model, source).__doc__


def load(repo_dir: str, model: str, source: str = "github", force_reload: bool = False, **kwargs: Any) -> Any:
    """Makes a model. This runs the code of ``hubconf.py``.

    Args:
        repo_dir: the folder.
        model: the name of the model.
        source: ``'local'``. Repositories of ``'github'`` and ``'gitee'`` are not available yet.
        force_reload: accepted for compatibility.
        kwargs: arguments of the function that makes the model.

    Returns:
        what the function returns.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> _ = pathlib.Path(folder, 'hubconf.py').write_text('def small(size=2):\\n    "A list."\\n    return [0] * size')
        >>> oar.hub.load(folder, 'small', source='local', size=3)
        [0, 0, 0]
    """
    return _maker(repo_dir, model, source)(**kwargs)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, check_hash: bool = False, file_name: str | None = None,
    map_location: Any = None,
) -> Any:  # fmt: skip
    """Fetches a file of weights, unless it is in the cache, and loads it.

    Args:
        url: the address of the file.
        model_dir: the folder to keep it in; None is one of the user's cache.
        check_hash: whether the name ends in the beginning of the file's SHA-256 sum, which is to be checked:
            ``net-0a1b2c3d.pdparams``.
        file_name: the name of the file in the folder; None takes that of the address.
        map_location: the device, ``'cpu'``; None is the same.

    Returns:
        what ``oar.load`` returns.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.hub.load_state_dict_from_url('net.pdparams')
        ... except ValueError as error:
        ...     print(error)
        ...
        [download] 'net.pdparams' is no address; it must begin with http:// or https://.
    """
    from oar import load as load_file
    from oar._places import device_name, unavailable
    from oar.utils import download

    if map_location is not None and device_name(map_location) != "cpu":
        raise unavailable("load_state_dict_from_url", str(map_location))
    path = download.get_path_from_url(url, model_dir or download.WEIGHTS_HOME)
    if check_hash:
        _check_hash(path)
    if file_name is not None and os.path.isfile(path):
        wanted = os.path.join(os.path.dirname(path), file_name)
        os.replace(path, wanted)
        path = wanted
    return load_file(path)


def _check_hash(path: str) -> None:
    import hashlib

    wanted = os.path.splitext(os.path.basename(path))[0].rpartition("-")[2]
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if len(wanted) < 8 or not found.startswith(wanted):
        raise RuntimeError(f"[hub] the SHA-256 sum of {path!r} begins with {found[:8]}, not with {wanted!r}, as its name says.")
