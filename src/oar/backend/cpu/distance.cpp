// Lengths of vectors.
#include <algorithm>
#include <cmath>
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

template <class T, class C>
struct PeakReducer {
  C identity() const { return C(0); }
  C join(C a, C b) const { return b > a || b != b ? b : a; }
  C step(C acc, const T* p, int64_t) const { return join(acc, static_cast<C>(std::abs(*p))); }
  C finish(C acc, int64_t) const { return acc; }
};

// The norm of what is divided by the largest element, times that one.
template <class T, class C>
struct ScaledNormReducer : Adding<C> {
  const C* peaks;
  C step(C acc, const T* p, int64_t row) const {
    const C part = static_cast<C>(std::abs(*p)) / peaks[row];
    return acc + part * part;
  }
  C finish(C acc, int64_t row) const { return std::sqrt(acc) * peaks[row]; }
};

// Squares leave the range long before norms do. Norms that show it, which are rare, are computed again.
template <class T, class C>
void rescue(const oar_tensor& x, Ints axes, std::span<C> norms) {
  const C least = std::sqrt(std::numeric_limits<C>::min()) / std::numeric_limits<C>::epsilon();
  const auto is_in_range = [&](C norm) {
    return (norm >= least) & (norm <= std::numeric_limits<C>::max());
  };
  int all = 1;  // no branch, so that the loop is vectorised
  for (const C norm : norms) all &= static_cast<int>(is_in_range(norm));
  if (all != 0) return;
  const Scratch<C> peaks(norms.size()), scaled(norms.size());
  reduce_rows<T, C>(x, axes, PeakReducer<T, C>{}, peaks.data());
  const auto is_plain = [](C peak) { return peak > 0 && peak <= std::numeric_limits<C>::max(); };
  if (std::ranges::any_of(std::span(peaks.data(), norms.size()), is_plain))
    reduce_rows<T, C>(x, axes, ScaledNormReducer<T, C>{{}, peaks.data()}, scaled.data());
  for (size_t i = 0; i < norms.size(); ++i)
    if (!is_in_range(norms[i])) norms[i] = is_plain(peaks[i]) ? scaled[i] : peaks[i];
}

void root_sum_square(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = decltype(std::abs(T{}));
    const Result<C> norms(call.out());
    reduce_rows<T, C>(call.in(0), Ints(axes), NormReducer<T, C>{}, norms.data());
    rescue<T, C>(call.in(0), Ints(axes), {norms.data(), static_cast<size_t>(call.out().numel)});
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
