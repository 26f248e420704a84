// Ordering along an axis.
#include "oar/backend/cpu/sort/line_sorter.h"

namespace oar::cpu {
namespace {

void order(KernelCall& call, int64_t axis, int64_t count, bool descending) {
  const AxisSpan span(call.in(0), axis);
  internal_check(span.length <= int64_t{UINT32_MAX}, "a line of {} elements is too long to sort",
                 span.length);
  if (call.out(0).numel == 0) return;
  visit_wide<kBools | kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> x(call.in(0));
    const Result<T> result(call.out(0));
    T* values = result.data();
    auto* places = static_cast<int64_t*>(call.out(1).data);
    parallel_for(0, span.lines(), std::max<int64_t>(1, kGrain / 16 / span.length),
                 [&](int64_t begin, int64_t end) {
                   LineSorter<T> sorter(span.length, descending);
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t outer = i / span.inner, inner = i % span.inner;
                     const T* line = x.data() + outer * span.length * span.inner + inner;
                     const uint32_t* sorted = sorter.first(line, span.inner, count);
                     const int64_t to = outer * count * span.inner + inner;
                     for (int64_t k = 0; k < count; ++k) {
                       const int64_t place = sorted[k];
                       values[to + k * span.inner] = line[place * span.inner];
                       places[to + k * span.inner] = place;
                     }
                   }
                 });
    result.finish();
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
  const oar_tensor& x = call.in(0);
  const AxisSpan span(x, call.has(2) ? call.arg(2).as_int() : -1);
  const int64_t before = call.arg(1).as_int() - 1;
  if (call.out(0).numel == 0) return;
  visit_wide<kBools | kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> flat(x);
    const Result<T> result(call.out(0));
    T* values = result.data();
    auto* places = static_cast<int64_t*>(call.out(1).data);
    parallel_for(0, span.lines(), std::max<int64_t>(1, kGrain / 16 / span.length),
                 [&](int64_t begin, int64_t end) {
                   LineSorter<T> sorter(span.length, /*descending=*/false);
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t outer = i / span.inner, inner = i % span.inner;
                     const T* line = flat.data() + outer * span.length * span.inner + inner;
                     places[i] = sorter.nth(line, span.inner, before);
                     values[i] = line[places[i] * span.inner];
                   }
                 });
    result.finish();
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
