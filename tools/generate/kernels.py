"""The list of the CPU backend's kernel lists, found in its sources: a new kernel file needs no other edit."""

from __future__ import annotations

import re
from pathlib import Path

_LIST = re.compile(r"^KernelList (\w+_kernels)\(\) \{", re.MULTILINE)


def header(folders: list[Path], without: str) -> str:
    """Declares and lists every `KernelList x_kernels()`; a folder that is not compiled is not given."""
    sources = [path for folder in folders for path in sorted(folder.glob("*.cpp"))]
    sources = [path for path in sources if not re.search(without, str(path))]
    found = [name for path in sources for name in _LIST.findall(path.read_text())]
    declared = "".join(f"KernelList {name}();\n" for name in found)
    listed = "".join(f"    {name},\n" for name in found)
    return f"""// Generated from the sources of backend/cpu.
#pragma once

#include <span>

#include "oar/device/abi.h"

namespace oar::cpu {{

using KernelList = std::span<const oar_kernel>;
{declared}
inline constexpr KernelList (*kKernelLists[])() = {{
{listed}}};

}}  // namespace oar::cpu
"""
