// Batch normalisation and scales of channels, with their derivatives. 16-bit floats compute in float32. If the
// channels are last, all of them are worked on at once; else they are rows of memory.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loops/groups.h"
#include "oar/backend/cpu/loops/streaming.h"
#include "oar/backend/cpu/reduce/reduce.h"
#include "oar/backend/cpu/rows/channel_table.h"
#include "oar/backend/cpu/rows/row_table.h"

namespace oar::cpu {
namespace {

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
      const StreamFence fence;
      for (int64_t i = begin; i < end; ++i) body(i * size, inner == 1 ? 0 : i % length, size);
    });
  }
  SmallVector<int64_t, 6> others;
};

// ---- statistics of a batch

// Pixels are cut into pieces by the shape alone; body(piece, first pixel, pixels).
template <class Body>
void each_piece(const ChannelSpan& span, int64_t pieces, Body&& body) {
  const int64_t share = (span.outer + pieces - 1) / pieces;
  parallel_chunks(pieces, [&](int64_t k) {
    const int64_t first = std::min(span.outer, k * share);
    body(k, first, std::min(span.outer, first + share) - first);
  });
}
int64_t pieces_of(const ChannelSpan& span) {
  return std::clamp<int64_t>(span.outer * span.length / kGrain, 1, 32);
}

// With the channels last: all of them at once, in one pass over memory.
template <class C>
void channel_moments(const ChannelSpan& span, const C* x, C* mean, C* var) {
  const int64_t n = span.length, pieces = pieces_of(span);
  const Scratch<C> partial(pieces * 2 * n);
  std::fill_n(partial.data(), pieces * 2 * n, C(0));
  const auto pixels = [&](int64_t k) {
    const int64_t share = (span.outer + pieces - 1) / pieces;
    return std::clamp<int64_t>(span.outer - k * share, 0, share);
  };
  each_piece(span, pieces, [&](int64_t k, int64_t first, int64_t count) {
    C* of = partial.data() + 2 * k * n;
    channel_table<C>().moments(x + first * n, count, n, 0, of, of + n);
  });
  std::fill_n(mean, n, C(0));
  std::fill_n(var, n, C(0));
  int64_t before = 0;
  for (int64_t k = 0; k < pieces; ++k) {
    const int64_t count = pixels(k);
    if (count == 0) continue;
    const C *m = partial.data() + 2 * k * n, *s = m + n;
    const C share = static_cast<C>(count) / static_cast<C>(before + count);
    for (int64_t c = 0; c < n; ++c) {
      const C d = m[c] - mean[c];
      mean[c] += d * share;
      var[c] += s[c] + d * d * share * static_cast<C>(before);
    }
    before += count;
  }
  for (int64_t c = 0; c < n; ++c) var[c] /= static_cast<C>(span.count());
}

template <class C>
void moments_of(const ChannelSpan& span, const oar_tensor& in, const C* x, C* mean, C* var) {
  if (span.inner == 1) return channel_moments(span, x, mean, var);
  const FlatTensor flat(in, const_cast<C*>(x), dtype_for<C>);
  reduce_rows<C, C>(flat.get(), span.axes(), MeanReducer<C, C>{{}, span.count()}, mean);
  reduce_rows<C, C>(flat.get(), span.axes(),
                    SpreadReducer<C, C>{{}, {mean}, static_cast<C>(span.count())}, var);
}

// What multiplies x - mean, and what is added to it.
template <class C>
struct Scaling {
  Scaling(const ChannelSpan& span, const Converted<C>& weight, const Converted<C>& bias,
          const C* var, C epsilon)
      : scale(span.length), shift(span.length) {
    for (int64_t c = 0; c < span.length; ++c) {
      scale[c] = (weight ? weight[c] : C(1)) / std::sqrt(var[c] + epsilon);
      shift[c] = bias ? bias[c] : C(0);
    }
  }
  const Scratch<C> scale, shift;
};

// Calls body(first pixel, pixels) for pieces that threads work on.
template <class Body>
void each_pixels(const ChannelSpan& span, Body&& body) {
  parallel_for(0, span.outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(span.length, 1)),
               [&](int64_t begin, int64_t end) {
                 const StreamFence fence;
                 body(begin, end - begin);
               });
}

