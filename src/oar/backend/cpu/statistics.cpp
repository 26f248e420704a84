// Spreads, and the most frequent elements.
#include "oar/backend/cpu/reduce/reduce.h"
#include "oar/backend/cpu/sort/line_sorter.h"

namespace oar::cpu {
namespace {

void var(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    const int64_t count = ReduceLayout(x, Ints(axes)).inner.count;
    const int64_t divisor = std::max<int64_t>(call.arg(2).as_bool() ? count - 1 : count, 0);
    const Scratch<T> centre(std::max<int64_t>(out.numel, 1));
    reduce_rows<T, T>(x, Ints(axes), MeanReducer<T, T>{{}, count}, centre.data());
    reduce_into<T, T>(out, x, Ints(axes),
                      SpreadReducer<T, T>{{}, {centre.data()}, static_cast<T>(divisor)});
  });
}

// The most frequent element of a line, the smallest of those that tie, and the last of its indices.
void mode_along(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  from_sorted_lines(call, span, /*descending=*/false,
                    [&](auto& sorter, const auto* line, int64_t i, auto* values, int64_t* places) {
                      const uint32_t* sorted = sorter.first(line, span.inner, span.length);
                      const auto key = [&](int64_t k) {
                        return key_of(line[sorted[k] * span.inner], false);
                      };
                      int64_t best = 0, most = 0;
                      for (int64_t k = 0, first = 0; k < span.length; ++k) {
                        if (key(k) != key(first)) first = k;
                        if (k - first + 1 > most) most = k - first + 1, best = k;
                      }
                      places[i] = sorted[best];
                      values[i] = line[places[i] * span.inner];
                    });
}

}  // namespace

KernelList statistics_kernels() {
  static const oar_kernel list[] = {
      {"var", 1, vector_name(), nullptr, kernel_entry<var>},
      {"mode_along", 1, "cpu:generic", nullptr, kernel_entry<mode_along>},
  };
  return list;
}

}  // namespace oar::cpu
