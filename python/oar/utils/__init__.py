"""Small helpers: unique names, optional imports, versions, extensions."""

from oar.framework import unique_name
from oar.utils import dlpack
from oar.utils.helpers import deprecated, require_version, try_import
from oar.utils.register_op import register_op

__all__ = ["cpp_extension", "deprecated", "dlpack", "register_op", "require_version", "try_import", "unique_name"]


_NESTS = ("assert_same_structure", "flatten", "is_sequence", "map_structure", "pack_sequence_as", "to_sequence")


def __getattr__(name: str):
    if name == "layers_utils" or name in _NESTS:  # they need oar.jit, which needs this module
        import importlib

        module = importlib.import_module("oar.utils.layers_utils")
        return module if name == "layers_utils" else getattr(module, name)
    if name == "cpp_extension":  # imported when it is first used: few programs compile
        import importlib

        return importlib.import_module("oar.utils.cpp_extension")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
