#include "oar/backend/cpu/fft/transform.h"

#include <algorithm>

#include "oar/backend/cpu/fft/plans.h"
#include "oar/backend/cpu/fft/sixteen.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/base/parallel.h"

namespace oar::cpu::fft {
namespace {

// Numbers that are worth another thread.
inline constexpr int64_t kPiece = 8192;

// body(first, count) over all lines, in groups of at most `width`.
template <class Body>
void for_groups(const Lines& lines, int64_t width, Body&& make_body) {
  // A group that crosses an outer index is scattered, so groups start anew there if there are many inner ones.
  const bool by_outer = lines.inner >= width;
  const int64_t span = by_outer ? lines.inner : lines.count();
  const int64_t groups = (span + width - 1) / width;
  const int64_t all = groups * (by_outer ? lines.outer : 1);
  const int64_t grain = std::max<int64_t>(1, kPiece / (width * lines.length + 1));
  parallel_for(0, all, grain, [&](int64_t begin, int64_t end) {
    auto body = make_body();
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g % groups * width;
      body(g / groups * span + first, std::min(width, span - first));
    }
  });
}

template <class Body>
void for_each_line(const Lines& lines, Body&& body) {
  const int64_t grain = std::max<int64_t>(1, kPiece / (lines.length + 1));
  parallel_for(0, lines.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) body(line);
  });
}

// Are several lines at once, each in a lane, quicker than one line after another? Not if the lines are contiguous and one fills
// the lanes alone.
template <class T>
bool by_columns(const Lines& lines, int64_t n) {
  constexpr int64_t kLanes = Packet<T>::kLanes, kMostRows = 2048;
  if (lines.inner > 1) return true;
  if (lines.count() < kLanes / 2) return false;
  return n <= kLanes * kLanes || (n % kLanes != 0 && n <= kMostRows);
}

// A spectrum of m = n / 2 complex numbers z = x[0::2] + i x[1::2] becomes that of the n real numbers x, in place: m + 1 numbers.
template <class T>
void separate(T* z, int64_t m, const T* roots, bool conj) {
  using P = Packet<T>;
  const T sign = conj ? T(-1) : T(1), re = z[0], im = z[1];
  int64_t k = 1;
  for (; k + P::kLanes - 1 < m - k - P::kLanes + 1; k += P::kLanes) {
    T *low = z + 2 * k, *high = z + 2 * (m - k - P::kLanes + 1);
    const P a = load_pairs(low), b = reversed(load_pairs(high)).conj(),
            w = load_pairs(roots + 2 * k);
    const P even = T(0.5) * (a + b), odd = (T(0.5) * (a - b)).times_minus_i().times(w.re, w.im);
    P up = even + odd, down = even - odd;
    up.im *= sign;
    down.im *= -sign;
    store_pairs(low, up);
    store_pairs(high, reversed(down));
  }
  for (; k <= m - k; ++k) {
    T *low = z + 2 * k, *high = z + 2 * (m - k);
    const T er = (low[0] + high[0]) / 2, ei = (low[1] - high[1]) / 2, dr = (low[1] + high[1]) / 2,
            di = (high[0] - low[0]) / 2, c = roots[2 * k], s = roots[2 * k + 1];
    const T odd_re = dr * c - di * s, odd_im = dr * s + di * c;
    low[0] = er + odd_re;
    low[1] = sign * (ei + odd_im);
    high[0] = er - odd_re;
    high[1] = sign * (odd_im - ei);
  }
  z[0] = re + im;
  z[1] = 0;
  z[2 * m] = re - im;
  z[2 * m + 1] = 0;
}

// The other way: from m + 1 numbers x to m numbers, whose inverse transform has the real numbers as pairs.
template <class T>
void join(const T* x, T* z, int64_t m, const T* roots, bool conj) {
  using P = Packet<T>;
  const T sign = conj ? T(-1) : T(1);
  z[0] = x[0] + x[2 * m];
  z[1] = x[0] - x[2 * m];
  int64_t k = 1;
  for (; k + P::kLanes - 1 < m - k - P::kLanes + 1; k += P::kLanes) {
    const int64_t mirror = m - k - P::kLanes + 1;
    P a = load_pairs(x + 2 * k), b = reversed(load_pairs(x + 2 * mirror)),
      w = load_pairs(roots + 2 * k);
    a.im *= sign;
    b.im *= -sign;
    const P even = a + b, odd = (a - b).times_i().times(w.re, -w.im);
    store_pairs(z + 2 * k, even + odd);
    store_pairs(z + 2 * mirror, reversed((even - odd).conj()));
  }
  for (; k <= m - k; ++k) {
    const T *low = x + 2 * k, *high = x + 2 * (m - k);
    const T er = low[0] + high[0], ei = sign * (low[1] - high[1]), dr = low[0] - high[0],
            di = sign * (low[1] + high[1]), c = roots[2 * k], s = -roots[2 * k + 1];
    const T odd_re = -(dr * s + di * c), odd_im = dr * c - di * s;
    z[2 * k] = er + odd_re;
    z[2 * k + 1] = ei + odd_im;
    z[2 * (m - k)] = er - odd_re;
    z[2 * (m - k) + 1] = odd_im - ei;
  }
}

// The second half of a spectrum of n numbers from the first.
template <class T>
void mirror(T* x, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) {
    x[2 * k] = x[2 * (n - k)];
    x[2 * k + 1] = -x[2 * (n - k) + 1];
  }
}

}  // namespace

