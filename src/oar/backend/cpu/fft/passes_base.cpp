#include <algorithm>
#include <type_traits>
#include <utility>

#include "oar/backend/cpu/fft/butterflies.h"
#include "oar/backend/cpu/fft/passes.h"
#include "oar/backend/cpu/fft/roots.h"

namespace oar::cpu::fft {
namespace {

// What a step reads and writes, by row and place in the row: packets, or pairs in memory, of which parts may be exchanged.
template <class T>
struct Packets {
  static Packet<T> load(const Packet<T>* from) { return *from; }
  static void store(Packet<T>* to, const Packet<T>& p) { *to = p; }
};
template <class T, bool kInverse>
struct InPairs {
  static Packet<T> load(const T* from) {
    const Packet<T> p = load_pairs(from);
    return kInverse ? p.swapped() : p;
  }
  static void store(T* to, const Packet<T>& p, T factor) {
    const Packet<T> scaled = factor * p;
    store_pairs(to, kInverse ? scaled.swapped() : scaled);
  }
};

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
template <class Source, class Sink, int R, bool kLast>
void Passes<T>::step_as(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots,
                        int64_t /*radix*/, const Pairs& pairs) {
  constexpr bool kFromPairs = !std::is_same_v<Source, Packets<T>>,
                 kToPairs = !std::is_same_v<Sink, Packets<T>>;
  constexpr int kOwn = R % 2 ? R - 1 : 0;  // roots of the butterfly itself
  const T* w = roots + kOwn;
  const int64_t stride = pairs.stride;
  const T *in = pairs.in, factor = pairs.factor;
  T* out = pairs.out;
  for (int64_t p = 0; p < m; ++p, w += 2 * (R - 1)) {
    for (int64_t q = 0; q < s; ++q) {
      Packet<T> v[R];
#pragma GCC unroll 16
      for (int j = 0; j < R; ++j)
        if constexpr (kFromPairs)
          v[j] = Source::load(in + (p + m * j) * stride + q * 2 * Packet<T>::kLanes);
        else
          v[j] = Source::load(x + q + s * (p + m * j));
      butterfly<R>(v, roots);
#pragma GCC unroll 16
      for (int k = 0; k < R; ++k) {
        const Packet<T> made = kLast || k == 0 ? v[k] : v[k].times(w[2 * k - 2], w[2 * k - 1]);
        if constexpr (kToPairs)  // the last step of packets side by side: a row each
          Sink::store(out + (q + s * k) * stride, made, factor);
        else
          Sink::store(y + q + s * (R * p + k), made);
      }
    }
  }
}

// The same for a prime that has no loop of its own.
template <class T>
void Passes<T>::step_any(const Packet<T>* x, Packet<T>* y, int64_t m, int64_t s, const T* roots,
                         int64_t radix, const Pairs& /*pairs*/) {
  const int64_t h = (radix - 1) / 2;
  const T* w = roots + radix - 1;
  Packet<T> sum[kLargestRadix / 2], difference[kLargestRadix / 2];
  for (int64_t p = 0; p < m; ++p, w += 2 * (radix - 1))
    for (int64_t q = 0; q < s; ++q) {
      const Packet<T>* from = x + s * p + q;
      Packet<T>* to = y + s * radix * p + q;
      Packet<T> all = from[0];
      for (int64_t j = 1; j <= h; ++j) {
        const Packet<T>&a = from[s * m * j], &b = from[s * m * (radix - j)];
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

template <class T>
template <int R>
auto Passes<T>::pass_of(bool last) -> Pass {
  using Own = Packets<T>;
  using Forward = InPairs<T, false>;
  using Inverse = InPairs<T, true>;
  Pass pass{};
  pass.step = last ? step_as<Own, Own, R, true> : step_as<Own, Own, R, false>;
  if constexpr (R <= 5 || R == 8) {
    pass.from_pairs[0] = last ? step_as<Forward, Own, R, true> : step_as<Forward, Own, R, false>;
    pass.from_pairs[1] = last ? step_as<Inverse, Own, R, true> : step_as<Inverse, Own, R, false>;
    pass.to_pairs[0] = last ? step_as<Own, Forward, R, true> : nullptr;
    pass.to_pairs[1] = last ? step_as<Own, Inverse, R, true> : nullptr;
  }
  return pass;
}

template <class T>
void Passes<T>::add_pass(int64_t radix, int64_t m) {
  const bool last = m == 1;
  Pass pass = [&]() -> Pass {
    switch (radix) {
      case 2:
        return pass_of<2>(last);
      case 3:
        return pass_of<3>(last);
      case 4:
        return pass_of<4>(last);
      case 5:
        return pass_of<5>(last);
      case 7:
        return pass_of<7>(last);
      case 8:
        return pass_of<8>(last);
      case 11:
        return pass_of<11>(last);
      case 13:
        return pass_of<13>(last);
      default:
        return {step_any, {}, {}, 0, 0, 0};
    }
  }();
  pass.radix = radix;
  pass.m = m;
  pass.roots = roots_.size();
  passes_.push_back(pass);
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
  const auto without = [&radices](int64_t number, int64_t radix) {
    radices.push_back(radix);
    return number / radix;
  };
  while (rest % 4 == 0 && rest != 8) rest = without(rest, 4);
  if (rest % 8 == 0) rest = without(rest, 8);
  if (rest % 2 == 0) rest = without(rest, 2);
  for (int64_t p = 3; rest > 1; p += 2)
    while (rest % p == 0) rest = without(rest, p);
  rest = n;
  for (const int64_t radix : radices) add_pass(radix, rest /= radix);
}

template <class T>
void Passes<T>::run_passes(size_t first, size_t last, Packet<T>*& a, Packet<T>*& b,
                           int64_t& s) const {
  for (size_t i = first; i < last; ++i) {
    const Pass& pass = passes_[i];
    pass.step(a, b, pass.m, s, roots_.data() + pass.roots, pass.radix, {});
    s *= pass.radix;
    std::swap(a, b);
  }
}

template <class T>
Packet<T>* Passes<T>::run(Packet<T>* a, Packet<T>* b, int64_t width) const {
  if (inner_) return run_chirp(a, b, width);
  run_passes(0, passes_.size(), a, b, width);
  return a;
}

template <class T>
Packet<T>* Passes<T>::run_from(const T* in, int64_t stride, bool inverse, Packet<T>* a,
                               Packet<T>* b, int64_t width) const {
  if (!passes_.empty() && passes_[0].from_pairs[inverse]) {
    const Pass& pass = passes_[0];
    pass.from_pairs[inverse](nullptr, a, pass.m, width, roots_.data() + pass.roots, pass.radix,
                             {in, nullptr, 2 * stride, T(1)});
    width *= pass.radix;
    run_passes(1, passes_.size(), a, b, width);
    return a;
  }
  for (int64_t row = 0; row < n_; ++row)
    for (int64_t q = 0; q < width; ++q) {
      const Packet<T> p = load_pairs(in + 2 * (row * stride + q * Packet<T>::kLanes));
      a[row * width + q] = inverse ? p.swapped() : p;
    }
  return run(a, b, width);
}

template <class T>
void Passes<T>::run_columns(const T* in, T* out, int64_t stride, bool inverse, T factor,
                            Packet<T>* a, Packet<T>* b) const {
  if (passes_.size() > 1 && passes_[0].from_pairs[inverse] && passes_.back().to_pairs[inverse]) {
    const Pass &first = passes_[0], &last = passes_.back();
    first.from_pairs[inverse](nullptr, a, first.m, 1, roots_.data() + first.roots, first.radix,
                              {in, nullptr, 2 * stride, T(1)});
    int64_t s = first.radix;
    run_passes(1, passes_.size() - 1, a, b, s);
    return last.to_pairs[inverse](a, nullptr, last.m, s, roots_.data() + last.roots, last.radix,
                                  {nullptr, out, 2 * stride, factor});
  }
  const Packet<T>* made = run_from(in, stride, inverse, a, b, 1);
  for (int64_t row = 0; row < n_; ++row) {
    const Packet<T> p = factor * made[row];
    store_pairs(out + 2 * row * stride, inverse ? p.swapped() : p);
  }
}

template <class T>
void chirp_of(int64_t n, int64_t length, std::vector<T>& chirp, std::vector<T>& spectrum) {
  const Roots root(2 * n);
  // In double, whatever T is: the transform of the chirp takes part in every product.
  constexpr int kLanes = Packet<double>::kLanes;
  std::vector<Packet<double>> a(static_cast<size_t>(length)), b(static_cast<size_t>(length));
  for (int64_t k = 0; k < n; ++k) {
    const auto square =
        static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) %
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
