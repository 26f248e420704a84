#include <algorithm>

#include "oar/backend/cpu/fft/butterflies.h"
#include "oar/backend/cpu/fft/roots.h"
#include "oar/backend/cpu/fft/sixteen.h"

namespace oar::cpu::fft {
namespace {

// Lines that are the packets' lanes at once: one of double, two of float.
template <class T>
inline constexpr int kAtOnce = Packet<T>::kLanes / 4;

// The column of the 4 x 4 numbers of a line that `load_rows` puts into a lane.
template <class T>
constexpr int column_of(int lane) {
  constexpr int four[] = {0, 2, 1, 3}, eight[] = {0, 1, 0, 1, 2, 3, 2, 3};
  return sizeof(T) == 8 ? four[lane] : eight[lane];
}

// Row r of each line. Two lines of float are 32 words apart.
template <class T>
[[gnu::always_inline]] inline Packet<T> load_row(const T* from) {
  using P = Packet<T>;
  if constexpr (P::kLanes == 4) {
    return load_pairs(from);
  } else {
    const typename P::Vector one = *reinterpret_cast<const typename P::Loose*>(from),
                             two = *reinterpret_cast<const typename P::Loose*>(from + 32);
    return {__builtin_shufflevector(one, two, 0, 2, 8, 10, 4, 6, 12, 14),
            __builtin_shufflevector(one, two, 1, 3, 9, 11, 5, 7, 13, 15)};
  }
}
template <class T>
[[gnu::always_inline]] inline void store_row(T* to, const Packet<T>& p) {
  using P = Packet<T>;
  if constexpr (P::kLanes == 4) {
    store_pairs(to, p);
  } else {
    *reinterpret_cast<typename P::Loose*>(to) =
        __builtin_shufflevector(p.re, p.im, 0, 8, 1, 9, 4, 12, 5, 13);
    *reinterpret_cast<typename P::Loose*>(to + 32) =
        __builtin_shufflevector(p.re, p.im, 2, 10, 3, 11, 6, 14, 7, 15);
  }
}

// Rows and columns of the 4 x 4 numbers of each line exchanged, in the lanes' order.
template <class V>
[[gnu::always_inline]] inline void turn_rows(V (&r)[4]) {
  if constexpr (sizeof(r[0][0]) == 8) {
    V ordered[4] = {r[0], r[2], r[1], r[3]};
    transpose_square(ordered);
    r[0] = ordered[0], r[1] = ordered[2], r[2] = ordered[1], r[3] = ordered[3];
  } else {
    const V p = __builtin_shufflevector(r[0], r[1], 0, 8, 2, 10, 4, 12, 6, 14),
            q = __builtin_shufflevector(r[0], r[1], 1, 9, 3, 11, 5, 13, 7, 15),
            s = __builtin_shufflevector(r[2], r[3], 0, 8, 2, 10, 4, 12, 6, 14),
            t = __builtin_shufflevector(r[2], r[3], 1, 9, 3, 11, 5, 13, 7, 15);
    r[0] = __builtin_shufflevector(p, s, 0, 1, 2, 3, 8, 9, 10, 11);
    r[1] = __builtin_shufflevector(q, t, 0, 1, 2, 3, 8, 9, 10, 11);
    r[2] = __builtin_shufflevector(p, s, 4, 5, 6, 7, 12, 13, 14, 15);
    r[3] = __builtin_shufflevector(q, t, 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// w[k - 1]: what row k is multiplied by, e^(-2 pi i k column / 16).
template <class T>
struct RowRoots {
  RowRoots() {
    const Roots root(16);
    for (int k = 1; k < 4; ++k)
      for (int lane = 0; lane < Packet<T>::kLanes; ++lane) {
        const Root each = root(k * column_of<T>(lane));
        w[k - 1].re[lane] = static_cast<T>(each.re);
        w[k - 1].im[lane] = static_cast<T>(each.im);
      }
  }
  Packet<T> w[3];
};

// e^(-2 pi i k / 16) for the first quarter, as pairs.
template <class T>
struct FirstRoots {
  FirstRoots() {
    const Roots root(16);
    for (int k = 0; k < 5; ++k) {
      pairs[2 * k] = static_cast<T>(root(k).re);
      pairs[2 * k + 1] = static_cast<T>(root(k).im);
    }
  }
  T pairs[10];
};

// The lines that are in the lanes at once: columns, then rows of the 4 x 4 numbers, in registers.
template <bool kInverse, class T>
[[gnu::always_inline]] inline void few_lines(const T* in, T* out, const Packet<T>* w, T factor) {
  using P = Packet<T>;
  P v[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    const P p = load_row(in + 8 * r);
    v[r] = kInverse ? p.swapped() : p;
  }
  butterfly4(v);
#pragma GCC unroll 4
  for (int k = 1; k < 4; ++k) v[k] = v[k].times(w[k - 1].re, w[k - 1].im);
  typename P::Vector re[4] = {v[0].re, v[1].re, v[2].re, v[3].re},
                     im[4] = {v[0].im, v[1].im, v[2].im, v[3].im};
  turn_rows(re);
  turn_rows(im);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) v[k] = {re[k], im[k]};
  butterfly4(v);
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    const P scaled = factor * v[k];
    store_row(out + 8 * k, kInverse ? scaled.swapped() : scaled);
  }
}

template <bool kInverse, class T>
void complex_lines(const T* in, T* out, int64_t lines, T factor) {
  static const RowRoots<T> roots;
  const Packet<T> w[3] = {roots.w[0], roots.w[1], roots.w[2]};
  int64_t line = 0;
  for (; line + kAtOnce<T> <= lines; line += kAtOnce<T>)
    few_lines<kInverse>(in + 32 * line, out + 32 * line, w, factor);
  if (line == lines) return;
  T padded[32 * kAtOnce<T>] = {};
  std::copy_n(in + 32 * line, 32 * (lines - line), padded);
  few_lines<kInverse>(padded, padded, w, factor);
  std::copy_n(padded, 32 * (lines - line), out + 32 * line);
}

// As many real lines as there are lanes, as complex ones of eight numbers: the parts of a packet are two numbers of each line.
template <class T>
[[gnu::always_inline]] inline void real_group(const T* in, T* out, const T* roots, T sign,
                                              T factor) {
  using P = Packet<T>;
  constexpr int kLanes = P::kLanes, kBlock = kLanes / 2;
  P v[8], made[9];
#pragma GCC unroll 4
  for (int b = 0; b < 16 / kLanes; ++b)
    transpose_words(in + b * kLanes, 16, reinterpret_cast<T*>(v + b * kBlock), kLanes);
  butterfly8(v);
  const T share = factor / 2;
  const auto put = [&](int k, const P& p) { made[k] = {p.re, sign * p.im}; };
  put(0, {factor * (v[0].re + v[0].im), typename P::Vector{}});
  put(8, {factor * (v[0].re - v[0].im), typename P::Vector{}});
#pragma GCC unroll 4
  for (int k = 1; k <= 4; ++k) {
    const P z = share * v[k], mirror = share * v[8 - k].conj(), even = z + mirror,
            odd = (z - mirror).times_minus_i().times(roots[2 * k], roots[2 * k + 1]);
    put(8 - k, (even - odd).conj());
    put(k, even + odd);
  }
#pragma GCC unroll 4
  for (int b = 0; b < 8 / kBlock; ++b)
    transpose_words(reinterpret_cast<const T*>(made + b * kBlock), kLanes, out + b * kLanes, 18);
#pragma GCC unroll 8
  for (int lane = 0; lane < kLanes; ++lane) {
    out[18 * lane + 16] = made[8].re[lane];
    out[18 * lane + 17] = made[8].im[lane];
  }
}

}  // namespace

template <class T>
void complex_sixteen(const T* in, T* out, int64_t lines, bool inverse, T factor) {
  if (inverse)
    complex_lines<true>(in, out, lines, factor);
  else
    complex_lines<false>(in, out, lines, factor);
}

template <class T>
void real_sixteen(const T* in, T* out, int64_t lines, bool conj, T factor) {
  constexpr int64_t kLanes = Packet<T>::kLanes;
  static const FirstRoots<T> first;
  T roots[10];
  std::copy_n(first.pairs, 10, roots);
  const T sign = conj ? T(-1) : T(1);
  int64_t line = 0;
  for (; line + kLanes <= lines; line += kLanes)
    real_group(in + 16 * line, out + 18 * line, roots, sign, factor);
  if (line == lines) return;
  T from[16 * kLanes] = {}, to[18 * kLanes];
  std::copy_n(in + 16 * line, 16 * (lines - line), from);
  real_group(from, to, roots, sign, factor);
  std::copy_n(to, 18 * (lines - line), out + 18 * line);
}

template void complex_sixteen(const float*, float*, int64_t, bool, float);
template void complex_sixteen(const double*, double*, int64_t, bool, double);
template void real_sixteen(const float*, float*, int64_t, bool, float);
template void real_sixteen(const double*, double*, int64_t, bool, double);

}  // namespace oar::cpu::fft
