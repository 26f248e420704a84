"""Where the headers and the library are, for those who compile C++ against Oar."""

from __future__ import annotations

__all__ = ["get_include", "get_lib"]


def get_include() -> str:
    """The folder of the headers: ``#include "oar/oar.h"``.

    Returns:
        a path.

    Examples:
        >>> import os
        >>> import oar
        >>> os.path.exists(os.path.join(oar.sysconfig.get_include(), 'oar', 'oar.h'))
        True
    """
    from oar.utils.cpp_extension.build import include_folders

    return include_folders()[0]


def get_lib() -> str:
    """The folder of ``liboar.so``.

    Returns:
        a path.

    Examples:
        >>> import os
        >>> import oar
        >>> os.path.exists(os.path.join(oar.sysconfig.get_lib(), 'liboar.so'))
        True
    """
    from oar.utils.cpp_extension.build import library_folder

    return library_folder()
