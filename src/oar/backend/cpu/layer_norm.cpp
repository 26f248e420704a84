// Layer normalisation with its derivative. 16-bit floats compute in float32; variances are computed around a
// known mean.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loops/groups.h"
#include "oar/backend/cpu/loops/streaming.h"
#include "oar/backend/cpu/rows/row_buffer.h"
#include "oar/backend/cpu/rows/row_table.h"

namespace oar::cpu {
namespace {

struct RowSpan {
  int64_t rows = 1, length = 1;
  RowSpan(const oar_tensor& x, int64_t begin_axis) {
    for (int i = 0; i < x.ndim; ++i) (i < begin_axis ? rows : length) *= x.shape[i];
  }
  int64_t grain() const { return std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(length, 1)); }
};

void layer_norm_rows(KernelCall& call) {
  const RowSpan span(call.in(0), call.arg(3).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const auto epsilon = static_cast<C>(call.arg(4).as_double());
    const auto n = static_cast<C>(span.length);
    const RowTable<C>& table = row_table<C>();
    const Contiguous<T> x(call.in(0));
    const Converted<C> weight(optional_in(call, 1)), bias(optional_in(call, 2));
    auto* out = static_cast<T*>(call.out(0).data);
    auto *means = static_cast<C*>(call.out(1).data), *invs = static_cast<C*>(call.out(2).data);
    const bool stream = streams<T>(call.out(0));
    parallel_for(0, span.rows, span.grain(), [&](int64_t begin, int64_t end) {
      const RowBuffer<T> in(span.length), made(span.length);
      const StreamFence fence;
      for (int64_t r = begin; r < end; ++r) {
        const C* row = in.read(x.data() + r * span.length);
        T* to = out + r * span.length;
        const C mean = table.sum(row, span.length) / n;
        const C inv = 1 / std::sqrt(table.spread(row, span.length, mean) / n + epsilon);
        table.normalise(row, made.place(to), span.length, mean, inv, weight.data(), bias.data(),
                        stream);
        made.finish(to);
        means[r] = mean;
        invs[r] = inv;
      }
    });
  });
}

// What the rows of a derivative share.
template <class T>
struct RowsGrad {
  using C = compute_t<T>;
  const T* x;
  const T* grad;
  const C* weight;
  const C *mean, *inv, *grad_mean, *grad_inv;
  T* to;
  int64_t length;
  bool stream;

  // Rows [first, end); adds to the sums of weight and bias, if they are not null.
  void run(int64_t first, int64_t end, C* of_weight, C* of_bias) const {
    const RowTable<C>& table = row_table<C>();
    const RowBuffer<T> xs(length), grads(length), made(length);
    const C n = static_cast<C>(length);
    const StreamFence fence;
    for (int64_t r = first; r < end; ++r) {
      const C *x_row = xs.read(x + r * length), *g = grads.read(grad + r * length);
      C level, slope;
      table.norm_sums(g, weight, x_row, length, mean[r], &level, &slope);
      level = level / n - grad_mean[r] / (n * inv[r]);
      slope = (slope + grad_inv[r]) * inv[r] * inv[r] / n;
      if (of_weight) table.norm_affine(g, x_row, length, mean[r], inv[r], of_weight, of_bias);
      table.norm_grad(g, weight, x_row, made.place(to + r * length), length, mean[r], inv[r], level,
                      slope, stream);
      made.finish(to + r * length);
    }
  }
};

// With the sums over rows of grad * hat and of grad. Rows are cut into pieces by the shape alone; a
// piece is summed in blocks, so that no chain of additions is long.
template <class T>
void rows_grad_affine(const RowsGrad<T>& of, int64_t rows, compute_t<T>* weight,
                      compute_t<T>* bias) {
  using C = compute_t<T>;
  constexpr int64_t kBlock = 64;
  const int64_t n = of.length;
  const int64_t pieces = std::clamp<int64_t>(rows * n / kGrain, 1, 32);
  const int64_t piece = (rows + pieces - 1) / pieces;
  const Scratch<C> partial(pieces * 2 * n);
  parallel_chunks(pieces, [&](int64_t k) {
    const Scratch<C> block(2 * n);
    C* sums = partial.data() + 2 * k * n;  // of the weight, those of the bias after
    C* block_sums = block.data();
    std::fill_n(sums, 2 * n, C(0));
    const int64_t end = std::min(rows, (k + 1) * piece);
    for (int64_t first = k * piece; first < end; first += kBlock) {
      std::fill_n(block_sums, 2 * n, C(0));
      of.run(first, std::min(end, first + kBlock), block_sums, block_sums + n);
      fill_groups(sums, 2 * n, [=](int64_t i) { return sums[i] + block_sums[i]; });
    }
  });
  std::fill_n(weight, n, C(0));
  std::fill_n(bias, n, C(0));
  for (int64_t k = 0; k < pieces; ++k) {
    const C* sums = partial.data() + 2 * k * n;
    fill_groups(weight, n, [=](int64_t i) { return weight[i] + sums[i]; });
    fill_groups(bias, n, [=](int64_t i) { return bias[i] + sums[n + i]; });
  }
}

void layer_norm_rows_grad(KernelCall& call) {
  const RowSpan span(call.in(0), call.arg(7).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0)), grad(call.in(4));
    const Converted<C> weight(optional_in(call, 1)), mean(&call.in(2)), inv(&call.in(3)),
        grad_mean(&call.in(5)), grad_inv(&call.in(6));
    const RowsGrad<T> of{x.data(),        grad.data(),
                         weight.data(),   mean.data(),
                         inv.data(),      grad_mean.data(),
                         grad_inv.data(), static_cast<T*>(call.out(0).data),
                         span.length,     streams<T>(call.out(0))};
    if (call.arg(8).as_bool())
      return rows_grad_affine(of, span.rows, static_cast<C*>(call.out(1).data),
                              static_cast<C*>(call.out(2).data));
    parallel_for(0, span.rows, span.grain(),
                 [&](int64_t begin, int64_t end) { of.run(begin, end, nullptr, nullptr); });
  });
}

}  // namespace

KernelList layer_norm_kernels() {
  static const oar_kernel list[] = {
      {"layer_norm_rows", 1, vector_name(), nullptr, kernel_entry<layer_norm_rows>},
      {"layer_norm_rows_grad", 1, vector_name(), nullptr, training_entry<layer_norm_rows_grad>},
  };
  return list;
}

}  // namespace oar::cpu