template <class T>
void complex_to_complex(const T* in, T* out, const Lines& lines, bool inverse, T factor) {
  const int64_t n = lines.length;
  if (n == 16 && lines.inner == 1)
    return parallel_for(0, lines.outer, kPiece / n, [&](int64_t begin, int64_t end) {
      complex_sixteen(in + 2 * n * begin, out + 2 * n * begin, end - begin, inverse, factor);
    });
  if (by_columns<T>(lines, n)) {
    const auto passes = plan_for<Passes<T>>(n);
    return for_groups(lines, Columns<T>::kLanes, [&] {
      return [&, columns = Columns<T>(*passes, factor)](int64_t first, int64_t count) mutable {
        columns.complex_lines(in, out, lines, first, count, inverse);
      };
    });
  }
  const auto plan = plan_for<Line<T>>(n);
  for_each_line(lines, [&](int64_t line) {
    plan->run(in + 2 * n * line, out + 2 * n * line, inverse, factor);
  });
}

template <class T>
void real_to_complex(const T* in, const Lines& from, T* out, const Lines& to, bool inverse,
                     T factor) {
  const int64_t n = from.length, m = n / 2;
  if (n == 16 && from.inner == 1 && to.length == m + 1)
    return parallel_for(0, from.outer, kPiece / n, [&](int64_t begin, int64_t end) {
      real_sixteen(in + n * begin, out + 2 * to.length * begin, end - begin, inverse, factor);
    });
  const bool together = by_columns<T>(from, n % 2 ? n : m);
  if (together && n % 2 == 0 && from.inner == 1 && to.length > m) {
    const auto passes = plan_for<Passes<T>>(m);
    const auto roots = plan_for<HalfRoots<T>>(n);
    return for_groups(from, Columns<T>::kLanes, [&] {
      return [&, columns = Columns<T>(*passes, factor)](int64_t first, int64_t count) mutable {
        columns.even_lines(in, out, to, first, count, roots->data(), inverse);
      };
    });
  }
  if (together) {
    const auto passes = plan_for<Passes<T>>(n);
    return for_groups(from, 2 * Columns<T>::kLanes, [&] {
      return [&, columns = Columns<T>(*passes, factor)](int64_t first, int64_t count) mutable {
        columns.real_lines(in, from, out, to, first, count, inverse);
      };
    });
  }
  if (n % 2 == 0) {
    const auto plan = plan_for<Line<T>>(m);
    const auto roots = plan_for<HalfRoots<T>>(n);
    return for_each_line(from, [&](int64_t line) {
      T* spectrum = out + 2 * to.length * line;
      if (to.length > m) {
        plan->run(in + n * line, spectrum, false, factor);
        separate(spectrum, m, roots->data(), inverse);
      }
      if (to.length == n) mirror(spectrum, n);
    });
  }
  const auto plan = plan_for<Line<T>>(n);
  for_each_line(from, [&](int64_t line) {
    Scratch<T> whole(2 * n);
    for (int64_t k = 0; k < n; ++k) {
      whole[2 * k] = in[n * line + k];
      whole[2 * k + 1] = 0;
    }
    plan->run(whole.data(), whole.data(), inverse, factor);
    std::copy_n(whole.data(), 2 * to.length, out + 2 * to.length * line);
  });
}

template <class T>
void complex_to_real(const T* in, const Lines& from, T* out, const Lines& to, bool inverse,
                     T factor) {
  const int64_t n = to.length, m = n / 2, half = m + 1;
  const bool conj = !inverse;
  if (by_columns<T>(from, n % 2 ? n : m)) {
    const auto passes = plan_for<Passes<T>>(n);
    return for_groups(to, 2 * Columns<T>::kLanes, [&] {
      return [&, columns = Columns<T>(*passes, factor)](int64_t first, int64_t count) mutable {
        columns.hermitian_lines(in, from, out, to, first, count, conj);
      };
    });
  }
  const auto plan = plan_for<Line<T>>(n % 2 ? n : m);
  const auto roots = n % 2 ? nullptr : plan_for<HalfRoots<T>>(n);
  for_each_line(to, [&](int64_t line) {
    const T* spectrum = in + 2 * half * line;
    Scratch<T> whole(n % 2 ? 2 * n : n);
    if (n % 2 == 0) {
      join(spectrum, whole.data(), m, roots->data(), conj);
      return plan->run(whole.data(), out + n * line, true, factor);
    }
    std::copy_n(spectrum, 2 * half, whole.data());
    whole[1] = 0;
    mirror(whole.data(), n);
    plan->run(whole.data(), whole.data(), inverse, factor);
    for (int64_t k = 0; k < n; ++k) out[n * line + k] = whole[2 * k];
  });
}

template void complex_to_complex(const float*, float*, const Lines&, bool, float);
template void complex_to_complex(const double*, double*, const Lines&, bool, double);
template void real_to_complex(const float*, const Lines&, float*, const Lines&, bool, float);
template void real_to_complex(const double*, const Lines&, double*, const Lines&, bool, double);
template void complex_to_real(const float*, const Lines&, float*, const Lines&, bool, float);
template void complex_to_real(const double*, const Lines&, double*, const Lines&, bool, double);

}  // namespace oar::cpu::fft
