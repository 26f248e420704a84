// The gradient of a view with any strides.
#include <cstring>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/tensor/strides.h"

namespace oar::cpu {
namespace {

// Element by element in order; small floats are summed in float.
template <class T>
void add_strided(const oar_tensor& out, const oar_tensor& value, Ints strides, int64_t offset) {
  using C = compute_t<T>;
  const bool wide = !std::is_same_v<T, C>;
  Scratch<C, 64> sums(wide ? out.numel : 0);
  C* to = wide ? sums.data() : static_cast<C*>(out.data);
  std::fill(to, to + out.numel, C(0));
  SmallVector<int64_t, 6> index(static_cast<size_t>(value.ndim), 0);
  const auto* from = static_cast<const T*>(value.data);
  int64_t read = 0, write = offset;
  for (int64_t n = 0; n < value.numel; ++n) {
    to[write] = static_cast<C>(to[write] + static_cast<C>(from[read]));
    for (int axis = value.ndim - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      read += value.strides[axis];
      write += strides[a];
      if (++index[a] < value.shape[axis]) break;
      read -= value.strides[axis] * value.shape[axis];
      write -= strides[a] * value.shape[axis];
      index[a] = 0;
    }
  }
  if (wide)
    for (int64_t i = 0; i < out.numel; ++i) static_cast<T*>(out.data)[i] = static_cast<T>(sums[i]);
}

void as_strided_grad(KernelCall& call) {
  const oar_tensor &value = call.in(0), &out = call.out();
  const Ints strides = call.arg(2).as_ints();
  const int64_t offset = call.arg(3).as_int();
  if (meets_each_once({value.shape, static_cast<size_t>(value.ndim)}, strides)) {
    if (out.numel > 0) std::memset(out.data, 0, static_cast<size_t>(out.numel * element_size(out)));
    const ViewSpec spec{Shape(dims_of(value)), {strides.begin(), strides.end()}, offset};
    if (value.numel > 0) copy_elements(LocalTensor(out, spec), value);
    return;
  }
  visit<kAllTypes>(dtype_of(out), [&](auto tag) {
    add_strided<typename decltype(tag)::type>(out, value, strides, offset);
  });
}

}  // namespace

KernelList strided_kernels() {
  static const oar_kernel list[] = {
      {"as_strided_grad", 1, "cpu:generic", nullptr, training_entry<as_strided_grad>},
  };
  return list;
}

}  // namespace oar::cpu