void batch_norm_train(KernelCall& call) {
  const ChannelSpan span(call.in(0), call.arg(4).as_int());
  const bool relu = call.arg(5).as_bool();
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const auto epsilon = static_cast<C>(call.arg(3).as_double());
    const Contiguous<C> x(call.in(0));
    const Converted<C> weight(optional_in(call, 1)), bias(optional_in(call, 2));
    const Result<C> result(call.out(0));
    C* out = result.data();
    auto *mean = static_cast<C*>(call.out(1).data), *var = static_cast<C*>(call.out(2).data);
    moments_of(span, call.in(0), x.data(), mean, var);
    const Scaling<C> of(span, weight, bias, var, epsilon);
    const C* in = x.data();
    const C *factor = of.scale.data(), *offset = of.shift.data();
    const bool stream = streams(result, call.out(0));
    if (span.inner == 1)
      each_pixels(span, [&](int64_t first, int64_t count) {
        channel_table<C>().affine(in + first * span.length, out + first * span.length, count,
                                  span.length, mean, factor, offset, relu, stream);
      });
    else
      span.runs([&](int64_t at, int64_t c, int64_t n) {
        C* to = out + at;
        row_table<C>().affine(in + at, to, n, mean[c], factor[c], offset[c], stream && !relu);
        if (relu) fill_groups(to, n, [=](int64_t i) { return to[i] < 0 ? C(0) : to[i]; });
      });
    result.finish();
  });
}

// grad * (x - mean), summed per channel.
template <class C>
struct CovarianceReducer : Adding<C> {
  int64_t to_x;  // bytes from an element of grad to that of x
  const C* mean;
  C step(C acc, const C* p, int64_t row) const {
    const C x = *reinterpret_cast<const C*>(reinterpret_cast<const char*>(p) + to_x);
    return acc + *p * (x - mean[row]);
  }
};

// With the channels last: the sums of grad and of grad * (x - mean), for elements that a relu (scale) passes.
template <class C>
void channel_grad_sums(const ChannelSpan& span, const C* grad, const C* x, const C* mean,
                       const C* scale, const C* shift, C* level, C* slope) {
  const int64_t n = span.length, pieces = pieces_of(span);
  const Scratch<C> partial(pieces * 2 * n);
  std::fill_n(partial.data(), pieces * 2 * n, C(0));
  each_piece(span, pieces, [&](int64_t k, int64_t first, int64_t count) {
    C* of = partial.data() + 2 * k * n;
    channel_table<C>().grad_sums(grad + first * n, x + first * n, count, n, mean, scale, shift, of,
                                 of + n);
  });
  std::fill_n(level, n, C(0));
  std::fill_n(slope, n, C(0));
  for (int64_t k = 0; k < pieces; ++k)
    for (int64_t c = 0; c < n; ++c) {
      level[c] += partial[2 * k * n + c];
      slope[c] += partial[(2 * k + 1) * n + c];
    }
}

// Only what was positive has a gradient.
template <class C>
void gate(const ChannelSpan& span, const C* grad, const C* x, const C* mean, const Scaling<C>& of,
          C* to) {
  const C *scale = of.scale.data(), *shift = of.shift.data();
  span.runs([&](int64_t start, int64_t channel, int64_t count) {
    const bool last = span.inner == 1;
    fill_groups(to + start, count, [=](int64_t i) {
      const int64_t c = last ? i : channel;
      const C y = (x[start + i] - mean[c]) * scale[c] + shift[c];
      return y > 0 ? grad[start + i] : C(0);
    });
  });
}

