// Layer and batch normalisation with their derivatives. 16-bit floats compute in float32; variances
// are taken around a mean that is known already.
#include <cmath>

#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/reduce.h"
#include "oar/backend/cpu/vector_math.h"

namespace oar::cpu {
namespace {

// ---- rows -------------------------------------------------------------------------------------

struct RowSpan {
  int64_t rows = 1, length = 1;
  RowSpan(const oar_tensor& x, int64_t begin_axis) {
    for (int i = 0; i < x.ndim; ++i) (i < begin_axis ? rows : length) *= x.shape[i];
  }
  int64_t grain() const { return std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(length, 1)); }
};

template <class T, class C>
void normalise_row(const T* x, T* out, int64_t n, C mean, C inv, const C* weight, const C* bias) {
  const auto write = [=](auto affine) {
    fill_groups(out, n, [=](int64_t i) { return affine((static_cast<C>(x[i]) - mean) * inv, i); });
  };
  if (weight && bias)
    write([=](C v, int64_t i) { return v * weight[i] + bias[i]; });
  else if (weight)
    write([=](C v, int64_t i) { return v * weight[i]; });
  else if (bias)
    write([=](C v, int64_t i) { return v + bias[i]; });
  else
    write([](C v, int64_t) { return v; });
}

void layer_norm_rows(KernelCall& call) {
  const RowSpan span(call.in(0), call.arg(3).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const auto epsilon = static_cast<C>(call.arg(4).as_double());
    const auto n = static_cast<C>(span.length);
    const Contiguous<T> x(call.in(0));
    const Converted<C> weight(optional_in(call, 1)), bias(optional_in(call, 2));
    auto* out = static_cast<T*>(call.out(0).data);
    auto *means = static_cast<C*>(call.out(1).data), *invs = static_cast<C*>(call.out(2).data);
    parallel_for(0, span.rows, span.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = x.data() + r * span.length;
        const C mean = reduce_span<T, C>(SumReducer<T, C>{}, row, span.length) / n;
        const SpreadReducer<T, C> squares{{}, &mean, n};
        const C variance = reduce_span<T, C>(squares, row, span.length, 0) / n;
        const C inv = 1 / std::sqrt(variance + epsilon);
        normalise_row(row, out + r * span.length, span.length, mean, inv, weight.data(),
                      bias.data());
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
  const C *mean, *inv;
  int64_t length;
};

template <bool kWeighted, class T, class C = compute_t<T>>
void rows_grad_x(const RowsGrad<T>& of, int64_t row, C grad_mean, C grad_inv, T* to) {
  const int64_t n = of.length;
  const T *grad = of.grad + row * n, *x = of.x + row * n;
  const C* weight = of.weight;
  const C mean = of.mean[row], inv = of.inv[row], count = static_cast<C>(n);
  const auto g = [=](int64_t i) {
    return kWeighted ? static_cast<C>(grad[i]) * weight[i] : static_cast<C>(grad[i]);
  };
  const auto distance = [=](int64_t i) { return static_cast<C>(x[i]) - mean; };
  const C level = sum_of<C>(n, g) / count - grad_mean / (count * inv);
  const C product = sum_of<C>(n, [=](int64_t i) { return g(i) * distance(i); });
  const C slope = (product + grad_inv) * inv * inv / count;
  fill_groups(to, n, [=](int64_t i) { return inv * (g(i) - level - distance(i) * slope); });
}

// Sums over rows of grad * hat and of grad. Rows are cut into pieces by the shape alone; a piece is
// summed in blocks, so that no chain of additions is long.
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
    C* sum_w = partial.data() + 2 * k * n;  // the sums of bias stand behind
    C *block_w = block.data(), *block_b = block_w + n;
    std::fill_n(sum_w, 2 * n, C(0));
    const int64_t end = std::min(rows, (k + 1) * piece);
    for (int64_t first = k * piece; first < end; first += kBlock) {
      std::fill_n(block_w, 2 * n, C(0));
      for (int64_t row = first; row < std::min(end, first + kBlock); ++row) {
        const T *x = of.x + row * n, *grad = of.grad + row * n;
        const C mean = of.mean[row], inv = of.inv[row];
        fill_groups(block_w, n, [=](int64_t i) {
          return block_w[i] + static_cast<C>(grad[i]) * ((static_cast<C>(x[i]) - mean) * inv);
        });
        fill_groups(block_b, n, [=](int64_t i) { return block_b[i] + static_cast<C>(grad[i]); });
      }
      fill_groups(sum_w, 2 * n, [=](int64_t i) { return sum_w[i] + block_w[i]; });
    }
  });
  for (int64_t i = 0; i < n; ++i) {
    weight[i] = bias[i] = 0;
    for (int64_t k = 0; k < pieces; ++k) {
      weight[i] += partial[2 * k * n + i];
      bias[i] += partial[(2 * k + 1) * n + i];
    }
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
    const RowsGrad<T> of{x.data(),    grad.data(), weight.data(),
                         mean.data(), inv.data(),  span.length};
    auto* to = static_cast<T*>(call.out(0).data);
    parallel_for(0, span.rows, span.grain(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        T* row = to + r * span.length;
        if (of.weight)
          rows_grad_x<true>(of, r, grad_mean[r], grad_inv[r], row);
        else
          rows_grad_x<false>(of, r, grad_mean[r], grad_inv[r], row);
      }
    });
    if (call.arg(8).as_bool())
      rows_grad_affine(of, span.rows, static_cast<C*>(call.out(1).data),
                       static_cast<C*>(call.out(2).data));
  });
}

