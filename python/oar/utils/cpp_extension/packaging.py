"""``setup`` for packages with ops: a module whose functions are the ops of a compiled library."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from oar.utils.cpp_extension.build import compile_command, compile_library

_MODULE = '''"""Ops of the library next to this file."""

import os as _os

from oar.utils.cpp_extension.load import load_library as _load_library

_ops = _load_library(_os.path.join(_os.path.dirname(__file__), "{library}"), __name__)
globals().update({{_name: getattr(_ops, _name) for _name in _ops.__all__}})
__all__ = list(_ops.__all__)
'''


def _setuptools() -> Any:
    try:
        import setuptools
        from setuptools.command.build_ext import build_ext
    except ImportError:
        raise ImportError("setup needs setuptools. Install it with `pip install setuptools`.") from None
    return setuptools, build_ext


def CppExtension(sources: Sequence[str], *args, **kwargs):  # noqa: N802, Paddle's name
    """The sources of a library of ops, for ``setup``. Other arguments are those of ``setuptools.Extension``.

    Args:
        sources: the files to compile.

    Returns:
        a ``setuptools.Extension``; its name is that of the first file, until ``setup`` gives it the name of the package.

    Examples:
        This needs setuptools.

        >>> from oar.utils.cpp_extension import CppExtension
        >>> extension = CppExtension(["scaled_relu.cpp", "gates.cpp"], extra_compile_args=["-O3"])
        >>> extension.name, extension.sources
        ('scaled_relu', ['scaled_relu.cpp', 'gates.cpp'])
    """
    setuptools, _ = _setuptools()
    name = kwargs.pop("name", None) or os.path.splitext(os.path.basename(sources[0]))[0]
    return setuptools.Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(sources: Sequence[str], *args, **kwargs):  # noqa: N802, Paddle's name
    """Raises ``NotImplementedError``: Oar has no CUDA back end. ``sources`` without CUDA go to ``CppExtension``.

    Examples:
        >>> from oar.utils.cpp_extension import CUDAExtension
        >>> CUDAExtension(["kernel.cu"])
        Traceback (most recent call last):
        NotImplementedError: Oar has no CUDA back end, so CUDAExtension cannot be built. Use CppExtension with the C++ sources.
    """
    raise NotImplementedError("Oar has no CUDA back end, so CUDAExtension cannot be built. Use CppExtension with the "
                              "C++ sources.")


class BuildExtension:
    """The command ``build_ext`` that builds the extensions of ``setup``, which uses it by itself.

    Examples:
        This needs setuptools.

        >>> from oar.utils.cpp_extension import BuildExtension
        >>> from setuptools.command.build_ext import build_ext
        >>> issubclass(BuildExtension.with_options(verbose=True), build_ext)
        True
    """

    @staticmethod
    def with_options(**options):
        """The command with options: ``verbose=True`` prints the compiler's command."""
        return _build_command(options)

    def __new__(cls, *args, **kwargs):
        return _build_command({})(*args, **kwargs)


def _build_command(options: dict):
    _, build_ext = _setuptools()

    class Build(build_ext):  # type: ignore[misc, valid-type]
        """Each extension is a module ``name.py`` with its library next to it."""

        def build_extension(self, extension) -> None:
            target = self.get_ext_fullpath(extension.name)
            folder = os.path.dirname(os.path.abspath(target))
            os.makedirs(folder, exist_ok=True)
            library = f"_{extension.name.rpartition('.')[2]}_ops.so"
            flags = extension.extra_compile_args or []
            if isinstance(flags, dict):  # {"cxx": [...]}, as Paddle writes it
                flags = flags.get("cxx", [])
            compile_library(compile_command(
                [os.path.abspath(s) for s in extension.sources], os.path.join(folder, library), cflags=flags,
                ldflags=extension.extra_link_args or [], includes=extension.include_dirs or [],
                libraries=extension.library_dirs or []), verbose=options.get("verbose", False))
            with open(self._module_path(extension), "w", encoding="utf-8") as file:
                file.write(_MODULE.format(library=library))

        def _module_path(self, extension) -> str:
            folder = os.path.dirname(os.path.abspath(self.get_ext_fullpath(extension.name)))
            return os.path.join(folder, extension.name.rpartition(".")[2] + ".py")

        def get_outputs(self) -> list[str]:
            outputs = []
            for extension in self.extensions:
                module = self._module_path(extension)
                library = f"_{extension.name.rpartition('.')[2]}_ops.so"
                outputs += [module, os.path.join(os.path.dirname(module), library)]
            return outputs

        def copy_extensions_to_source(self) -> None:
            """For `develop`: modules are built where they are found."""

    return Build


def setup(**attributes) -> None:
    """``setuptools.setup`` for a package of ops: ``setup(name="my_ops", ext_modules=CppExtension(sources=[...]))``.

    After the installation ``import my_ops`` gives a module with the ops as functions. Other arguments are those of
    ``setuptools.setup``.

    Examples:
        This needs setuptools, and a C++ compiler to build. A ``setup.py`` calls it:

        >>> import contextlib, io
        >>> from oar.utils.cpp_extension import CppExtension, setup
        >>> extension = CppExtension(sources=["scaled_relu.cpp"])
        >>> with contextlib.redirect_stdout(io.StringIO()) as said:
        ...     setup(name="my_ops", version="1.0", ext_modules=extension, script_args=["--name", "--version"])
        ...
        >>> said.getvalue().split(), extension.name
        (['my_ops', '1.0'], 'my_ops')
    """
    setuptools, _ = _setuptools()
    if "name" not in attributes:
        raise ValueError("[setup] name is missing: it is the name of the module that users import.")
    extensions = attributes.get("ext_modules")
    if extensions is None:
        raise ValueError("[setup] ext_modules is missing: pass CppExtension(sources=[...]).")
    if not isinstance(extensions, (list, tuple)):
        extensions = [extensions]
    if len(extensions) != 1:
        raise ValueError(f"[setup] ext_modules has {len(extensions)} extensions; one package has one library. Give "
                         "all sources to one CppExtension.")
    extensions[0].name = attributes["name"]
    attributes["ext_modules"] = list(extensions)
    attributes.setdefault("py_modules", [])
    commands = dict(attributes.get("cmdclass") or {})
    build = commands.get("build_ext", BuildExtension)
    commands["build_ext"] = _build_command({}) if build is BuildExtension else build
    attributes["cmdclass"] = commands
    attributes.setdefault("zip_safe", False)
    setuptools.setup(**attributes)
