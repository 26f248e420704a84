#include "oar/compiler/capture/cell.h"

#include <algorithm>

namespace oar {

thread_local PayloadCount t_payload_count;

Tensor fresh_layout(Dims shape) {
  Shape hints;
  for (Dim d : shape) hints.push_back(d.hint());
  return Tensor::meta(hints, DType::Float32);
}

Tensor view_layout(const Op& op, Args args, const Tensor& base) {
  Frame frame = replace_dims(op, args, [](Dim d) { return d.hint(); });
  frame.set_tensor(0, base);
  std::optional<ViewSpec> spec;
  try {
    spec = op.def().view(frame.args());
  } catch (const Error&) {
    // An open size that is assumed to equal a known one has another hint: its layout does not fit here.
  }
  if (!spec) return {};
  Tensor layout = Tensor::meta(Dims{}, DType::Float32);
  layout->set_layout(spec->shape, {spec->strides.data(), spec->strides.size()});
  return layout;
}

bool is_injective(const Tensor& layout) {
  SmallVector<std::pair<int64_t, int64_t>, 6> axes;  // (stride, size)
  for (int i = 0; i < layout.rank(); ++i)
    if (layout->shape[i] > 1) axes.push_back({std::abs(layout->strides[i]), layout->shape[i]});
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : axes) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

}  // namespace oar
