// The means of windows, and their gradient: a window's share for each of its pixels.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "oar/backend/cpu/loops/scratch.h"
#include "oar/backend/cpu/pool/pool_windows.h"
#include "oar/backend/cpu/reduce/fold_table.h"
#include "oar/backend/cpu/reduce/reduce.h"

namespace oar::cpu {

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

template <class C>
using Real = typename RealOf<C>::type;

// The divisor of a window's sum: a given number, its pixels, or its pixels and the padding. It is a
// product of one factor for the row and one for the column. The mean of a window without a pixel is 0.
struct Divisor {
  bool exclusive = true;
  double given = 0;

  template <class R>
  R of_row(const Span& z, const Span& y) const {
    if (given != 0) return R(1);
    return at_least_one<R>(exclusive ? z.size() * y.size() : z.extent * y.extent);
  }
  template <class R>
  R of_column(const Span& x) const {
    return given != 0 ? static_cast<R>(given) : at_least_one<R>(exclusive ? x.size() : x.extent);
  }
  template <class R>
  std::vector<R> of_columns(const Spans& columns) const {
    std::vector<R> all;
    for (const Span& x : columns) all.push_back(of_column<R>(x));
    return all;
  }

 private:
  template <class R>
  static R at_least_one(int64_t count) {
    return static_cast<R>(std::max<int64_t>(count, 1));
  }
};

template <class C>
void add_to(int64_t n, const C* __restrict from, C* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// Sums of the lines between two spans, in blocks, so that the rounding of many lines stays small.
// Returns the line itself if there is only one.
template <class C>
const C* sum_lines(const Windows& w, const C* plane, const Span& z, const Span& y, C* total,
                   C* block) {
  const int64_t width = w.size[2], lines = z.size() * y.size();
  if (lines == 1) return plane + (z.begin * w.size[1] + y.begin) * width;
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(lines)));
  const int64_t each = std::max<int64_t>(64, root);
  std::fill_n(total, width, C(0));
  int64_t seen = 0;
  w.for_each_line(z, y, [&](int64_t line) {
    const C* from = plane + line * width;
    if (seen % each == 0)
      std::copy_n(from, width, block);
    else
      add_to(width, from, block);
    ++seen;
    if (seen % each == 0 || seen == lines) add_to(width, block, total);
  });
  return total;
}

template <class C>
C sum_span(const C* from, int64_t n) {
  constexpr int64_t kShort = 32;
  if (n < kShort) return std::accumulate(from, from + n, C(0));
  if constexpr (std::is_floating_point_v<C>) {
    constexpr int64_t kBlock = 8192;
    const auto run = fold_table<C>().loops[static_cast<int>(Fold::sum)].run;
    const auto leaf = [&](int64_t begin, int64_t end) {
      return run(from + begin, end - begin, 0, 1, nullptr);
    };
    return pairwise<C>(0, n, kBlock, leaf, [](C a, C b) { return a + b; });
  }
  return sum_of<C>(n, [from](int64_t i) { return from[i]; });
}

// sums[i] = the sum of window i of a line.
template <class C>
void sum_windows(const Spans& columns, const Runs& runs, const C* line, C* sums) {
  for (const Run& run : runs) {
    C* to = sums + run.first;
    if (run.size > 32 || run.count < 4) {
      for (int64_t i = 0; i < run.count; ++i) {
        const Span& x = columns[static_cast<size_t>(run.first + i)];
        to[i] = sum_span(line + x.begin, x.size());
      }
      continue;
    }
    std::fill_n(to, run.count, C(0));
    for (int64_t k = 0; k < run.size; ++k) {
      const C* from = line + run.begin + k;
      if (run.step == 1)
        add_to(run.count, from, to);
      else if (run.step == 2)
        for (int64_t i = 0; i < run.count; ++i) to[i] += from[2 * i];
      else
        for (int64_t i = 0; i < run.count; ++i) to[i] += from[i * run.step];
    }
  }
}

// Does a window consist of whole lines, one after another?
inline bool is_block(const Windows& w, const Span& z, const Span& y, const Span& x) {
  return x.size() == w.size[2] && (z.size() == 1 || y.size() == w.size[1]);
}

