// The largest elements of windows, and their indices.
#pragma once

#include <limits>

#include "oar/backend/cpu/loops/scratch.h"
#include "oar/backend/cpu/pool/pool_windows.h"

namespace oar::cpu {

// The lowest finite value of a dtype: what a window without pixels returns, as in Paddle.
template <class C>
C lowest_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return static_cast<C>(-65504);
    case DType::BFloat16:
      return static_cast<C>(-0x1.fep127);
    case DType::Float8E4M3FN:
      return static_cast<C>(-448);
    case DType::Float8E5M2:
      return static_cast<C>(-57344);
    case DType::UInt8:
      return 0;
    case DType::Int8:
      return static_cast<C>(INT8_MIN);
    case DType::Int16:
      return static_cast<C>(INT16_MIN);
    case DType::Int32:
      return static_cast<C>(INT32_MIN);
    default:
      return std::numeric_limits<C>::lowest();
  }
}

// Does v replace best? NaN is larger than anything, and the first one stays.
template <class C>
bool beats(C v, C best) {
  return static_cast<bool>(static_cast<int>(!(v <= best)) & static_cast<int>(best == best));
}

// Compares best[i] with from[i * kStep], which has the index place + i * place_step. There are no branches,
// since it is unpredictable which element wins.
template <int kStep, class C>
void meet_with_step(const C* __restrict from, int64_t step, int64_t n, int32_t place,
                    int32_t place_step, C* __restrict best, int32_t* __restrict at) {
  if constexpr (kStep != 0) step = kStep;
  for (int64_t i = 0; i < n; ++i) {
    const C v = from[i * step];
    const bool better = beats(v, best[i]);
    best[i] = better ? v : best[i];
    at[i] = better ? place + static_cast<int32_t>(i) * place_step : at[i];
  }
}
template <class C>
void meet(const C* from, int64_t step, int64_t n, int32_t place, int32_t place_step, C* best,
          int32_t* at) {
  if (step == 1) return meet_with_step<1>(from, step, n, place, place_step, best, at);
  if (step == 2) return meet_with_step<2>(from, step, n, place, place_step, best, at);
  meet_with_step<0>(from, step, n, place, place_step, best, at);
}

// The same for the first two: a[i * kStep] against b[i * kStep].
template <int kStep, class C>
void meet_first_with_step(const C* __restrict a, const C* __restrict b, int64_t step, int64_t n,
                          int32_t place_a, int32_t place_b, int32_t place_step, C* __restrict best,
                          int32_t* __restrict at) {
  if constexpr (kStep != 0) step = kStep;
  for (int64_t i = 0; i < n; ++i) {
    const C first = a[i * step], second = b[i * step];
    const bool better = beats(second, first);
    best[i] = better ? second : first;
    at[i] = (better ? place_b : place_a) + static_cast<int32_t>(i) * place_step;
  }
}
template <class C>
void meet_first(const C* a, const C* b, int64_t step, int64_t n, int32_t place_a, int32_t place_b,
                int32_t place_step, C* best, int32_t* at) {
  if (step == 1)
    return meet_first_with_step<1>(a, b, step, n, place_a, place_b, place_step, best, at);
  if (step == 2)
    return meet_first_with_step<2>(a, b, step, n, place_a, place_b, place_step, best, at);
  meet_first_with_step<0>(a, b, step, n, place_a, place_b, place_step, best, at);
}

// One window's part of a row. A long part is first reduced as a whole, lane by lane; only a row that
// wins is searched.
template <class C>
void meet_span(const C* from, int64_t n, int32_t place, C& best, int32_t& at) {
  constexpr int64_t kLanes = 16;
  if (n >= 2 * kLanes) {
    C lanes[kLanes];
    std::copy(from, from + kLanes, lanes);
    int64_t i = kLanes;
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l)
        lanes[l] = beats(from[i + l], lanes[l]) ? from[i + l] : lanes[l];
    C top = lanes[0];
    for (int64_t l = 1; l < kLanes; ++l) top = beats(lanes[l], top) ? lanes[l] : top;
    for (; i < n; ++i) top = beats(from[i], top) ? from[i] : top;
    if (!beats(top, best)) return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const bool better = beats(from[i], best);
    best = better ? from[i] : best;
    at = better ? place + static_cast<int32_t>(i) : at;
  }
}

// The index of a window's first element; -1 if the window is entirely in the padding.
inline int64_t first_pixel(const Windows& w, const Span& z, const Span& y, const Span& x) {
  if (z.size() == 0 || y.size() == 0 || x.size() == 0) return -1;
  return (z.begin * w.size[1] + y.begin) * w.size[2] + x.begin;
}

