// Native code of kernels: from the code generator, once for each text and process.
#pragma once

#include "oar/base/api.h"
#include "oar/compiler/fusion/kernel.h"

namespace OAR_API oar {
namespace fusion {

// Can kernels be compiled here? Loads the code generator at the first call. If not, `why` says so.
bool can_compile(std::string* why = nullptr);
// Was it asked for in vain?
bool is_known_missing();

// Null where the generator fails, which is reported once. From memory, from disk (kernel_cache.h), or compiled.
Code code_of(const Kernel& kernel);

// Where code is kept on disk, or why it is not, for people.
std::string kernel_cache_state();

// Registers the kernel of the op `fused` for the CPU. At start.
void install_kernel();

}  // namespace fusion
}  // namespace oar
