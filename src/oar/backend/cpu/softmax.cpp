// Softmax, its logarithm and their derivatives, along any axis. 16-bit floats compute in float32.
#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loops/groups.h"
#include "oar/backend/cpu/reduce/reduce.h"
#include "oar/backend/cpu/rows/row_buffer.h"
#include "oar/backend/cpu/rows/row_table.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {
namespace {

template <class T, class C>
struct MaxOf {
  C identity() const { return -std::numeric_limits<C>::infinity(); }
  C join(C a, C b) const { return b > a || b != b ? b : a; }
  C step(C acc, const T* p, int64_t) const { return join(acc, static_cast<C>(*p)); }
};
constexpr int64_t kWidth = 64;  // adjacent lines that are processed together

// line(offset) if the axis is the last one; block(offset, width) if lines are interleaved,
// their elements `inner` apart.
template <class Line, class Block>
void for_each_line(const AxisSpan& span, Line&& line, Block&& block) {
  if (span.length == 0 || span.inner == 0) return;
  const int64_t blocks = span.inner == 1 ? 1 : (span.inner + kWidth - 1) / kWidth;
  const int64_t work = span.length * std::min(span.inner, kWidth);
  parallel_for(0, span.outer * blocks, std::max<int64_t>(1, kGrain / 8 / work),
               [&](int64_t begin, int64_t end) {
                 for (int64_t b = begin; b < end; ++b) {
                   const int64_t start = b / blocks * span.length * span.inner;
                   const int64_t at = b % blocks * kWidth;
                   if (span.inner == 1)
                     line(start);
                   else
                     block(start + at, std::min(kWidth, span.inner - at));
                 }
               });
}

// One contiguous line.
template <bool kLog, class C>
void softmax_line(const C* x, C* out, int64_t n) {
  const RowTable<C>& table = row_table<C>();
  const C high = table.max(x, n);
  if constexpr (kLog) {
    table.log_softmax(x, out, n, high, std::log(table.exp_sum(x, nullptr, n, high)));
  } else {
    table.scale(out, n, 1 / table.exp_sum(x, out, n, high));
  }
}

template <class In, class Out>
inline constexpr bool kInTable =
    std::is_same_v<In, Out> && (std::is_same_v<Out, float> || std::is_same_v<Out, double>);

template <bool kLog, class In, class Out, class C = compute_t<Out>>
void softmax_block(const In* x, Out* out, int64_t length, int64_t inner, int64_t width) {
  if constexpr (kInTable<In, Out>) {
    const FoldTable<C>& table = fold_table<C>();
    return (kLog ? table.log_softmax_columns : table.softmax_columns)(x, out, inner, length, width);
  }
  C high[kWidth], total[kWidth];
  for (int64_t c = 0; c < kWidth; ++c) high[c] = -std::numeric_limits<C>::infinity(), total[c] = 0;
  const MaxOf<In, C> max_of;
  for (int64_t i = 0; i < length; ++i) {
    const In* line = x + i * inner;
    fill_groups(high, width, [&](int64_t c) { return max_of.step(high[c], line + c, 0); });
  }
  for (int64_t i = 0; i < length; ++i) {
    const In* line = x + i * inner;
    fill_groups(total, width, [&](int64_t c) {
      return total[c] + functions::exp(static_cast<C>(line[c]) - high[c]);
    });
  }
  for (int64_t c = 0; c < width; ++c) total[c] = kLog ? std::log(total[c]) : 1 / total[c];
  for (int64_t i = 0; i < length; ++i) {
    const In* line = x + i * inner;
    fill_groups(out + i * inner, width, [&](int64_t c) {
      const C v = static_cast<C>(line[c]) - high[c];
      return kLog ? v - total[c] : functions::exp(v) * total[c];
    });
  }
}

template <bool kLog, class In, class Out>
void softmax_lines(const AxisSpan& span, const In* x, Out* out) {
  for_each_line(
      span,
      [&](int64_t at) {
        const RowBuffer<In> in(span.length);
        const RowBuffer<Out> made(span.length);
        softmax_line<kLog>(in.read(x + at), made.place(out + at), span.length);
        made.finish(out + at);
      },
      [&](int64_t at, int64_t width) {
        softmax_block<kLog>(x + at, out + at, span.length, span.inner, width);
      });
}

template <bool kLog>
void softmax_kernel(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  visit<kFloats>(static_cast<DType>(call.out().dtype), [&](auto tag) {
    using Out = typename decltype(tag)::type;
    auto* out = static_cast<Out*>(call.out().data);
    if (call.in(0).dtype == call.out().dtype)
      softmax_lines<kLog>(span, Contiguous<Out>(call.in(0)).data(), out);
    else
      softmax_lines<kLog>(span, Converted<compute_t<Out>>(&call.in(0)).data(), out);
  });
}

// (grad - sum(grad * out)) * out, or grad - exp(out) * sum(grad) for the logarithm.
template <bool kLog, class T>
void grad_line(const T* out, const T* grad, T* to, int64_t n) {
  using C = compute_t<T>;
  const RowTable<C>& table = row_table<C>();
  const RowBuffer<T> outs(n), grads(n), made(n);
  const C *o = outs.read(out), *g = grads.read(grad);
  if constexpr (kLog)
    table.log_softmax_grad(o, g, made.place(to), n, table.sum(g, n));
  else
    table.softmax_grad(o, g, made.place(to), n, table.dot(o, g, n));
  made.finish(to);
}

template <bool kLog, class T>
void grad_block(const T* out, const T* grad, T* to, int64_t length, int64_t inner, int64_t width) {
  using C = compute_t<T>;
  if constexpr (kInTable<T, T>) {
    const FoldTable<C>& table = fold_table<C>();
    return (kLog ? table.log_softmax_columns_grad : table.softmax_columns_grad)(
        out, grad, to, inner, length, width);
  }
  C total[kWidth] = {};
  for (int64_t i = 0; i < length; ++i) {
    const T *o = out + i * inner, *g = grad + i * inner;
    fill_groups(total, width, [&](int64_t c) {
      return total[c] + static_cast<C>(g[c]) * (kLog ? C(1) : static_cast<C>(o[c]));
    });
  }
  for (int64_t i = 0; i < length; ++i) {
    const T *o = out + i * inner, *g = grad + i * inner;
    fill_groups(to + i * inner, width, [&](int64_t c) {
      const C y = static_cast<C>(o[c]), d = static_cast<C>(g[c]);
      return kLog ? d - functions::exp(y) * total[c] : (d - total[c]) * y;
    });
  }
}

template <bool kLog>
void softmax_grad_kernel(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> out(call.in(0)), grad(call.in(1));
    auto* to = static_cast<T*>(call.out().data);
    for_each_line(
        span,
        [&](int64_t at) {
          grad_line<kLog>(out.data() + at, grad.data() + at, to + at, span.length);
        },
        [&](int64_t at, int64_t width) {
          grad_block<kLog>(out.data() + at, grad.data() + at, to + at, span.length, span.inner,
                           width);
        });
  });
}

}  // namespace

KernelList softmax_kernels() {
  static const oar_kernel list[] = {
      {"softmax", 1, vector_name(), nullptr, kernel_entry<softmax_kernel<false>>},
      {"log_softmax", 1, vector_name(), nullptr, kernel_entry<softmax_kernel<true>>},
      {"softmax_grad", 1, vector_name(), nullptr, training_entry<softmax_grad_kernel<false>>},
      {"log_softmax_grad", 1, vector_name(), nullptr, training_entry<softmax_grad_kernel<true>>},
  };
  return list;
}

}  // namespace oar::cpu