// The sums of a row of windows over a plane.
template <class C>
void sum_row(const Windows& w, const Runs& runs, const C* plane, const Span& z, const Span& y,
             C* line, C* sums) {
  const Spans& columns = w.spans[2];
  if (columns.size() == 1 && is_block(w, z, y, columns[0])) {
    const C* block = plane + (z.begin * w.size[1] + y.begin) * w.size[2];
    sums[0] = sum_span(block, z.size() * y.size() * w.size[2]);
    return;
  }
  sum_windows(columns, runs, sum_lines(w, plane, z, y, line, sums), sums);
}

template <class T, class C>
void divide(int64_t n, const C* __restrict sums, Real<C> row_by, const Real<C>* __restrict by,
            T* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(sums[i] / (row_by * by[i]));
}

template <class T>
void average_of(const Windows& w, const Divisor& divisor, const compute_t<T>* x, T* out) {
  using C = compute_t<T>;
  const Runs runs = runs_of(w.spans[2]);
  const auto columns = static_cast<int64_t>(w.spans[2].size());
  const std::vector<Real<C>> divisors = divisor.of_columns<Real<C>>(w.spans[2]);
  const Real<C>* by = divisors.data();
  w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
    const C* image = x + piece * w.pixels() * w.channels + begin;
    const int64_t first = piece * w.count() * w.channels + begin, n = end - begin;
    const int64_t room = std::max({columns, n, w.channels == 1 ? w.size[2] : 0});
    const Scratch<C> total(room), part(room);
    w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
      const auto row_by = divisor.of_row<Real<C>>(z, y);
      if (w.channels == 1) {
        sum_row(w, runs, image, z, y, total.data(), part.data());
        divide<T>(columns, part.data(), row_by, by, out + first + row);
        return;
      }
      for (int64_t i = 0; i < columns; ++i) {
        const Span& c = w.spans[2][static_cast<size_t>(i)];
        std::fill_n(total.data(), n, C(0));
        w.for_each_line(z, y, [&](int64_t line) {
          std::fill_n(part.data(), n, C(0));
          for (int64_t p = line * w.size[2] + c.begin; p < line * w.size[2] + c.end; ++p)
            add_to(n, image + p * w.channels, part.data());
          add_to(n, part.data(), total.data());
        });
        T* to = out + first + (row + i) * w.channels;
        for (int64_t k = 0; k < n; ++k) to[k] = static_cast<T>(total[k] / (row_by * by[i]));
      }
    });
  });
}

// Every window's cotangent, divided, goes to each of its pixels: first along the line, then to the lines.
template <class C>
void spread_plane(const Windows& w, const Divisor& divisor, const Real<C>* by, const Runs& runs,
                  const C* grad, C* plane, C* line, C* shares) {
  const int64_t width = w.size[2];
  const int64_t lines = w.size[0] * w.size[1];
  const Scratch<bool> written(lines);
  std::fill_n(written.data(), lines, false);
  w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
    std::fill_n(line, width, C(0));
    const Spans& columns = w.spans[2];
    divide(static_cast<int64_t>(columns.size()), grad + row, divisor.of_row<Real<C>>(z, y), by,
           shares);
    for (const Run& run : runs)
      for (int64_t k = 0; k < run.size; ++k) {
        C* to = line + run.begin + k;
        const C* from = shares + run.first;
        if (run.step == 1)
          add_to(run.count, from, to);
        else
          for (int64_t i = 0; i < run.count; ++i) to[i * run.step] += from[i];
      }
    w.for_each_line(z, y, [&](int64_t at) {
      if (written[at]) return add_to(width, line, plane + at * width);
      std::copy_n(line, width, plane + at * width);
      written[at] = true;
    });
  });
  for (int64_t at = 0; at < lines; ++at)
    if (!written[at]) std::fill_n(plane + at * width, width, C(0));
}

template <class C>
void spread_channels(const Windows& w, const Divisor& divisor, const Real<C>* by, const C* grad,
                     C* image, int64_t n, C* shares) {
  for (int64_t p = 0; p < w.pixels(); ++p) std::fill_n(image + p * w.channels, n, C(0));
  w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
    for (size_t i = 0; i < w.spans[2].size(); ++i) {
      const Span& x = w.spans[2][i];
      const C* from = grad + row++ * w.channels;
      const Real<C> share_by = divisor.of_row<Real<C>>(z, y) * by[i];
      for (int64_t c = 0; c < n; ++c) shares[c] = from[c] / share_by;
      w.for_each_line(z, y, [&](int64_t line) {
        for (int64_t p = line * w.size[2] + x.begin; p < line * w.size[2] + x.end; ++p)
          add_to(n, shares, image + p * w.channels);
      });
    }
  });
}

}  // namespace oar::cpu
