// The code of one step for one element.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "oar/compiler/fusion/kernel.h"

namespace oar::codegen {

using Builder = llvm::IRBuilder<>;

class Steps {
 public:
  Steps(const fusion::Kernel& kernel, llvm::Module& module, Builder& builder)
      : kernel_(kernel), module_(module), b_(builder) {}

  // The type of a value in a register, and of an element in memory.
  llvm::Type* type_of(DType type);
  llvm::Type* stored_type(DType type);
  llvm::Value* widened(llvm::Value* element, DType stored);
  llvm::Value* narrowed(llvm::Value* value, DType type, DType stored);

  llvm::Value* number(const fusion::Step& step);
  llvm::Value* cast(llvm::Value* value, DType from, DType to);
  llvm::Value* rounded(llvm::Value* value, DType to);
  // `slow`: also for arguments that are hard.
  llvm::Value* apply(const fusion::Step& step, llvm::Value* const* operands, bool slow);
  // Is the step's fast form wrong for these operands? Null if it never is.
  llvm::Value* hard(const fusion::Step& step, llvm::Value* const* operands);
  // Folds: what they begin with, and one step.
  llvm::Value* neutral(const fusion::Step& fold);
  llvm::Value* joined(const fusion::Step& fold, llvm::Value* sum, llvm::Value* value);

 private:
  llvm::Value* call(const std::string& name, llvm::Type* result,
                    std::initializer_list<llvm::Value*> arguments);
  llvm::Value* function(const char* name, DType type, llvm::Value* const* operands, int count);
  llvm::Value* intrinsic(llvm::Intrinsic::ID id, std::initializer_list<llvm::Value*> arguments);
  llvm::Value* apply_real(const fusion::Step& step, llvm::Value* const* operands, bool slow);
  llvm::Value* apply_whole(const fusion::Step& step, llvm::Value* const* operands);
  llvm::Value* apply_truth(const fusion::Step& step, llvm::Value* const* operands);
  llvm::Value* compared(ScalarFn fn, DType type, llvm::Value* a, llvm::Value* b);
  llvm::Value* larger(llvm::Value* a, llvm::Value* b, bool b_is_number, bool smaller);
  llvm::Value* shifted(ScalarFn fn, DType type, llvm::Value* a, llvm::Value* b);

  const fusion::Kernel& kernel_;
  llvm::Module& module_;
  Builder& b_;
};

}  // namespace oar::codegen
