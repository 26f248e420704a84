#include <algorithm>
#include <cmath>

#include "oar/backend/cpu/fft/butterflies.h"
#include "oar/backend/cpu/fft/line.h"
#include "oar/backend/cpu/fft/roots.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/base/parallel.h"

namespace oar::cpu::fft {
namespace {

// From this many numbers on, a line does not stay in the cache from step to step.
inline constexpr int64_t kLarge = 1 << 14;
// Packets that are processed together in a large line: two cache lines of each row are read and written at once.
inline constexpr int64_t kGroup = 2;

// The work on a matrix of rows x columns, in arbitrary units: lanes that are not used count too.
double split_cost(int64_t rows, int64_t columns, int64_t lanes) {
  const auto filled = [lanes](int64_t count) {
    const int64_t used = (count + lanes - 1) / lanes * lanes;
    return static_cast<double>(used) / static_cast<double>(count);
  };
  const auto depth = [](int64_t count) { return 1 + std::log2(static_cast<double>(count)); };
  return filled(columns) * depth(rows) + filled(rows) * depth(columns);
}

}  // namespace

template <class T>
Line<T>::Line(int64_t n) : n_(n) {
  if (has_large_prime(n)) {
    inner_ = std::make_unique<Line>(convenient_length(2 * n - 1));
    chirp_of(n, inner_->size(), chirp_, spectrum_);
    return;
  }
  split(n);
  width_ = (columns_ + kLanes - 1) / kLanes;
  along_columns_ = std::make_unique<Passes<T>>(rows_);
  if (columns_ != kLanes) along_rows_ = std::make_unique<Passes<T>>(columns_);
  prepare_roots();
}

template <class T>
void Line<T>::split(int64_t n) {
  columns_ = 1;
  if (n <= kLarge && n % kLanes == 0) {
    columns_ = kLanes;
  } else {
    double best = split_cost(n, 1, kLanes);
    for (int64_t d = 2; d * d <= n; ++d) {
      if (n % d != 0) continue;
      for (const int64_t columns : {d, n / d}) {
        // Both sides of a large matrix must be short.
        const double uneven = n > kLarge ? 2 * std::abs(std::log2(static_cast<double>(columns)) -
                                                        0.5 * std::log2(static_cast<double>(n)))
                                         : 0;
        const double cost = split_cost(n / columns, columns, kLanes) + uneven;
        if (cost < best) best = cost, columns_ = columns;
      }
    }
  }
  rows_ = n / columns_;
}

template <class T>
void Line<T>::prepare_roots() {
  const Roots root(n_);
  const int64_t blocks = (rows_ + kLanes - 1) / kLanes;
  roots_.resize(static_cast<size_t>(blocks * columns_));
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t column = 0; column < columns_; ++column)
      for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t row = block * kLanes + lane_order<T>(lane);
        const Root w = root(row < rows_ ? row * column : 0);
        P& p = roots_[static_cast<size_t>(block * columns_ + column)];
        p.re[lane] = static_cast<T>(w.re);
        p.im[lane] = static_cast<T>(w.im);
      }
}

template <class T>
template <bool kInverse>
auto Line<T>::transform_columns(const T* in, P* a, P* b, int64_t first, int64_t count) const -> P* {
  const T* start = in + 2 * first * kLanes;
  if ((first + count) * kLanes <= columns_)
    return along_columns_->run_from(start, columns_, kInverse, a, b, count);
  // Lanes beyond the row are not used: they may hold numbers of the next row, but nothing after the last one.
  for (int64_t row = 0; row < rows_; ++row)
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = row * columns_ + c * kLanes, left = n_ - at - first * kLanes;
      T padded[2 * kLanes] = {};
      if (left < kLanes) std::copy_n(start + 2 * at, 2 * left, padded);
      const P p = load_pairs(left < kLanes ? padded : start + 2 * at);
      a[row * count + c] = kInverse ? p.swapped() : p;
    }
  return along_columns_->run(a, b, count);
}

