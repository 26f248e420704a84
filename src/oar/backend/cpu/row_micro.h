// Loops over rows, written once with vector extensions; each file that includes it is compiled for
// another instruction set, so everything here has internal linkage and uses nothing from other
// headers.
#pragma once

#include "oar/backend/cpu/row_table.h"

namespace oar::cpu {
namespace {

template <class T>
struct ExpNumbers;
template <>
struct ExpNumbers<float> {
  using Int = int;
  static constexpr float kLow = -104, kHigh = 89;  // beyond them: 0 and infinity
  static constexpr float kRound = 12582912;        // 1.5 * 2^23: adding it rounds to integers
  static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  static constexpr int kBias = 127, kShift = 23, kTerms = 7;
};
template <>
struct ExpNumbers<double> {
  using Int = long;
  static constexpr double kLow = -746, kHigh = 710;
  static constexpr double kRound = 6755399441055744;
  static constexpr double kLn2High = 0.693147180369123816490, kLn2Low = 1.90821492927058770002e-10;
  static constexpr int kBias = 1023, kShift = 52, kTerms = 13;
};

constexpr double kInverseFactorials[] = {1.0,
                                         1.0,
                                         1.0 / 2,
                                         1.0 / 6,
                                         1.0 / 24,
                                         1.0 / 120,
                                         1.0 / 720,
                                         1.0 / 5040,
                                         1.0 / 40320,
                                         1.0 / 362880,
                                         1.0 / 3628800,
                                         1.0 / 39916800,
                                         1.0 / 479001600,
                                         1.0 / 6227020800};

template <class T, int kBytes>
struct Rows {
  using Numbers = ExpNumbers<T>;
  using Int = typename Numbers::Int;
  typedef T V __attribute__((vector_size(kBytes)));
  typedef T U __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  typedef Int I __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  static constexpr int kSums = 32, kVectors = kSums / kLanes;
  static constexpr long kBlock = 4096;  // elements that are added up in one go

  static V load(const T* p) { return *reinterpret_cast<const U*>(p); }
  static void store(T* p, V v) { *reinterpret_cast<U*>(p) = v; }
  static V larger(V a, V b) { return ((b > a) | (b != b)) ? b : a; }
  static V power_of_two(V rounded) {
    const I k = __builtin_bit_cast(I, rounded) - __builtin_bit_cast(I, V{} + Numbers::kRound);
    return __builtin_bit_cast(V, (k + Numbers::kBias) << Numbers::kShift);
  }

  // To within 2 units in the last place; underflows gradually, overflows to infinity, keeps NaN.
  static V exp(V x) {
    x = x < Numbers::kLow ? V{} + Numbers::kLow : x;
    x = x > Numbers::kHigh ? V{} + Numbers::kHigh : x;
    const V n = (x * T(1.44269504088896340736) + Numbers::kRound) - Numbers::kRound;
    const V r = (x - n * Numbers::kLn2High) - n * Numbers::kLn2Low;
    V p = V{} + T(kInverseFactorials[Numbers::kTerms]);
#pragma GCC unroll 16
    for (int i = Numbers::kTerms - 1; i >= 0; --i) p = p * r + T(kInverseFactorials[i]);
    // 2^n in two factors: n may reach beyond the exponents of normal numbers.
    const V half = n * T(0.5) + Numbers::kRound, rest = n - (half - Numbers::kRound);
    return p * power_of_two(half) * power_of_two(rest + Numbers::kRound);
  }

  // What is left of a row behind its whole groups, filled up.
  struct Tail {
    T values[kSums];
    Tail(const T* x, long n, T fill) {
      for (long i = 0; i < kSums; ++i) values[i] = i < n ? x[i] : fill;
    }
    V vector(int v) const { return load(values + v * kLanes); }
  };

  template <class Join>
  static T joined(const V* lanes, Join join) {
    T all[kSums];
    for (int v = 0; v < kVectors; ++v) store(all + v * kLanes, lanes[v]);
    for (int width = kSums / 2; width > 0; width /= 2)
      for (int i = 0; i < width; ++i) all[i] = join(all[i], all[i + width]);
    return all[0];
  }

  static T max(const T* x, long n) {
    V high[kVectors];
    for (int v = 0; v < kVectors; ++v) high[v] = V{} - T(__builtin_inf());
    long i = 0;
    for (; i + kSums <= n; i += kSums)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) high[v] = larger(high[v], load(x + i + v * kLanes));
    if (i < n) {
      const Tail tail(x + i, n - i, T(-__builtin_inf()));
      for (int v = 0; v < kVectors; ++v) high[v] = larger(high[v], tail.vector(v));
    }
    return joined(high, [](T a, T b) { return b > a || b != b ? b : a; });
  }

  template <bool kStores>
  static T exp_sum_block(const T* x, T* out, long n, T shift) {
    V sum[kVectors] = {};
    long i = 0;
    for (; i + kSums <= n; i += kSums)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const V e = exp(load(x + i + v * kLanes) - shift);
        if (kStores) store(out + i + v * kLanes, e);
        sum[v] += e;
      }
    if (i < n) {
      Tail tail(x + i, n - i, T(-__builtin_inf()));
      for (int v = 0; v < kVectors; ++v) {
        const V e = exp(tail.vector(v) - shift);
        store(tail.values + v * kLanes, e);
        sum[v] += e;
      }
      if (kStores)
        for (long k = i; k < n; ++k) out[k] = tail.values[k - i];
    }
    return joined(sum, [](T a, T b) { return a + b; });
  }
  static T exp_sum(const T* x, T* out, long n, T shift) {
    T sum = 0;
    for (long i = 0; i < n; i += kBlock) {
      const long count = n - i < kBlock ? n - i : kBlock;
      sum += out ? exp_sum_block<true>(x + i, out + i, count, shift)
                 : exp_sum_block<false>(x + i, nullptr, count, shift);
    }
    return sum;
  }

  static void scale(T* x, long n, T factor) {
    long i = 0;
    for (; i + kLanes <= n; i += kLanes) store(x + i, load(x + i) * factor);
    for (; i < n; ++i) x[i] *= factor;
  }

  static void attention_grad(T* p, T* dp, long n, T lse, T delta) {
    long i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const V e = exp(load(p + i) - lse);
      store(p + i, e);
      store(dp + i, e * (load(dp + i) - delta));
    }
    if (i == n) return;
    Tail tail(p + i, n - i, T(0));
    for (int v = 0; v < kVectors; ++v) store(tail.values + v * kLanes, exp(tail.vector(v) - lse));
    for (long k = 0; i < n; ++i, ++k) {
      p[i] = tail.values[k];
      dp[i] = p[i] * (dp[i] - delta);
    }
  }

  static constexpr RowTable<T> table() { return {max, exp_sum, scale, attention_grad}; }
};

}  // namespace
}  // namespace oar::cpu