// ---- channels over a batch --------------------------------------------------------------------

struct ChannelSpan : AxisSpan {
  ChannelSpan(const oar_tensor& x, int64_t axis) : AxisSpan(x, axis) {
    axis = normalise_axis(axis, x.ndim);
    for (int i = 0; i < x.ndim; ++i)
      if (i != axis) others.push_back(i);
  }
  int64_t count() const { return outer * inner; }
  Ints axes() const { return {others.data(), others.size()}; }
  // body(first element, channel, count) over runs of one channel; with the channels last, over runs
  // of all channels, from the first one on, in steps of one.
  template <class Body>
  void runs(Body&& body) const {
    const int64_t pieces = inner == 1 ? outer : outer * length, size = inner == 1 ? length : inner;
    if (size == 0) return;
    parallel_for(0, pieces, std::max<int64_t>(1, kGrain / size), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i * size, inner == 1 ? 0 : i % length, size);
    });
  }
  SmallVector<int64_t, 6> others;
};

// out[i] = f(i, its channel) for every element.
template <class T, class F>
void fill_channels(const ChannelSpan& span, T* out, F f) {
  span.runs([&](int64_t start, int64_t channel, int64_t count) {
    if (span.inner == 1)
      fill_groups(out + start, count, [=](int64_t i) { return f(start + i, i); });
    else
      fill_groups(out + start, count, [=](int64_t i) { return f(start + i, channel); });
  });
}

void batch_norm_train(KernelCall& call) {
  const ChannelSpan span(call.in(0), call.arg(4).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const auto epsilon = static_cast<C>(call.arg(3).as_double());
    const Contiguous<T> x(call.in(0));
    const Converted<C> weight(optional_in(call, 1)), bias(optional_in(call, 2));
    auto* out = static_cast<T*>(call.out(0).data);
    auto *mean = static_cast<C*>(call.out(1).data), *var = static_cast<C*>(call.out(2).data);
    reduce_rows<T, C>(call.in(0), span.axes(), MeanReducer<T, C>{{}, span.count()}, mean);
    reduce_rows<T, C>(call.in(0), span.axes(),
                      SpreadReducer<T, C>{{}, mean, static_cast<C>(span.count())}, var);
    const Scratch<C> scale(span.length), shift(span.length);
    for (int64_t c = 0; c < span.length; ++c) {
      scale[c] = (weight ? weight[c] : C(1)) / std::sqrt(var[c] + epsilon);
      shift[c] = bias ? bias[c] : C(0);
    }
    const T* in = x.data();
    const C *factor = scale.data(), *offset = shift.data();
    fill_channels(span, out, [=](int64_t i, int64_t c) {
      return (static_cast<C>(in[i]) - mean[c]) * factor[c] + offset[c];
    });
  });
}