template <class T>
template <bool kInverse>
inline void Line<T>::store(T* out, int64_t row, int64_t block, const P& p, T factor) const {
  const P scaled = factor * p, stored = kInverse ? scaled.swapped() : scaled;
  const int64_t at = block * kLanes;
  T* to = out + 2 * (row * rows_ + at);
  if (at + kLanes <= rows_) return store_pairs(to, stored);
  T padded[2 * kLanes];
  store_pairs(padded, stored);
  std::copy_n(padded, 2 * (rows_ - at), to);
}

// Squares of packets, turned and multiplied by the roots, are rows of as many lanes.
template <class T>
template <bool kInverse, bool kFull>
void Line<T>::short_rows(const P* columns, T* out, int64_t block, T factor) const {
  typename P::Vector re[kLanes], im[kLanes];
  const int64_t first = block * kLanes;
#pragma GCC unroll 8
  for (int lane = 0; lane < kLanes; ++lane) {
    const int64_t row = first + lane_order<T>(lane);
    const P& p = columns[kFull ? row : std::min(row, rows_ - 1)];
    re[lane] = p.re;
    im[lane] = p.im;
  }
  transpose_square(re);
  transpose_square(im);
  const P* w = roots_.data() + block * columns_;
  P v[kLanes];
#pragma GCC unroll 8
  for (int i = 0; i < kLanes; ++i) {
    const int column = lane_order<T>(i);
    const P turned{re[i], im[i]};
    v[column] = column == 0 ? turned : turned.times(w[column].re, w[column].im);
  }
  butterfly<kLanes, T>(v, nullptr);
  if constexpr (kFull) {
    T* to = out + 2 * first;
#pragma GCC unroll 8
    for (int k = 0; k < kLanes; ++k) {
      const P scaled = factor * v[k];
      store_pairs(to + 2 * k * rows_, kInverse ? scaled.swapped() : scaled);
    }
  } else {
    for (int k = 0; k < kLanes; ++k) store<kInverse>(out, k, block, v[k], factor);
  }
}

template <class T>
template <bool kInverse>
void Line<T>::transform_rows(const P* columns, int64_t stride, T* out, int64_t block, int64_t count,
                             T factor) const {
  Scratch<P, 16384> memory(2 * columns_ * count);
  P *a = memory.data(), *b = a + columns_ * count;
  for (int64_t g = 0; g < count; ++g) {
    const P* w = roots_.data() + (block + g) * columns_;
    for (int64_t c = 0; c < width_; ++c) {
      typename P::Vector re[kLanes], im[kLanes];
      for (int lane = 0; lane < kLanes; ++lane) {
        const int64_t row = std::min((block + g) * kLanes + lane_order<T>(lane), rows_ - 1);
        re[lane] = columns[row * stride + c].re;
        im[lane] = columns[row * stride + c].im;
      }
      transpose_square(re);
      transpose_square(im);
      for (int i = 0; i < kLanes; ++i) {
        const int64_t column = c * kLanes + lane_order<T>(i);
        if (column < columns_)
          a[column * count + g] = P{re[i], im[i]}.times(w[column].re, w[column].im);
      }
    }
  }
  const P* made = along_rows_->run(a, b, count);
  for (int64_t k = 0; k < columns_; ++k)
    for (int64_t g = 0; g < count; ++g)
      store<kInverse>(out, k, block + g, made[k * count + g], factor);
}

