"""Small helpers: unique names, optional imports, versions, extensions."""

from oar.framework import unique_name
from oar.utils import dlpack
from oar.utils.helpers import deprecated, require_version, try_import
from oar.utils.register_op import register_op

__all__ = ["deprecated", "dlpack", "register_op", "require_version", "try_import", "unique_name"]
