#include "oar/runtime/layout.h"

#include "oar/device/device.h"

namespace oar {
namespace {

// Never dereferenced: kernels are only asked whether they would accept a call.
void* const kSomewhere = reinterpret_cast<void*>(uintptr_t{64});

const StoragePtr& nowhere() {
  static const StoragePtr storage = Storage::adopt(kSomewhere, 0, Device{}, nullptr, nullptr);
  return storage;
}

}  // namespace

bool can_be_laid_out(const ValueType& type) {
  return type.device.is_cpu() && type.shape.is_known();
}

Tensor layout_of(const ValueType& type) {
  const SmallVector<int64_t, 6> strides = contiguous_strides(type.shape);
  return Tensor::view_of(nowhere(), type.shape, {strides.data(), strides.size()}, kSomewhere,
                         type.dtype);
}

Tensor layout_of(const ViewSpec& spec, DType dtype) {
  return Tensor::view_of(nowhere(), spec.shape, {spec.strides.data(), spec.strides.size()},
                         kSomewhere, dtype);
}

const oar_kernel* kernel_for(const Op& op, Args args, TensorList results) {
  SmallVector<oar_tensor*, 4> raw;
  for (const Tensor& t : results) raw.push_back(t.impl());
  KernelCall question{};
  question.inputs = args.data();
  question.input_count = static_cast<int32_t>(args.size());
  question.outputs = raw.data();
  question.output_count = static_cast<int32_t>(raw.size());
  question.api = &host_api();
  for (const oar_kernel* kernel : op.kernels(Device{}.type))
    if (!kernel->accepts || !kernel->accepts(&question)) return kernel;
  return nullptr;
}

}  // namespace oar
