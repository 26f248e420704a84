// Lengths of vectors.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>

#include "oar/backend/cpu/reduce/reduce.h"

namespace oar::cpu {
namespace {

template <class T, class C>
struct NormReducer : Adding<C>, Vectorised<Fold::squares, T, C> {
  C step(C acc, const T* p, int64_t) const {
    if constexpr (is_complex_type<T>)
      return acc + std::norm(*p);
    else
      return acc + static_cast<C>(*p) * static_cast<C>(*p);
  }
  C finish(C acc, int64_t) const { return std::sqrt(acc); }
};

using Wide = std::complex<double>;

// body(elements, count) on blocks of a row.
template <class Body>
void wide_blocks(const ReduceLayout& layout, const char* row, ConvertRun widen, Body&& body) {
  constexpr int64_t kBlock = 256;
  Wide block[kBlock];
  layout.runs(row, 0, layout.inner.count, [&](const char* p, int64_t stride, int64_t n) {
    for (int64_t i = 0; i < n; i += kBlock) {
      const int64_t count = std::min(kBlock, n - i);
      char* const to = reinterpret_cast<char*>(block);
      widen({to, const_cast<char*>(p + i * stride)}, {sizeof(Wide), stride}, count);
      body(block, count);
    }
  });
}

// The norm of what is divided by the largest element, times that one.
double scaled_norm(const ReduceLayout& layout, const char* row, ConvertRun widen) {
  double peak = 0, sum = 0;
  wide_blocks(layout, row, widen, [&](const Wide* x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const double size = std::abs(x[i]);
      if (size > peak || std::isnan(size)) peak = size;
    }
  });
  if (peak == 0 || !std::isfinite(peak)) return peak;
  wide_blocks(layout, row, widen, [&](const Wide* x, int64_t n) {
    double part = 0;
    for (int64_t i = 0; i < n; ++i) {
      const double share = std::abs(x[i]) / peak;
      part += share * share;
    }
    sum += part;
  });
  return std::sqrt(sum) * peak;
}

// Squares leave the range long before norms do. Norms that show it, which are rare, are computed again, in one type.
template <class C>
void rescue(const oar_tensor& x, Ints axes, std::span<C> norms) {
  const C least = std::sqrt(std::numeric_limits<C>::min()) / std::numeric_limits<C>::epsilon();
  const auto is_in_range = [&](C norm) {
    return (norm >= least) & (norm <= std::numeric_limits<C>::max());
  };
  int all = 1;  // no branch, so that the loop is vectorised
  for (const C norm : norms) all &= static_cast<int>(is_in_range(norm));
  if (all != 0) return;
  const ReduceLayout layout(x, axes);
  const ConvertRun widen = conversion(DType::Complex128, static_cast<DType>(x.dtype));
  const char* const data = static_cast<const char*>(x.data);
  const int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(layout.inner.count, 1));
  parallel_for(0, static_cast<int64_t>(norms.size()), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      C& norm = norms[static_cast<size_t>(row)];
      if (!is_in_range(norm))
        norm = static_cast<C>(scaled_norm(layout, data + layout.rows.offset(row), widen));
    }
  });
}

void root_sum_square(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = decltype(std::abs(T{}));
    const Result<C> norms(call.out());
    reduce_rows<T, C>(call.in(0), Ints(axes), NormReducer<T, C>{}, norms.data());
    rescue<C>(call.in(0), Ints(axes), {norms.data(), static_cast<size_t>(call.out().numel)});
    norms.finish();
  });
}

}  // namespace

KernelList distance_kernels() {
  static const oar_kernel list[] = {
      {"root_sum_square", 1, vector_name(), nullptr, kernel_entry<root_sum_square>},
  };
  return list;
}

}  // namespace oar::cpu