// Compares best[i], with index at[i], with from[i * kStep], with index places[i * kStep]. Of equal
// elements the first one wins.
template <int kStep, class C>
void join_with_step(const C* __restrict from, const int32_t* __restrict places, int64_t step,
                    int64_t n, C* __restrict best, int32_t* __restrict at) {
  if constexpr (kStep != 0) step = kStep;
  for (int64_t i = 0; i < n; ++i) {
    const C v = from[i * step], b = best[i];
    const int32_t place = places[i * step], old = at[i];
    const int alike =
        static_cast<int>(v == b) | (static_cast<int>(v != v) & static_cast<int>(b != b));
    const bool better =
        (static_cast<int>(beats(v, b)) | (alike & static_cast<int>(place < old))) != 0;
    best[i] = better ? v : b;
    at[i] = better ? place : old;
  }
}
template <class C>
void join(const C* from, const int32_t* places, int64_t step, int64_t n, C* best, int32_t* at) {
  if (step == 1) return join_with_step<1>(from, places, step, n, best, at);
  if (step == 2) return join_with_step<2>(from, places, step, n, best, at);
  join_with_step<0>(from, places, step, n, best, at);
}

// to[i] = from[i * step].
template <class E>
void take(const E* __restrict from, int64_t step, int64_t n, E* __restrict to) {
  if (step == 2)
    for (int64_t i = 0; i < n; ++i) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * step];
}

// Windows over one line that starts at `start`.
template <class C>
void max_of_line(const Run& run, const C* line, int32_t start, C* best, int32_t* at) {
  const C* from = line + run.begin;
  start += static_cast<int32_t>(run.begin);
  const auto step = static_cast<int32_t>(run.step);
  if (run.count >= 4 && run.size > 1 && run.size <= 32) {
    meet_first(from, from + 1, run.step, run.count, start, start + 1, step, best, at);
    for (int32_t k = 2; k < run.size; ++k)
      meet(from + k, run.step, run.count, start + k, step, best, at);
    return;
  }
  take(from, run.step, run.count, best);
  for (int32_t i = 0; i < run.count; ++i) at[i] = start + i * step;
  for (int32_t i = 0; i < run.count; ++i)
    meet_span(from + i * step, run.size, start + i * step, best[i], at[i]);
}

// A row of windows over a plane: the largest of each column first, then those of neighbours.
template <class C>
void max_row(const Windows& w, const Runs& runs, const C* plane, const Span& z, const Span& y,
             C lowest, C* column, int32_t* places, C* best, int32_t* at) {
  const int64_t width = w.size[2], lines = z.size() * y.size();
  const int64_t first = z.begin * w.size[1] + y.begin;
  if (lines > 1) {
    int64_t met = 0;
    w.for_each_line(z, y, [&](int64_t line) {
      const C* from = plane + line * width;
      const auto place = static_cast<int32_t>(line * width);
      if (met == 1)
        meet_first(plane + first * width, from, 1, width, static_cast<int32_t>(first * width),
                   place, 1, column, places);
      else if (met > 1)
        meet(from, 1, width, place, 1, column, places);
      ++met;
    });
  }
  for (const Run& run : runs) {
    C* to = best + run.first;
    int32_t* to_at = at + run.first;
    if (lines == 0 || run.size == 0) {  // entirely in the padding
      std::fill_n(to, run.count, lowest);
      std::fill_n(to_at, run.count, -1);
    } else if (lines == 1) {
      max_of_line(run, plane + first * width, static_cast<int32_t>(first * width), to, to_at);
    } else {
      take(column + run.begin, run.step, run.count, to);
      take(places + run.begin, run.step, run.count, to_at);
      for (int64_t k = run.begin + 1; k < run.begin + run.size; ++k)
        join(column + k, places + k, run.step, run.count, to, to_at);
    }
  }
}

// One window over adjacent channels.
template <class C>
void max_channels(const Windows& w, const C* image, const Span& z, const Span& y, const Span& x,
                  int64_t channels, C lowest, C* best, int32_t* at) {
  const int64_t pixel = first_pixel(w, z, y, x);
  std::fill_n(at, channels, static_cast<int32_t>(pixel));
  if (pixel < 0) {
    std::fill_n(best, channels, lowest);
    return;
  }
  std::copy_n(image + pixel * w.channels, channels, best);
  w.for_each_line(z, y, [&](int64_t line) {
    for (int64_t p = line * w.size[2] + x.begin; p < line * w.size[2] + x.end; ++p)
      meet(image + p * w.channels, 1, channels, static_cast<int32_t>(p), 0, best, at);
  });
}

template <class C>
void max_pool_of(const Windows& w, C lowest, const C* x, C* out, int32_t* mask) {
  const Runs runs = runs_of(w.spans[2]);
  const auto columns = static_cast<int64_t>(w.spans[2].size());
  w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
    const C* image = x + piece * w.pixels() * w.channels + begin;
    const int64_t first = piece * w.count() * w.channels + begin, n = end - begin;
    const Scratch<C> column(w.channels == 1 ? w.size[2] : 0);
    const Scratch<int32_t> places(w.channels == 1 ? w.size[2] : 0);
    w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
      if (w.channels == 1)
        return max_row(w, runs, image, z, y, lowest, column.data(), places.data(),
                       out + first + row, mask + first + row);
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t to = first + (row + i) * w.channels;
        max_channels(w, image, z, y, w.spans[2][static_cast<size_t>(i)], n, lowest, out + to,
                     mask + to);
      }
    });
  });
}

}  // namespace oar::cpu
