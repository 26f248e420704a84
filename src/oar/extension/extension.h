// Ops of users, in libraries that are loaded at run time.
//
//   oar::OpDef soft_square() { return {.schema = "my_soft_square(Tensor x) -> Tensor", …}; }
//   void soft_square_cpu(oar::KernelCall& call) { … }
//
//   OAR_EXTENSION_OP(soft_square, soft_square_cpu);
//
// A third argument, `const char* f(const KernelCall&)`, returns why the kernel declines a call, or null.
// docs/custom-ops.md has the details. paddle/extension.h offers the same with Paddle's names.
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"

namespace OAR_API oar {
namespace extension {

// An op of a library. Without a kernel it runs as its decomposition.
struct Addition {
  OpDef def;
  int32_t (*kernel)(oar_kernel_call* call) = nullptr;
  const char* (*accepts)(const oar_kernel_call* call) = nullptr;  // null: every call
  std::string python;   // the name of its function; empty for an op that no user calls
  bool writes = false;  // the function is the record's in-place form
};

struct Function {
  std::string name;
  const Op* op;
};

// Loads a library and adds the ops that it announced: all, or none and an error that says why. For
// a library that is loaded already, returns the same functions again.
const std::vector<Function>& load(const std::string& path);

// Records an op. Runs while the library is loaded, where an exception would end the program, so
// `load` does all the checks.
bool announce(Addition (*make)()) noexcept;

template <const char* (*kAccepts)(const KernelCall&)>
const char* accepts_entry(const oar_kernel_call* call) {
  return kAccepts(*static_cast<const KernelCall*>(call));
}

template <OpDef (*kRecord)(), void (*kKernel)(KernelCall&) = nullptr,
          const char* (*kAccepts)(const KernelCall&) = nullptr>
Addition addition() {
  Addition made;
  made.def = kRecord();
  if constexpr (kKernel != nullptr) made.kernel = kernel_entry<kKernel>;
  if constexpr (kAccepts != nullptr) made.accepts = accepts_entry<kAccepts>;
  made.python = made.def.schema ? Schema::parse(made.def.schema).name : "";
  return made;
}

}  // namespace extension
}  // namespace oar

#define OAR_EXTENSION_OP(record, ...)                   \
  [[maybe_unused]] static const bool oar_has_##record = \
      ::oar::extension::announce(&::oar::extension::addition<record __VA_OPT__(, ) __VA_ARGS__>)
