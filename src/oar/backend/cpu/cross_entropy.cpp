// Cross entropy of scores and labels, or of scores and probabilities, fused with the softmax.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loss/hard_label.h"
#include "oar/backend/cpu/loss/log_sum_exp.h"
#include "oar/backend/cpu/reduce/reduce.h"
#include "oar/backend/cpu/rows/row_buffer.h"
#include "oar/backend/cpu/rows/row_table.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {
namespace {

int64_t grain(const AxisSpan& span) {
  return std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(span.length, 1));
}

// One line of scores as C: in place if it is contiguous C, else copied to `buffer`.
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
  parallel_for(0, span.lines(), grain(span), [&](int64_t begin, int64_t end) {
    const Scratch<C> buffer(span.length);
    for (int64_t i = begin; i < end; ++i)
      body(i, i / span.inner * span.length * span.inner + i % span.inner, buffer.data());
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
      const bool counts = label[i] != ignored;
      if (counts) check_label(label[i], span.length);
      const C grad = counts ? grad_loss[i] : C(0), all = grad + grad_total[i], base = total[i];
      // Together: exp - 1 near 0 would lose digits after rounding to 16 bits. Read first, since the result may be in the same place.
      const C labelled = counts ? functions::exp(line[label[i]] - base) * all - grad : C(0);
      T* o = to + at;
      const int64_t step = span.inner;
      if (step == 1) {
        const RowBuffer<T> made(span.length);
        row_table<C>().exp_sum(line, made.place(o), span.length, base);
        row_table<C>().scale(made.place(o), span.length, all);
        made.finish(o);
      } else {
        for (int64_t k = 0; k < span.length; ++k)
          o[k * step] = static_cast<T>(functions::exp(line[k] - base) * all);
      }
      if (counts) o[label[i] * step] = static_cast<T>(labelled);
    });
  });
}

template <int kAxis>
const char* accepts_rows(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  return AxisSpan(c.in(0), c.arg(kAxis).as_int()).inner == 1 ? nullptr
                                                             : "classes along an inner axis";
}

void soft_cross_entropy(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0)), label(call.in(1));
    auto* loss = static_cast<T*>(call.out(0).data);
    auto* total = static_cast<C*>(call.out(1).data);
    const int64_t n = span.length;
    parallel_for(0, span.outer, grain(span), [&](int64_t begin, int64_t end) {
      const RowBuffer<T> scores(n), labels(n);
      for (int64_t i = begin; i < end; ++i) {
        const C *line = scores.read(x.data() + i * n), *share = labels.read(label.data() + i * n);
        const C all = log_sum_exp(line, n);
        total[i] = all;
        loss[i] =
            static_cast<T>(sum_of<C>(n, [=](int64_t k) { return share[k] * (all - line[k]); }));
      }
    });
  });
}

void soft_cross_entropy_grad(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(5).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const RowTable<C>& table = row_table<C>();
    const Contiguous<T> x(call.in(0)), label(call.in(1));
    const Converted<C> total(&call.in(2)), grad_loss(&call.in(3)), grad_total(&call.in(4));
    auto* to = static_cast<T*>(call.out().data);
    const int64_t n = span.length;
    parallel_for(0, span.outer, grain(span), [&](int64_t begin, int64_t end) {
      const RowBuffer<T> scores(n), labels(n), made(n);
      for (int64_t i = begin; i < end; ++i) {
        const C *line = scores.read(x.data() + i * n), *share = labels.read(label.data() + i * n);
        const C grad = grad_loss[i], all = grad * table.sum(share, n) + grad_total[i];
        C* parts = made.place(to + i * n);
        table.exp_sum(line, parts, n, total[i]);
        fill_groups(parts, n, [=](int64_t k) { return parts[k] * all - grad * share[k]; });
        made.finish(to + i * n);
      }
    });
  });
}

}  // namespace

KernelList cross_entropy_kernels() {
  static const oar_kernel list[] = {
      {"softmax_cross_entropy", 1, vector_name(), nullptr, kernel_entry<softmax_cross_entropy>},
      {"softmax_cross_entropy_grad", 1, vector_name(), nullptr,
       training_entry<softmax_cross_entropy_grad>},
      {"soft_cross_entropy", 1, vector_name(), accepts_rows<2>, kernel_entry<soft_cross_entropy>},
      {"soft_cross_entropy_grad", 1, vector_name(), accepts_rows<5>,
       training_entry<soft_cross_entropy_grad>},
  };
  return list;
}

}  // namespace oar::cpu
