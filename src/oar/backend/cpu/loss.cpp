// Fused losses.
#include <cmath>
#include <cstring>
#include <numeric>

#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/log_sum_exp.h"
#include "oar/backend/cpu/reduce.h"
#include "oar/backend/cpu/row_buffer.h"
#include "oar/backend/cpu/row_table.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {
namespace {

// One line of scores as C: its own memory where that is what it is, else copied to `buffer`.
template <class T, class C>
const C* load_line(const T* x, int64_t n, int64_t stride, C* buffer) {
  if constexpr (std::is_same_v<T, C>)
    if (stride == 1) return x;
  for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<C>(x[i * stride]);
  return buffer;
}

// body(line number, first element, buffer) for every line of scores.
template <class C, class Body>
void for_each_sample(const AxisSpan& span, Body&& body) {
  parallel_for(
      0, span.lines(), std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(span.length, 1)),
      [&](int64_t begin, int64_t end) {
        const Scratch<C> buffer(span.length);
        for (int64_t i = begin; i < end; ++i)
          body(i, i / span.inner * span.length * span.inner + i % span.inner, buffer.data());
      });
}

void check_label(int64_t label, int64_t classes) {
  user_check(label >= 0 && label < classes, ErrorKind::OutOfRange,
             "label holds class {}, but there are {} classes.\nhint: Labels go from 0 to {}; pass "
             "ignore_index for one that does not count.",
             label, classes, classes - 1);
}

// body(sample, where its class stands) for those of [begin, end) that count.
template <class Body>
void for_each_picked(const AxisSpan& span, const Converted<int64_t>& label, int64_t ignored,
                     int64_t begin, int64_t end, Body&& body) {
  for (int64_t i = begin; i < end; ++i) {
    if (label[i] == ignored) continue;
    check_label(label[i], span.length);
    body(i, (i / span.inner * span.length + label[i]) * span.inner + i % span.inner);
  }
}

void pick_class(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  const Converted<int64_t> label(&call.in(1));
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    std::fill_n(out, span.lines(), T(0.0f));
    for_each_picked(span, label, call.arg(3).as_int(), 0, span.lines(),
                    [&](int64_t i, int64_t at) { out[i] = x.data()[at]; });
  });
}

void pick_class_grad(KernelCall& call) {
  const AxisSpan span(call.out(), call.arg(3).as_int());
  const Converted<int64_t> label(&call.in(1));
  auto* bytes = static_cast<char*>(call.out().data);
  const auto size = static_cast<int64_t>(size_of(call.dtype()));
  parallel_for(0, call.out().numel, kGrain, [&](int64_t begin, int64_t end) {
    std::memset(bytes + begin * size, 0, static_cast<size_t>((end - begin) * size));
  });
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> grad(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    for_each_picked(span, label, call.arg(4).as_int(), 0, span.lines(),
                    [&](int64_t i, int64_t at) { out[at] = grad.data()[i]; });
  });
}

void mean_of_picked(KernelCall& call) {
  constexpr int64_t kPiece = 4096;
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  const Converted<int64_t> label(&call.in(1));
  const int64_t pieces = (span.lines() + kPiece - 1) / kPiece;
  const Scratch<double> sums(pieces), counts(pieces);
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0));
    parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        double sum = 0;
        int64_t count = 0;
        for_each_picked(span, label, call.arg(3).as_int(), piece * kPiece,
                        std::min(span.lines(), (piece + 1) * kPiece), [&](int64_t, int64_t at) {
                          sum += static_cast<double>(static_cast<C>(x.data()[at]));
                          ++count;
                        });
        sums[piece] = sum;
        counts[piece] = static_cast<double>(count);
      }
    });
    const double sum = std::accumulate(sums.data(), sums.data() + pieces, 0.0);
    const double count = std::accumulate(counts.data(), counts.data() + pieces, 0.0);
    *static_cast<T*>(call.out(0).data) = static_cast<T>(static_cast<C>(sum / std::max(count, 1.0)));
    *static_cast<C*>(call.out(1).data) = static_cast<C>(count);
  });
}

void softmax_cross_entropy(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  const int64_t ignored = call.arg(3).as_int();
  const Converted<int64_t> label(&call.in(1));
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0));
    auto* loss = static_cast<T*>(call.out(0).data);
    auto* total = static_cast<C*>(call.out(1).data);
    for_each_sample<C>(span, [&](int64_t i, int64_t at, C* buffer) {
      const C* line = load_line(x.data() + at, span.length, span.inner, buffer);
      total[i] = log_sum_exp(line, span.length);
      if (label[i] == ignored) {
        loss[i] = T(C(0));
        return;
      }
      check_label(label[i], span.length);
      loss[i] = static_cast<T>(total[i] - line[label[i]]);
    });
  });
}

void softmax_cross_entropy_grad(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(5).as_int());
  const int64_t ignored = call.arg(6).as_int();
  const Converted<int64_t> label(&call.in(1));
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0));
    const Converted<C> total(&call.in(2)), grad_loss(&call.in(3)), grad_total(&call.in(4));
    auto* to = static_cast<T*>(call.out().data);
    for_each_sample<C>(span, [&](int64_t i, int64_t at, C* buffer) {
      const C* line = load_line(x.data() + at, span.length, span.inner, buffer);
      const C grad = label[i] == ignored ? C(0) : grad_loss[i], all = grad + grad_total[i];
      const C base = total[i];
      T* o = to + at;
      const int64_t step = span.inner;
      if (step == 1) {
        const RowBuffer<T> made(span.length);
        row_table<C>().exp_sum(line, made.place(o), span.length, base);
        row_table<C>().scale(made.place(o), span.length, all);
        made.finish(o);
      } else
        for (int64_t k = 0; k < span.length; ++k)
          o[k * step] = static_cast<T>(functions::exp(line[k] - base) * all);
      if (label[i] == ignored) return;
      check_label(label[i], span.length);
      const int64_t k = label[i];
      // Together: exp - 1 near 0 would lose digits after rounding to 16 bits.
      o[k * step] = static_cast<T>(functions::exp(line[k] - base) * all - grad);
    });
  });
}

}  // namespace

KernelList loss_kernels() {
  static const oar_kernel list[] = {
      {"pick_class", 1, "cpu:ref", nullptr, kernel_entry<pick_class>},
      {"pick_class_grad", 1, "cpu:ref", nullptr, kernel_entry<pick_class_grad>},
      {"mean_of_picked", 1, "cpu:ref", nullptr, kernel_entry<mean_of_picked>},
      {"softmax_cross_entropy", 1, "cpu:ref", nullptr, kernel_entry<softmax_cross_entropy>},
      {"softmax_cross_entropy_grad", 1, "cpu:ref", nullptr,
       kernel_entry<softmax_cross_entropy_grad>},
  };
  return list;
}

}  // namespace oar::cpu
