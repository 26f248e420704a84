// Running sums, written once with vector extensions; see fold_micro.h.
#pragma once

#include "oar/backend/cpu/rows/row_micro.h"

namespace oar::cpu {
namespace {

// Four at a time whatever the width of the machine's vectors, so results do not depend on it.
template <class T>
struct RunningSum {
  typedef double D __attribute__((vector_size(32)));
  typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));

  // Compilers split this conversion into two halves, and it dominates the time.
  static D widened(const T* p) {
#if defined(__AVX__) && !defined(__clang__)
    if constexpr (sizeof(T) == 4)
      return __builtin_ia32_cvtps2pd256(*reinterpret_cast<const Four*>(p));
#endif
    return __builtin_convertvector(*reinterpret_cast<const Four*>(p), D);
  }
  template <bool kReverse>
  static D load(const T* p) {
    const D d = widened(p);
    return kReverse ? __builtin_shufflevector(d, d, 3, 2, 1, 0) : d;
  }
  template <bool kReverse>
  static void store(T* p, D d) {
    if (kReverse) d = __builtin_shufflevector(d, d, 3, 2, 1, 0);
    *reinterpret_cast<Four*>(p) = __builtin_convertvector(d, Four);
  }
  static D within(D d) {
    d += __builtin_shufflevector(D{}, d, 0, 4, 5, 6);
    return d + __builtin_shufflevector(D{}, d, 0, 1, 4, 5);
  }
  static D last(D d) { return __builtin_shufflevector(d, d, 3, 3, 3, 3); }

  // Two groups of four are summed separately; only the last addition depends on the ones before.
  template <bool kReverse>
  static void run(const T* x, T* out, long n) {
    D carry{};
    long i = 0;
    for (; i + 8 <= n; i += 8) {
      const long near = kReverse ? n - 4 - i : i, far = kReverse ? near - 4 : near + 4;
      const D first = within(load<kReverse>(x + near)), second = within(load<kReverse>(x + far));
      const D whole = carry + (second + last(first));
      store<kReverse>(out + near, carry + first);
      store<kReverse>(out + far, whole);
      carry = last(whole);
    }
    double sum = carry[0];
    for (; i < n; ++i) {
      const long at = kReverse ? n - 1 - i : i;
      sum += static_cast<double>(x[at]);
      out[at] = static_cast<T>(sum);
    }
  }
  static void either(const T* x, T* out, long n, bool reverse) {
    reverse ? run<true>(x, out, n) : run<false>(x, out, n);
  }
};

}  // namespace
}  // namespace oar::cpu
