// The cross entropy of rows of scores and of probabilities, and its derivative.
#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loss/log_sum_exp.h"
#include "oar/backend/cpu/reduce/reduce.h"
#include "oar/backend/cpu/rows/row_buffer.h"

namespace oar::cpu {
namespace {

template <int kAxis>
const char* accepts(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  return AxisSpan(c.in(0), c.arg(kAxis).as_int()).inner == 1 ? nullptr
                                                             : "classes along an inner axis";
}
int64_t grain(const AxisSpan& span) {
  return std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(span.length, 1));
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

KernelList soft_cross_entropy_kernels() {
  static const oar_kernel list[] = {
      {"soft_cross_entropy", 1, vector_name(), accepts<2>, kernel_entry<soft_cross_entropy>},
      {"soft_cross_entropy_grad", 1, vector_name(), accepts<5>,
       training_entry<soft_cross_entropy_grad>},
  };
  return list;
}

}  // namespace oar::cpu
