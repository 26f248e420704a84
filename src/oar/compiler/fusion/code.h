// Native code of kernels: from the code generator, once for each text.
#pragma once

#include "oar/base/api.h"
#include "oar/compiler/fusion/kernel.h"

namespace OAR_API oar {
namespace fusion {

// Can kernels be compiled here? Loads the code generator at the first call. If not, `why` says so.
bool can_compile(std::string* why = nullptr);

// Null where the generator fails, which is reported once.
Code code_of(const Kernel& kernel);

// Registers the kernel of the op `fused` for the CPU. At start.
void install_kernel();

}  // namespace fusion
}  // namespace oar
