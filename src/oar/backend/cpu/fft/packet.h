// Complex numbers of several transforms side by side: real parts in one vector, imaginary parts in another. Multiplications by i
// and conjugates cost nothing then, and a product needs no shuffles.
#pragma once

#include <cstdint>

namespace oar::cpu::fft {

template <class T>
struct Packet {
  static constexpr int kLanes = 32 / sizeof(T);
  typedef T Vector __attribute__((vector_size(32)));
  // The same anywhere in memory.
  typedef T Loose __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
  Vector re, im;

  friend Packet operator+(const Packet& a, const Packet& b) { return {a.re + b.re, a.im + b.im}; }
  friend Packet operator-(const Packet& a, const Packet& b) { return {a.re - b.re, a.im - b.im}; }
  friend Packet operator*(T factor, const Packet& a) { return {factor * a.re, factor * a.im}; }
  Packet times_i() const { return {-im, re}; }
  Packet times_minus_i() const { return {im, -re}; }
  Packet swapped() const { return {im, re}; }
  Packet conj() const { return {re, -im}; }
  // Times re + i im, the same number in all lanes or one for each.
  template <class Number>
  Packet times(const Number& r, const Number& i) const {
    return {re * r - im * i, re * i + im * r};
  }
};

// The order in which `load` puts complex numbers into lanes: the one that needs a single shuffle for each vector.
template <class T>
constexpr int lane_order(int64_t i) {
  constexpr int four[] = {0, 2, 1, 3}, eight[] = {0, 1, 4, 5, 2, 3, 6, 7};
  return sizeof(T) == 8 ? four[i] : eight[i];
}

// kLanes complex numbers that are contiguous in memory, as pairs.
template <class T>
[[gnu::always_inline]] inline Packet<T> load_pairs(const T* from) {
  using P = Packet<T>;
  const typename P::Vector low = *reinterpret_cast<const typename P::Loose*>(from),
                           high = *reinterpret_cast<const typename P::Loose*>(from + P::kLanes);
  if constexpr (P::kLanes == 8)
    return {__builtin_shufflevector(low, high, 0, 2, 8, 10, 4, 6, 12, 14),
            __builtin_shufflevector(low, high, 1, 3, 9, 11, 5, 7, 13, 15)};
  else
    return {__builtin_shufflevector(low, high, 0, 4, 2, 6),
            __builtin_shufflevector(low, high, 1, 5, 3, 7)};
}
template <class T>
[[gnu::always_inline]] inline void store_pairs(T* to, const Packet<T>& p) {
  using P = Packet<T>;
  typename P::Vector low, high;
  if constexpr (P::kLanes == 8) {
    low = __builtin_shufflevector(p.re, p.im, 0, 8, 1, 9, 4, 12, 5, 13);
    high = __builtin_shufflevector(p.re, p.im, 2, 10, 3, 11, 6, 14, 7, 15);
  } else {
    low = __builtin_shufflevector(p.re, p.im, 0, 4, 2, 6);
    high = __builtin_shufflevector(p.re, p.im, 1, 5, 3, 7);
  }
  *reinterpret_cast<typename P::Loose*>(to) = low;
  *reinterpret_cast<typename P::Loose*>(to + P::kLanes) = high;
}

// The lanes in reverse order, for packets in the order of load_pairs.
template <class T>
Packet<T> reversed(const Packet<T>& p) {
  const auto turn = [](typename Packet<T>::Vector v) {
    if constexpr (Packet<T>::kLanes == 8)
      return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
    else
      return __builtin_shufflevector(v, v, 3, 2, 1, 0);
  };
  return {turn(p.re), turn(p.im)};
}

// Rows and columns of a square of vectors exchanged.
template <class V, int kLanes>
[[gnu::always_inline]] inline void transpose_square(V (&r)[kLanes]) {
  V s[kLanes];
  if constexpr (kLanes == 8) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
      s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
      s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 8
      for (int h = 0; h < 2; ++h) {
        r[i + 2 * h] = __builtin_shufflevector(s[i + h], s[i + h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 2 * h + 1] =
            __builtin_shufflevector(s[i + h], s[i + h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
      }
#pragma GCC unroll 8
    for (int k = 0; k < 4; ++k) {
      s[k] = __builtin_shufflevector(r[k], r[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
      s[k + 4] = __builtin_shufflevector(r[k], r[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
  } else {
    V m[4];
#pragma GCC unroll 8
    for (int i = 0; i < 4; i += 2) {
      m[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
      m[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
    }
#pragma GCC unroll 8
    for (int k = 0; k < 2; ++k) {
      s[k] = __builtin_shufflevector(m[k], m[k + 2], 0, 1, 4, 5);
      s[k + 2] = __builtin_shufflevector(m[k], m[k + 2], 2, 3, 6, 7);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; ++i) r[i] = s[i];
}

// to[k * step + i] = from[i * row + k] for i and k below the number of lanes.
template <class T>
[[gnu::always_inline]] inline void transpose_words(const T* from, int64_t row, T* to,
                                                   int64_t step) {
  using P = Packet<T>;
  typename P::Vector square[P::kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < P::kLanes; ++i)
    square[i] = *reinterpret_cast<const typename P::Loose*>(from + i * row);
  transpose_square(square);
#pragma GCC unroll 8
  for (int i = 0; i < P::kLanes; ++i)
    *reinterpret_cast<typename P::Loose*>(to + i * step) = square[i];
}

}  // namespace oar::cpu::fft
