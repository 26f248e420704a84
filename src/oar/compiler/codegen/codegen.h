// The interface of the code generator, a library of its own that is loaded when it is first needed.
#pragma once

#include <string>
#include <string_view>

#include "oar/compiler/fusion/kernel.h"

namespace oar::codegen {

// `widest` is the size of the widest vectors that may be used, in bits. One thread at a time. What fails says so in `why`.
struct Generator {
  // All that code depends on besides its kernel: builds of Oar and LLVM, and the processor. Empty if builds cannot be told apart.
  std::string (*identity)(int widest, std::string& why);
  // Object code of a kernel for this machine; empty if that fails.
  std::string (*compile)(const fusion::Kernel& kernel, int widest, std::string& why);
  // Object code as a function that lives as long as the process; null if that fails.
  fusion::Code (*load)(std::string_view object, int widest, std::string& why);
};

using GetGenerator = const Generator& (*)();
inline constexpr char kGetGenerator[] = "oar_codegen";

}  // namespace oar::codegen
