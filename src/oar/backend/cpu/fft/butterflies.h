// Transforms of a few numbers, in place and in registers (hence inlined always): v[k] becomes the sum of v[j] e^(-2 pi i j k / R).
#pragma once

#include "oar/backend/cpu/fft/packet.h"

namespace oar::cpu::fft {

template <class T>
[[gnu::always_inline]] inline void butterfly2(Packet<T>* v) {
  const Packet<T> sum = v[0] + v[1];
  v[1] = v[0] - v[1];
  v[0] = sum;
}

template <class T>
[[gnu::always_inline]] inline void butterfly4(Packet<T>* v) {
  const Packet<T> a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
  v[0] = a + c;
  v[1] = b + d.times_minus_i();
  v[2] = a - c;
  v[3] = b - d.times_minus_i();
}

template <class T>
[[gnu::always_inline]] inline void butterfly8(Packet<T>* v) {
  constexpr T half = static_cast<T>(0.70710678118654752440L);
  Packet<T> even[4] = {v[0], v[2], v[4], v[6]}, odd[4] = {v[1], v[3], v[5], v[7]};
  butterfly4(even);
  butterfly4(odd);
  odd[1] = half * Packet<T>{odd[1].re + odd[1].im, odd[1].im - odd[1].re};
  odd[2] = odd[2].times_minus_i();
  odd[3] = half * Packet<T>{odd[3].im - odd[3].re, -odd[3].re - odd[3].im};
#pragma GCC unroll 4
  for (int k = 0; k < 4; ++k) {
    v[k] = even[k] + odd[k];
    v[k + 4] = even[k] - odd[k];
  }
}

// An odd number of them: v[j] and v[R - j] enter with conjugate roots. `roots` has the cosines of j / R turns for j = 1 ...
// (R - 1) / 2, then the sines.
template <int R, class T>
[[gnu::always_inline]] inline void butterfly_odd(Packet<T>* v, const T* roots) {
  constexpr int h = (R - 1) / 2;
  Packet<T> sum[h], difference[h];
#pragma GCC unroll 8
  for (int j = 1; j <= h; ++j) {
    sum[j - 1] = v[j] + v[R - j];
    difference[j - 1] = v[j] - v[R - j];
  }
  const Packet<T> first = v[0];
#pragma GCC unroll 8
  for (int j = 0; j < h; ++j) v[0] = v[0] + sum[j];
#pragma GCC unroll 8
  for (int k = 1; k <= h; ++k) {
    Packet<T> along = first, across{};
#pragma GCC unroll 8
    for (int j = 1; j <= h; ++j) {
      const int turn = j * k % R;
      const bool mirrored = turn > h;
      const int at = (mirrored ? R - turn : turn) - 1;
      along = along + roots[at] * sum[j - 1];
      if (mirrored)
        across = across - roots[h + at] * difference[j - 1];
      else
        across =
            j == 1 ? roots[h + at] * difference[0] : across + roots[h + at] * difference[j - 1];
    }
    v[k] = along + across.times_minus_i();
    v[R - k] = along - across.times_minus_i();
  }
}

template <int R, class T>
[[gnu::always_inline]] inline void butterfly(Packet<T>* v, const T* roots) {
  if constexpr (R == 2)
    butterfly2(v);
  else if constexpr (R == 4)
    butterfly4(v);
  else if constexpr (R == 8)
    butterfly8(v);
  else
    butterfly_odd<R>(v, roots);
}

}  // namespace oar::cpu::fft
