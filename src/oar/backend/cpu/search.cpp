// Positions in sorted rows.
#include <algorithm>

#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {
namespace {

// Several searches run together, so that their cache misses overlap.
constexpr int64_t kTogether = 16;

// How many of the sorted elements are below each value (with `right`: not above it). Comparisons
// with NaN are false, so that NaNs at the end of the row stay after every number. Alone, so that its loops have all registers.
template <bool kRight, class T>
[[gnu::noinline]] void count_below(const T* row, int64_t n, const T* values, int64_t count,
                                   int64_t* places) {
  const auto before = [](T element, T value) {
    return kRight ? element <= value : element < value;
  };
  int64_t base[kTogether] = {};
  for (int64_t rest = n; rest > 1;) {
    const int64_t half = rest / 2;
    for (int64_t q = 0; q < count; ++q)
      base[q] += before(row[base[q] + half - 1], values[q]) ? half : 0;
    rest -= half;
  }
  for (int64_t q = 0; q < count; ++q) {
    places[q] = base[q] + (n > 0 && before(row[base[q]], values[q]) ? 1 : 0);
    if (values[q] != values[q])  // after every number, before other NaNs or after them
      places[q] = kRight ? n : std::partition_point(row, row + n, [](T e) { return e == e; }) - row;
  }
}

template <class T>
void search_rows(KernelCall& call, bool right) {
  const Compact<T> rows(call.in(0)), values(call.in(1));
  const oar_tensor& sequence = call.in(0);
  const int64_t length = sequence.shape[sequence.ndim - 1];
  const int64_t per_row = sequence.ndim == 1
                              ? call.in(1).numel
                              : (call.in(1).ndim == 0 ? 1 : call.in(1).shape[call.in(1).ndim - 1]);
  const oar_tensor& out = call.out();
  const bool narrow = static_cast<DType>(out.dtype) == DType::Int32;
  parallel_for(0, out.numel, kGrain / 16, [&](int64_t begin, int64_t end) {
    int64_t places[kTogether];
    while (begin < end) {
      const int64_t number = begin / per_row;
      const int64_t count = std::min({kTogether, end - begin, (number + 1) * per_row - begin});
      const T* row = rows.data() + number * length;
      const T* wanted = values.data() + begin;
      if (right)
        count_below<true>(row, length, wanted, count, places);
      else
        count_below<false>(row, length, wanted, count, places);
      for (int64_t q = 0; q < count; ++q) {
        if (narrow)
          static_cast<int32_t*>(out.data)[begin + q] = static_cast<int32_t>(places[q]);
        else
          static_cast<int64_t*>(out.data)[begin + q] = places[q];
      }
      begin += count;
    }
  });
}

void searchsorted(KernelCall& call) {
  if (call.out().numel == 0) return;
  visit_wide<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    search_rows<typename decltype(tag)::type>(call, call.arg(3).as_bool());
  });
}

}  // namespace

KernelList search_kernels() {
  static const oar_kernel list[] = {
      {"searchsorted", 1, "cpu:generic", nullptr, kernel_entry<searchsorted>},
  };
  return list;
}

}  // namespace oar::cpu
