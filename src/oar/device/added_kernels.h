// Kernels that are added at run time, from a library that is not a device plug-in: a user's own ops, generated code.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/device/abi.h"

namespace OAR_API oar {
namespace devices {

struct AddedKernel {
  std::string op;
  std::string name;                                     // for traces
  const char* (*accepts)(const oar_kernel_call* call);  // as in oar_kernel
  int32_t (*run)(oar_kernel_call* call);
  int32_t (*prepare)(const oar_kernel_call* call, oar_plan** plan) = nullptr;
  void (*destroy_plan)(void* context, oar_plan* plan) = nullptr;
};

// Adds a candidate for an op on the CPU, after the existing ones.
void add_kernel(AddedKernel kernel);
// Appends the candidates that were added for an op.
void added_kernels(std::string_view op, std::vector<const oar_kernel*>& to);

}  // namespace devices
}  // namespace oar
