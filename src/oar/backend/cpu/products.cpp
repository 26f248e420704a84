// The Kronecker product.
#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {
namespace {

// The axes of both operands, from the last one on; a missing one has size 1.
struct Blocks {
  const oar_tensor &x, &y;
  int rank() const { return std::max(x.ndim, y.ndim); }
  static int64_t size(const oar_tensor& t, int from_end) {
    return from_end < t.ndim ? t.shape[t.ndim - 1 - from_end] : 1;
  }
  // The rows of x and of y that the given row of the result multiplies.
  std::pair<int64_t, int64_t> rows(int64_t row) const {
    int64_t x_row = 0, y_row = 0, x_step = 1, y_step = 1;
    for (int i = 1; i < rank(); ++i) {
      const int64_t inner = size(y, i), outer = size(x, i);
      y_row += row % inner * y_step;
      row /= inner;
      x_row += row % outer * x_step;
      row /= outer;
      x_step *= outer;
      y_step *= inner;
    }
    return {x_row, y_row};
  }
};

template <class T>
void multiply_rows(const T* x, int64_t x_length, const T* y, int64_t y_length, T* out) {
  for (int64_t j = 0; j < x_length; ++j, out += y_length) {
    const T factor = x[j];
    for (int64_t l = 0; l < y_length; ++l)
      out[l] = wrapping(factor, y[l], [](auto a, auto b) { return a * b; });
  }
}

void kron(KernelCall& call) {
  const oar_tensor& out = call.out();
  if (out.numel == 0) return;
  const Blocks blocks{call.in(0), call.in(1)};
  const int64_t x_length = Blocks::size(blocks.x, 0), y_length = Blocks::size(blocks.y, 0);
  const int64_t length = x_length * y_length;
  visit_wide<kAllTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> x(blocks.x), y(blocks.y);
    const Result<T> result(out);
    T* o = result.data();
    parallel_for(0, out.numel / length, std::max<int64_t>(1, kGrain / length),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t row = begin; row < end; ++row) {
                     const auto [x_row, y_row] = blocks.rows(row);
                     multiply_rows(x.data() + x_row * x_length, x_length,
                                   y.data() + y_row * y_length, y_length, o + row * length);
                   }
                 });
    result.finish();
  });
}

}  // namespace

KernelList products_kernels() {
  static const oar_kernel list[] = {
      {"kron", 1, "cpu:generic", nullptr, kernel_entry<kron>},
  };
  return list;
}

}  // namespace oar::cpu
