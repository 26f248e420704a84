#include "oar/ops/families/transfer.h"

#include "oar/device/device.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/transfer.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

size_t bytes_of(const Tensor& t) { return static_cast<size_t>(byte_count(t->numel, t.dtype())); }

Tensor copied(const Tensor& x, Device device) {
  note_read(x);
  Tensor out = Tensor::empty(x.dims(), x.dtype(), device);
  const Device& there = device.is_cpu() ? x.device() : device;
  devices::copy(device, out->data, x.device(), x->data, bytes_of(x), current_stream(there));
  return out;
}

Tensor moved(const Tensor& x, Device device) {
  if (x.device() == device) return assign(x);
  user_check(
      x.is_dense(), ErrorKind::Unsupported,
      "only dense tensors are moved between devices, not {}.\nhint: Move it before the capture or "
      "transformation, or convert it to dense first.",
      x.describe());
  return copied(x.is_contiguous() ? x : assign(x), device);
}

// Not a kernel of a device: it acts between two of them. `supports` of a device that has a kernel for
// every op must decline it.
const OpDef copy_to_device_op = {
    .schema = "copy_to_device(Tensor x, str device) -> Tensor",
    .brief = "A copy of x in the memory of another device, such as 'cpu' or 'npu:1'.",
    .infer = infer::same_as_first,
    .decompose = [](const args::copy_to_device& a) -> Made {
      return moved(a.x, devices::parse(a.device));
    },
    .vjp = [](const vjp::copy_to_device& v) -> Grads {
      return copy_to_device(v.grad, devices::to_string(v.x.device()));
    },
    .saves = "x:shape",
    .shard = "... -> ...",
    .traits = Trait::Linear | Trait::Packed,
    .numpy = "x.copy()",
    .samples =
        [] { return Samples().add(t({2, 3}), "cpu").add(t({}), "cpu").add(t({0, 2}), "cpu"); },
};

}  // namespace

Tensor to_device(const Tensor& x, Device device) {
  return x.device() == device ? x : copy_to_device(x, devices::to_string(device));
}

OAR_FAMILY(transfer, &copy_to_device_op)

}  // namespace oar
