// Joining.
#include "oar/backend/cpu/loops/copy.h"

namespace oar::cpu {
namespace {

void concat(KernelCall& call) {
  const oar_tensor& out = call.out();
  const auto axis = static_cast<size_t>(normalise_axis(call.arg(1).as_int(), out.ndim));
  ViewSpec spec{Shape(dims_of(out)), {out.strides, out.strides + out.ndim}, 0};
  for (const Tensor& part : call.arg(0).as_tensors()) {
    spec.shape[axis] = part.dims()[axis];
    copy_elements(LocalTensor(out, spec), *part.impl());
    spec.offset += part->shape[axis] * out.strides[axis];
  }
}

}  // namespace

KernelList concat_kernels() {
  static const oar_kernel list[] = {
      {"concat", 1, "cpu:generic", nullptr, kernel_entry<concat>},
  };
  return list;
}

}  // namespace oar::cpu