// grad * (x - mean), summed per channel.
template <class T>
struct CovarianceReducer : SumReducer<T, compute_t<T>> {
  using C = compute_t<T>;
  int64_t to_x;  // bytes from an element of grad to that of x
  const C* mean;
  C step(C acc, const T* p, int64_t row) const {
    const T x = *reinterpret_cast<const T*>(reinterpret_cast<const char*>(p) + to_x);
    return acc + static_cast<C>(*p) * (static_cast<C>(x) - mean[row]);
  }
};

void batch_norm_train_grad(KernelCall& call) {
  const ChannelSpan span(call.in(0), call.arg(8).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const auto epsilon = static_cast<C>(call.arg(7).as_double());
    const auto n = static_cast<C>(span.count());
    const Contiguous<T> x(call.in(0)), grad(call.in(4));
    const Converted<C> weight(optional_in(call, 1)), mean(&call.in(2)), var(&call.in(3)),
        grad_mean(&call.in(5)), grad_var(&call.in(6));
    auto* gx = static_cast<T*>(call.out(0).data);
    auto *gw = static_cast<C*>(call.out(1).data), *gb = static_cast<C*>(call.out(2).data);
    const FlatTensor flat(call.in(4), const_cast<T*>(grad.data()), dtype_of<T>);
    reduce_rows<T, C>(flat.get(), span.axes(), SumReducer<T, C>{}, gb);
    const int64_t to_x =
        reinterpret_cast<const char*>(x.data()) - reinterpret_cast<const char*>(grad.data());
    reduce_rows<T, C>(flat.get(), span.axes(), CovarianceReducer<T>{{}, to_x, mean.data()}, gw);
    // Everything that multiplies grad, x - mean and 1, per channel.
    const Scratch<C> of_grad(span.length), of_x(span.length), of_one(span.length);
    for (int64_t c = 0; c < span.length; ++c) {
      const C inv = 1 / std::sqrt(var[c] + epsilon);
      gw[c] *= inv;
      of_grad[c] = inv * (weight ? weight[c] : C(1));
      of_x[c] = (2 * grad_var[c] - of_grad[c] * inv * gw[c]) / n;
      of_one[c] = (grad_mean[c] - of_grad[c] * gb[c]) / n;
    }
    const T *in = x.data(), *g = grad.data();
    const C *a = of_grad.data(), *b = of_x.data(), *d = of_one.data(), *m = mean.data();
    fill_channels(span, gx, [=](int64_t i, int64_t c) {
      return static_cast<C>(g[i]) * a[c] + (static_cast<C>(in[i]) - m[c]) * b[c] + d[c];
    });
  });
}

}  // namespace

KernelList norm_kernels() {
  static const oar_kernel list[] = {
      {"layer_norm_rows", 1, "cpu:ref", nullptr, kernel_entry<layer_norm_rows>},
      {"layer_norm_rows_grad", 1, "cpu:ref", nullptr, kernel_entry<layer_norm_rows_grad>},
      {"batch_norm_train", 1, "cpu:ref", nullptr, kernel_entry<batch_norm_train>},
      {"batch_norm_train_grad", 1, "cpu:ref", nullptr, kernel_entry<batch_norm_train_grad>},
  };
  return list;
}

}  // namespace oar::cpu
