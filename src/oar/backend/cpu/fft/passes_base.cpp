#include "oar/backend/cpu/fft/passes.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "oar/backend/cpu/fft/butterflies.h"
#include "oar/backend/cpu/fft/roots.h"

namespace oar::cpu::fft {
namespace {

template <int R, bool kLast, class T>
void pass(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots, int64_t) {
  constexpr int kOwn = R % 2 ? R - 1 : 0;  // roots of the butterfly itself
  const T* w = roots + kOwn;
  for (int64_t p = 0; p < m; ++p, w += 2 * (R - 1)) {
    const Packet<T>* from = x + s * p;
    Packet<T>* to = y + s * R * p;
    for (int64_t q = 0; q < s; ++q) {
      Packet<T> v[R];
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j) v[j] = from[q + s * m * j];
      butterfly<R>(v, roots);
      to[q] = v[0];
#pragma GCC unroll 16
      for (int k = 1; k < R; ++k)
        to[q + s * k] = kLast ? v[k] : v[k].times(w[2 * k - 2], w[2 * k - 1]);
    }
  }
}

// The same for a prime that has no loop of its own.
template <class T>
void pass_any(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots,
              int64_t radix) {
  const int64_t h = (radix - 1) / 2;
  const T* w = roots + radix - 1;
  Packet<T> sum[kLargestRadix / 2], difference[kLargestRadix / 2];
  for (int64_t p = 0; p < m; ++p, w += 2 * (radix - 1))
    for (int64_t q = 0; q < s; ++q) {
      const Packet<T>* from = x + s * p + q;
      Packet<T>* to = y + s * radix * p + q;
      Packet<T> all = from[0];
      for (int64_t j = 1; j <= h; ++j) {
        const Packet<T> &a = from[s * m * j], &b = from[s * m * (radix - j)];
        sum[j - 1] = a + b;
        difference[j - 1] = a - b;
        all = all + sum[j - 1];
      }
      to[0] = all;
      for (int64_t k = 1; k <= h; ++k) {
        Packet<T> along = from[0], across{};
        int64_t turn = 0;
        for (int64_t j = 0; j < h; ++j) {
          turn += k;
          if (turn >= radix) turn -= radix;
          const bool mirrored = turn > h;
          const int64_t at = (mirrored ? radix - turn : turn) - 1;
          const T sine = mirrored ? -roots[h + at] : roots[h + at];
          along = along + roots[at] * sum[j];
          across = across + sine * difference[j];
        }
        const Packet<T> low = along + across.times_minus_i(), high = along - across.times_minus_i();
        const T *wk = w + 2 * k - 2, *wr = w + 2 * (radix - k) - 2;
        to[s * k] = low.times(wk[0], wk[1]);
        to[s * (radix - k)] = high.times(wr[0], wr[1]);
      }
    }
}

template <class T, int R>
auto step_of(bool last) {
  return last ? pass<R, true, T> : pass<R, false, T>;
}

int64_t largest_prime_of(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    while (n % p == 0) n /= p, largest = p;
  return std::max(largest, n);
}

}  // namespace

bool has_large_prime(int64_t n) { return largest_prime_of(n) > kLargestRadix; }

int64_t convenient_length(int64_t n) {
  int64_t best = 0;
  for (const int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < n) length *= 2;
    if (best == 0 || length < best) best = length;
  }
  return best;
}

template <class T>
void Passes<T>::add_pass(int64_t radix, int64_t m) {
  const bool last = m == 1;
  const auto step = [&]() -> Step {
    switch (radix) {
      case 2:
        return step_of<T, 2>(last);
      case 3:
        return step_of<T, 3>(last);
      case 4:
        return step_of<T, 4>(last);
      case 5:
        return step_of<T, 5>(last);
      case 7:
        return step_of<T, 7>(last);
      case 8:
        return step_of<T, 8>(last);
      case 11:
        return step_of<T, 11>(last);
      case 13:
        return step_of<T, 13>(last);
      default:
        return pass_any<T>;
    }
  }();
  passes_.push_back({step, radix, m, roots_.size()});
  if (radix % 2) {
    const Roots own(radix);
    for (int64_t j = 1; j <= radix / 2; ++j) roots_.push_back(static_cast<T>(own(j).re));
    for (int64_t j = 1; j <= radix / 2; ++j) roots_.push_back(static_cast<T>(-own(j).im));
  }
  const Roots root(radix * m);
  for (int64_t p = 0; p < m; ++p)
    for (int64_t k = 1; k < radix; ++k) {
      const Root w = root(p * k);
      roots_.push_back(static_cast<T>(w.re));
      roots_.push_back(static_cast<T>(w.im));
    }
}

