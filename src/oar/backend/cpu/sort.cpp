// Ordering along an axis.
#include "oar/backend/cpu/sort/line_sorter.h"

namespace oar::cpu {
namespace {

void order(KernelCall& call, int64_t axis, int64_t count, bool descending) {
  const AxisSpan span(call.in(0), axis);
  from_sorted_lines(call, span, descending,
                    [&](auto& sorter, const auto* line, int64_t i, auto* values, int64_t* places) {
                      const int64_t to = i / span.inner * count * span.inner + i % span.inner;
                      sorter.first(line, span.inner, count, values + to, places + to);
                    });
}

void sort_with_indices(KernelCall& call) {
  const int64_t axis = call.arg(1).as_int();
  order(call, axis, AxisSpan(call.in(0), axis).length, call.arg(2).as_bool());
}

void topk_along(KernelCall& call) {
  const int64_t axis = call.arg(2).as_int(), k = call.arg(1).as_int();
  const int64_t length = AxisSpan(call.in(0), axis).length;
  user_check(k <= length, ErrorKind::InvalidArgument,
             "k is {}, but x has only {} elements along axis {}.", k, length, axis);
  order(call, axis, k, call.arg(3).as_bool());
}

void kthvalue(KernelCall& call) {
  const AxisSpan span(call.in(0), call.has(2) ? call.arg(2).as_int() : -1);
  const int64_t before = call.arg(1).as_int() - 1;
  from_sorted_lines(call, span, /*descending=*/false,
                    [&](auto& sorter, const auto* line, int64_t i, auto* values, int64_t* places) {
                      places[i] = sorter.nth(line, span.inner, before);
                      values[i] = line[places[i] * span.inner];
                    });
}

}  // namespace

KernelList sort_kernels() {
  static const oar_kernel list[] = {
      {"sort_with_indices", 1, "cpu:generic", nullptr, kernel_entry<sort_with_indices>},
      {"kthvalue", 1, "cpu:generic", nullptr, kernel_entry<kthvalue>},
      {"topk_along", 1, "cpu:generic", nullptr, kernel_entry<topk_along>},
  };
  return list;
}

}  // namespace oar::cpu
