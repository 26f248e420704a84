// Writing to slices.
#include "oar/backend/cpu/loops/copy.h"
#include "oar/ops/core/view.h"

namespace oar::cpu {
namespace {

// Writes `value`, broadcast, to the view; from a copy if they share memory.
void write_broadcast(const oar_tensor& view, const oar_tensor& value) {
  const LocalTensor stretched = LocalTensor::broadcast(value, dims_of(view));
  if (!ranges_meet(view, value)) return copy_elements(view, stretched);
  const TemporaryTensor copied(dims_of(value), dtype_of(value));
  copy_elements(*copied, value);
  copy_elements(view, LocalTensor::broadcast(*copied, dims_of(view)));
}

void write_slice(const oar_tensor& out, const oar_tensor& value, Ints index) {
  ViewSpec part;
  sliced_view(as_words(dims_of(out)), strides_of(out), index, part);
  write_broadcast(LocalTensor(out, part), value);
}

void slice_put(KernelCall& call) {
  copy_elements(call.out(), call.in(0));
  write_slice(call.out(), call.in(1), call.arg(2).as_ints());
}

void slice_put_inplace(KernelCall& call) {
  write_slice(call.in(0), call.in(1), call.arg(2).as_ints());
}

}  // namespace

KernelList slice_kernels() {
  static const oar_kernel list[] = {
      {"slice_put", 1, "cpu:generic", nullptr, kernel_entry<slice_put>},
      {"slice_put_", 1, "cpu:generic", nullptr, kernel_entry<slice_put_inplace>},
  };
  return list;
}

}  // namespace oar::cpu