void batch_norm_train_grad(KernelCall& call) {
  const ChannelSpan span(call.in(0), call.arg(8).as_int());
  const bool relu = call.arg(10).as_bool();
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const auto epsilon = static_cast<C>(call.arg(7).as_double());
    const auto n = static_cast<C>(span.count());
    const Contiguous<C> x(call.in(0)), grad(call.in(4));
    const Converted<C> weight(optional_in(call, 1)), mean(&call.in(2)), var(&call.in(3)),
        grad_mean(&call.in(5)), grad_var(&call.in(6)), bias(optional_in(call, 9));
    const Result<C> result(call.out(0));
    C* gx = result.data();
    auto *gw = static_cast<C*>(call.out(1).data), *gb = static_cast<C*>(call.out(2).data);
    const Scaling<C> of(span, weight, bias, var.data(), epsilon);
    const C *scale = relu ? of.scale.data() : nullptr, *shift = of.shift.data();
    const bool columns = span.inner == 1;
    const Scratch<C> gated(relu && !columns ? call.in(0).numel : 0);
    const C *in = x.data(), *g = grad.data();
    if (columns) {
      channel_grad_sums<C>(span, g, in, mean.data(), scale, shift, gb, gw);
    } else {
      if (relu) {
        gate(span, g, in, mean.data(), of, gated.data());
        g = gated.data();
      }
      const FlatTensor flat(call.in(4), const_cast<C*>(g), dtype_for<C>);
      reduce_rows<C, C>(flat.get(), span.axes(), SumReducer<C, C>{}, gb);
      const int64_t to_x = reinterpret_cast<const char*>(in) - reinterpret_cast<const char*>(g);
      reduce_rows<C, C>(flat.get(), span.axes(), CovarianceReducer<C>{{}, to_x, mean.data()}, gw);
    }
    // Everything that multiplies grad, x - mean and 1, per channel.
    const Scratch<C> of_grad(span.length), of_x(span.length), of_one(span.length);
    for (int64_t c = 0; c < span.length; ++c) {
      const C inv = 1 / std::sqrt(var[c] + epsilon);
      gw[c] *= inv;
      of_grad[c] = inv * (weight ? weight[c] : C(1));
      of_x[c] = (2 * grad_var[c] - of_grad[c] * inv * gw[c]) / n;
      of_one[c] = (grad_mean[c] - of_grad[c] * gb[c]) / n;
    }
    const C *a = of_grad.data(), *b = of_x.data(), *d = of_one.data(), *m = mean.data();
    const bool stream = streams(result, call.out(0));
    if (columns)
      each_pixels(span, [&](int64_t first, int64_t count) {
        const int64_t at = first * span.length;
        channel_table<C>().affine_grad(g + at, in + at, gx + at, count, span.length, m, scale,
                                       shift, a, b, d, stream);
      });
    else
      span.runs([&](int64_t at, int64_t c, int64_t count) {
        row_table<C>().affine_grad(g + at, in + at, gx + at, count, m[c], a[c], b[c], d[c], stream);
      });
    result.finish();
  });
}

void channel_affine(KernelCall& call) {
  const ChannelSpan span(call.in(0), call.arg(3).as_int());
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Contiguous<C> x(call.in(0));
    const Converted<C> scale(&call.in(1)), shift(&call.in(2));
    const C* in = x.data();
    const C *factor = scale.data(), *offset = shift.data();
    const Result<C> result(call.out());
    C* out = result.data();
    const bool stream = streams(result, call.out());
    if (span.inner == 1) {
      const Scratch<C> zeros(span.length);
      std::fill_n(zeros.data(), span.length, C(0));
      each_pixels(span, [&](int64_t first, int64_t count) {
        channel_table<C>().affine(in + first * span.length, out + first * span.length, count,
                                  span.length, zeros.data(), factor, offset, false, stream);
      });
    } else {
      span.runs([&](int64_t at, int64_t c, int64_t n) {
        row_table<C>().affine(in + at, out + at, n, C(0), factor[c], offset[c], stream);
      });
    }
    result.finish();
  });
}

void channel_affine_grad(KernelCall& call) {
  const ChannelSpan span(call.in(0), call.arg(3).as_int());
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Contiguous<C> x(call.in(0)), grad(call.in(2));
    const Converted<C> scale(&call.in(1));
    const Scratch<C> zeros(span.length);
    std::fill_n(zeros.data(), span.length, C(0));
    const FlatTensor flat(call.in(2), const_cast<C*>(grad.data()), dtype_for<C>);
    const int64_t to_x =
        reinterpret_cast<const char*>(x.data()) - reinterpret_cast<const char*>(grad.data());
    reduce_rows<C, C>(flat.get(), span.axes(), CovarianceReducer<C>{{}, to_x, zeros.data()},
                      static_cast<C*>(call.out(1).data));
    reduce_rows<C, C>(flat.get(), span.axes(), SumReducer<C, C>{},
                      static_cast<C*>(call.out(2).data));
    const C *g = grad.data(), *factor = scale.data();
    const Result<C> result(call.out(0));
    C* to = result.data();
    const bool stream = streams(result, call.out(0)), last = span.inner == 1;
    span.runs([&](int64_t at, int64_t c, int64_t n) {
      if (last)
        fill_groups(to + at, n, [=](int64_t i) { return g[at + i] * factor[i]; });
      else
        row_table<C>().affine(g + at, to + at, n, C(0), factor[c], C(0), stream);
    });
    result.finish();
  });
}

}  // namespace

KernelList batch_norm_kernels() {
  static const oar_kernel list[] = {
      {"batch_norm_train", 1, vector_name(), nullptr, kernel_entry<batch_norm_train>},
      {"batch_norm_train_grad", 1, vector_name(), nullptr, training_entry<batch_norm_train_grad>},
      {"channel_affine", 1, vector_name(), nullptr, kernel_entry<channel_affine>},
      {"channel_affine_grad", 1, vector_name(), nullptr, training_entry<channel_affine_grad>},
  };
  return list;
}

}  // namespace oar::cpu