template <class T>
Passes<T>::Passes(int64_t n) : n_(n) {
  if (has_large_prime(n)) {
    prepare_chirp();
    return;
  }
  int64_t rest = n;
  std::vector<int64_t> radices;
  const auto take = [&](int64_t radix) {
    rest /= radix;
    radices.push_back(radix);
  };
  while (rest % 4 == 0 && rest != 8) take(4);
  if (rest % 8 == 0) take(8);
  if (rest % 2 == 0) take(2);
  for (int64_t p = 3; rest > 1; p += 2)
    while (rest % p == 0) take(p);
  rest = n;
  for (const int64_t radix : radices) add_pass(radix, rest /= radix);
}

template <class T>
Packet<T>* Passes<T>::run(Packet<T>* a, Packet<T>* b, int64_t width) const {
  if (inner_) return run_chirp(a, b, width);
  int64_t s = width;
  for (const Pass& pass : passes_) {
    pass.step(a, b, pass.m, s, roots_.data() + pass.roots, pass.radix);
    s *= pass.radix;
    std::swap(a, b);
  }
  return a;
}

template <class T>
void chirp_of(int64_t n, int64_t length, std::vector<T>& chirp, std::vector<T>& spectrum) {
  const Roots root(2 * n);
  // In double, whatever T is: the transform of the chirp takes part in every product.
  constexpr int kLanes = Packet<double>::kLanes;
  std::vector<Packet<double>> a(static_cast<size_t>(length)), b(static_cast<size_t>(length));
  for (int64_t k = 0; k < n; ++k) {
    const auto square = static_cast<int64_t>(static_cast<unsigned __int128>(k) *
                                             static_cast<unsigned __int128>(k) %
                                             static_cast<unsigned __int128>(2 * n));
    const Root w = root(square);
    chirp.push_back(static_cast<T>(w.re));
    chirp.push_back(static_cast<T>(w.im));
    for (const int64_t at : {k, (length - k) % length})
      for (int lane = 0; lane < kLanes; ++lane) {
        a[static_cast<size_t>(at)].re[lane] = static_cast<double>(w.re);
        a[static_cast<size_t>(at)].im[lane] = -static_cast<double>(w.im);
      }
  }
  const Packet<double>* result = Passes<double>(length).run(a.data(), b.data(), 1);
  for (int64_t k = 0; k < length; ++k) {
    spectrum.push_back(static_cast<T>(result[k].re[0] / static_cast<double>(length)));
    spectrum.push_back(static_cast<T>(result[k].im[0] / static_cast<double>(length)));
  }
}
template void chirp_of(int64_t, int64_t, std::vector<float>&, std::vector<float>&);
template void chirp_of(int64_t, int64_t, std::vector<double>&, std::vector<double>&);

template <class T>
void Passes<T>::prepare_chirp() {
  const int64_t length = convenient_length(2 * n_ - 1);
  inner_ = std::make_unique<Passes>(length);
  chirp_of(n_, length, chirp_, spectrum_);
}

// The inverse transform is the forward one with real and imaginary parts exchanged, before and after.
template <class T>
Packet<T>* Passes<T>::run_chirp(Packet<T>* a, Packet<T>* b, int64_t width) const {
  const int64_t length = inner_->size();
  const auto scale_rows = [&](Packet<T>* rows, const T* factors, int64_t count, auto&& change) {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t q = 0; q < width; ++q)
        rows[k * width + q] = change(rows[k * width + q], factors[2 * k], factors[2 * k + 1]);
  };
  const auto product = [](const Packet<T>& x, T re, T im) { return x.times(re, im); };
  scale_rows(a, chirp_.data(), n_, product);
  std::fill_n(a + n_ * width, (length - n_) * width, Packet<T>{});
  Packet<T>* made = inner_->run(a, b, width);
  if (made != a) std::swap(a, b);
  scale_rows(a, spectrum_.data(), length,
             [](const Packet<T>& x, T re, T im) { return x.times(re, im).swapped(); });
  made = inner_->run(a, b, width);
  scale_rows(made, chirp_.data(), n_,
             [](const Packet<T>& x, T re, T im) { return x.swapped().times(re, im); });
  return made;
}

template <class T>
size_t Passes<T>::bytes() const {
  return (roots_.size() + chirp_.size() + spectrum_.size()) * sizeof(T) +
         (inner_ ? inner_->bytes() : 0);
}

template class Passes<float>;
template class Passes<double>;

}  // namespace oar::cpu::fft
