// A kernel as LLVM's intermediate representation.
#pragma once

#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

#include "oar/compiler/fusion/kernel.h"

namespace oar::codegen {

// The functions of functions.cpp that it calls are only declared. Throws std::runtime_error for a step that has no code.
llvm::Function* emit_kernel(const fusion::Kernel& kernel, llvm::Module& module,
                            const std::string& name);

}  // namespace oar::codegen
