"""The list of the CPU backend's kernel lists, found in its sources: a new kernel file needs no other edit."""

from __future__ import annotations

import re
from pathlib import Path

_LIST = re.compile(r"^KernelList (\w+_kernels)\(\) \{", re.MULTILINE)


def names(folder: Path) -> list[str]:
    """Every function `KernelList x_kernels()` of the folder; optional libraries have folders of their own."""
    return sorted(name for path in [*folder.glob("*.cpp"), *folder.glob("simd/*.cpp")] for name in _LIST.findall(path.read_text()))


def header(folder: Path) -> str:
    found = names(folder)
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
