#include "oar/runtime/layout.h"

namespace oar {
namespace {

// Nobody reads through it: kernels are only asked whether they would take a call.
void* const kSomewhere = reinterpret_cast<void*>(uintptr_t{1} << 12);

StoragePtr nowhere(Device device) {
  static const StoragePtr on_cpu = Storage::adopt(kSomewhere, 0, Device{}, nullptr, nullptr);
  return device.is_cpu() ? on_cpu : Storage::adopt(kSomewhere, 0, device, nullptr, nullptr);
}

class Question {
 public:
  Question(Args args, TensorList results, Device device) {
    for (const Tensor& t : results) outputs_.push_back(t.impl());
    call.inputs = args.data();
    call.input_count = static_cast<int32_t>(args.size());
    call.outputs = outputs_.data();
    call.output_count = static_cast<int32_t>(outputs_.size());
    call.api = &host_api();
    call.device_index = device.index;
  }
  KernelCall call{};

 private:
  SmallVector<oar_tensor*, 4> outputs_;
};

}  // namespace

bool can_be_laid_out(const ValueType& type) { return type.shape.is_known(); }

Tensor layout_of(const ValueType& type) {
  const SmallVector<int64_t, 6> strides = contiguous_strides(type.shape);
  return Tensor::view_of(nowhere(type.device), type.shape, {strides.data(), strides.size()},
                         kSomewhere, type.dtype);
}

Tensor layout_of(const ViewSpec& spec, const Tensor& base) {
  return Tensor::view_of(nowhere(base.device()), spec.shape,
                         {spec.strides.data(), spec.strides.size()}, kSomewhere, base.dtype());
}

const oar_kernel* kernel_for(const Op& op, Args args, TensorList results, Device device,
                             bool (*counts)(const oar_kernel&)) {
  Question question(args, results, device);
  for (const oar_kernel* kernel : op.kernels(device.type)) {
    if (counts && !counts(*kernel)) continue;
    question.call.context = kernel->context;
    if (!kernel->accepts || !kernel->accepts(&question.call)) return kernel;
  }
  return nullptr;
}

std::shared_ptr<oar_plan> plan_for(const oar_kernel& kernel, Args args, TensorList results,
                                   Device device) {
  if (!kernel.prepare) return nullptr;
  Question question(args, results, device);
  question.call.context = kernel.context;
  return prepare_plan(kernel, question.call);
}

}  // namespace oar
