// The interface of the code generator, a library of its own that is loaded when it is first needed.
#pragma once

#include <string>

#include "oar/compiler/fusion/kernel.h"

namespace oar::codegen {

// Native code for this machine that lives as long as the process; null with the reason in `why`. `widest` is the size of the
// widest vectors that may be used, in bits. One thread at a time.
using Compile = fusion::Code (*)(const fusion::Kernel& kernel, int widest, std::string& why);
inline constexpr char kCompile[] = "oar_codegen_compile";

}  // namespace oar::codegen