template <class T>
template <bool kInverse>
void Line<T>::run_as(const T* in, T* out, T factor) const {
  if (inner_) return run_chirp<kInverse>(in, out, factor);
  if (n_ > kLarge) return run_large<kInverse>(in, out, factor);
  Scratch<P, 16384> memory(2 * rows_ * width_);
  const P* made =
      transform_columns<kInverse>(in, memory.data(), memory.data() + rows_ * width_, 0, width_);
  const int64_t blocks = (rows_ + kLanes - 1) / kLanes, whole = rows_ / kLanes;
  if (columns_ == kLanes) {
    for (int64_t block = 0; block < whole; ++block)
      short_rows<kInverse, true>(made, out, block, factor);
    if (whole < blocks) short_rows<kInverse, false>(made, out, whole, factor);
  } else {
    for (int64_t block = 0; block < blocks; ++block)
      transform_rows<kInverse>(made, width_, out, block, 1, factor);
  }
}

template <class T>
template <bool kInverse>
void Line<T>::run_large(const T* in, T* out, T factor) const {
  Scratch<P, 64> turned(rows_ * width_);
  const auto groups = [](int64_t count) { return (count + kGroup - 1) / kGroup; };
  parallel_for(0, groups(width_), 1, [&](int64_t begin, int64_t end) {
    Scratch<P, 64> memory(2 * rows_ * kGroup);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kGroup, count = std::min(kGroup, width_ - first);
      const P* made = transform_columns<kInverse>(in, memory.data(), memory.data() + rows_ * count,
                                                  first, count);
      for (int64_t row = 0; row < rows_; ++row)
        std::copy_n(made + row * count, count, turned.data() + row * width_ + first);
    }
  });
  const int64_t blocks = (rows_ + kLanes - 1) / kLanes;
  parallel_for(0, groups(blocks), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group)
      transform_rows<kInverse>(turned.data(), width_, out, group * kGroup,
                               std::min(kGroup, blocks - group * kGroup), factor);
  });
}

namespace {

// to[k] = x[k] * w[k] for pairs; the parts of x, or of the product, exchanged.
template <bool kSwapBefore, bool kSwapAfter, class T>
void multiply_pairs(const T* x, const T* w, T* to, int64_t n, T factor) {
  constexpr int64_t kLanes = Packet<T>::kLanes;
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    const Packet<T> p = load_pairs(x + 2 * k), by = load_pairs(w + 2 * k),
                    made = factor * (kSwapBefore ? p.swapped() : p).times(by.re, by.im);
    store_pairs(to + 2 * k, kSwapAfter ? made.swapped() : made);
  }
  for (; k < n; ++k) {
    const T re = x[2 * k + kSwapBefore], im = x[2 * k + !kSwapBefore], c = w[2 * k],
            s = w[2 * k + 1];
    to[2 * k + kSwapAfter] = factor * (re * c - im * s);
    to[2 * k + !kSwapAfter] = factor * (re * s + im * c);
  }
}

}  // namespace

template <class T>
template <bool kInverse>
void Line<T>::run_chirp(const T* in, T* out, T factor) const {
  const int64_t length = inner_->size();
  Scratch<T, 16384> memory(2 * length);
  T* a = memory.data();
  multiply_pairs<kInverse, false>(in, chirp_.data(), a, n_, T(1));
  std::fill_n(a + 2 * n_, 2 * (length - n_), T(0));
  inner_->run(a, a, false, T(1));
  multiply_pairs<false, false>(a, spectrum_.data(), a, length, T(1));
  inner_->run(a, a, true, T(1));
  multiply_pairs<false, kInverse>(a, chirp_.data(), out, n_, factor);
}

template <class T>
void Line<T>::run(const T* in, T* out, bool inverse, T factor) const {
  if (inverse)
    run_as<true>(in, out, factor);
  else
    run_as<false>(in, out, factor);
}

template <class T>
size_t Line<T>::bytes() const {
  return roots_.size() * sizeof(P) + (chirp_.size() + spectrum_.size()) * sizeof(T) +
         (along_columns_ ? along_columns_->bytes() : 0) + (along_rows_ ? along_rows_->bytes() : 0) +
         (inner_ ? inner_->bytes() : 0);
}

template class Line<float>;
template class Line<double>;

}  // namespace oar::cpu::fft
