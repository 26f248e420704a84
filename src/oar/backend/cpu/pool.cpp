// Pooling over windows of images, and the reverse ways. Loops run over what lies side by side: windows
// of a row, or channels where they are last.
#include <cmath>
#include <limits>

#include "oar/backend/cpu/compact.h"
#include "oar/backend/cpu/pool_windows.h"
#include "oar/backend/cpu/reduce.h"

namespace oar::cpu {
namespace {

// ---- The windows of a call.

// Arguments from `first` on: kernel_size, stride, padding.
Windows sliding_windows(const KernelCall& call, int first, const oar_tensor& image,
                        const oar_tensor& out, bool channels_last) {
  const Ints window = call.arg(first).as_ints(), stride = call.arg(first + 1).as_ints();
  const Ints padding = call.arg(first + 2).as_ints();
  return {image, out, channels_last, [&](int axis, int64_t size, int64_t count) {
            const auto i = static_cast<size_t>(axis);
            return sliding_spans(size, count, window[i], stride[i], padding[2 * i],
                                 padding[2 * i + 1]);
          }};
}
Windows adaptive_windows(const oar_tensor& image, const oar_tensor& out, bool channels_last) {
  return {image, out, channels_last,
          [](int, int64_t size, int64_t count) { return adaptive_spans(size, count); }};
}
Windows fractional_windows(const KernelCall& call) {
  const double u = *static_cast<const double*>(call.in(1).data);
  user_check(u >= 0 && u <= 1, ErrorKind::InvalidArgument, "u must lie between 0 and 1, not {}.",
             u);
  return {call.in(0), call.out(), false, [&](int axis, int64_t size, int64_t count) {
            const int64_t window =
                call.has(3) ? call.arg(3).as_ints()[static_cast<size_t>(axis)] : 0;
            return fractional_spans(size, count, window, static_cast<float>(u));
          }};
}

// ---- Maxima.

// The lowest finite value: what a window without pixels answers, as in Paddle.
template <class T>
compute_t<T> lowest() {
  if constexpr (std::is_same_v<T, float16>)
    return -65504.0f;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return -0x1.fep127f;
  else if constexpr (std::is_same_v<T, float8_e4m3fn>)
    return -448.0f;
  else if constexpr (std::is_same_v<T, float8_e5m2>)
    return -57344.0f;
  else
    return std::numeric_limits<T>::lowest();
}

// Does v take the place of best? NaN is larger than anything, and the first one stays.
template <class C>
bool beats(C v, C best) {
  return static_cast<bool>(static_cast<int>(!(v <= best)) & static_cast<int>(best == best));
}

// best[i] against from[i * kStep], which stands at place + i * place_step. There are no branches, since
// which element wins cannot be predicted.
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

// One window's part of a row. A long part is first looked at as a whole, lane by lane; only a row that
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

// The place of a window's first element; -1 where the window lies wholly in the padding.
int64_t first_pixel(const Windows& w, const Span& z, const Span& y, const Span& x) {
  if (z.size() == 0 || y.size() == 0 || x.size() == 0) return -1;
  return (z.begin * w.size[1] + y.begin) * w.size[2] + x.begin;
}

// A row of windows over a plane.
template <class T, class C>
void max_row(const Windows& w, const Runs& runs, const C* plane, const Span& z, const Span& y,
             C* best, int32_t* at) {
  const Spans& columns = w.spans[2];
  for (size_t i = 0; i < columns.size(); ++i) {
    const int64_t pixel = first_pixel(w, z, y, columns[i]);
    best[i] = pixel < 0 ? lowest<T>() : plane[pixel];
    at[i] = static_cast<int32_t>(pixel);
  }
  w.for_each_line(z, y, [&](int64_t line) {
    const C* row = plane + line * w.size[2];
    const auto start_of_row = static_cast<int32_t>(line * w.size[2]);
    for (const Run& run : runs) {
      const auto begin = static_cast<int32_t>(run.begin);
      if (run.count >= 4 && run.size <= 32) {
        for (int32_t k = 0; k < run.size; ++k)
          meet(row + begin + k, run.step, run.count, start_of_row + begin + k,
               static_cast<int32_t>(run.step), best + run.first, at + run.first);
        continue;
      }
      for (int64_t i = 0; i < run.count; ++i) {
        const int64_t from = run.begin + i * run.step;
        meet_span(row + from, run.size, start_of_row + static_cast<int32_t>(from),
                  best[run.first + i], at[run.first + i]);
      }
    }
  });
}

// One window over channels that lie side by side.
template <class T, class C>
void max_channels(const Windows& w, const C* image, const Span& z, const Span& y, const Span& x,
                  int64_t channels, C* best, int32_t* at) {
  const int64_t pixel = first_pixel(w, z, y, x);
  std::fill_n(at, channels, static_cast<int32_t>(pixel));
  if (pixel < 0) {
    std::fill_n(best, channels, lowest<T>());
    return;
  }
  std::copy_n(image + pixel * w.channels, channels, best);
  w.for_each_line(z, y, [&](int64_t line) {
    for (int64_t p = line * w.size[2] + x.begin; p < line * w.size[2] + x.end; ++p)
      meet(image + p * w.channels, 1, channels, static_cast<int32_t>(p), 0, best, at);
  });
}

template <class T>
void max_pool_of(const Windows& w, const compute_t<T>* x, T* out, int32_t* mask) {
  using C = compute_t<T>;
  const Runs runs = runs_of(w.spans[2]);
  const auto columns = static_cast<int64_t>(w.spans[2].size());
  w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
    const C* image = x + piece * w.pixels() * w.channels + begin;
    const int64_t first = piece * w.count() * w.channels + begin, n = end - begin;
    const Scratch<C> best(std::max(columns, n));
    w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
      if (w.channels == 1) {
        max_row<T>(w, runs, image, z, y, best.data(), mask + first + row);
        for (int64_t i = 0; i < columns; ++i) out[first + row + i] = static_cast<T>(best[i]);
        return;
      }
      for (int64_t i = 0; i < columns; ++i) {
        const int64_t to = first + (row + i) * w.channels;
        max_channels<T>(w, image, z, y, w.spans[2][static_cast<size_t>(i)], n, best.data(),
                        mask + to);
        for (int64_t c = 0; c < n; ++c) out[to + c] = static_cast<T>(best[c]);
      }
    });
  });
}

void max_pool_over(KernelCall& call, const Windows& w) {
  user_check(w.pixels() <= std::numeric_limits<int32_t>::max(), ErrorKind::InvalidArgument,
             "an image of {} x {} x {} has more pixels than its mask can number.", w.size[0],
             w.size[1], w.size[2]);
  visit<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    max_pool_of<T>(w, x.data(), static_cast<T*>(call.out(0).data),
                   static_cast<int32_t*>(call.out(1).data));
  });
}

void max_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool_over(call, sliding_windows(call, 1, call.in(0), call.out(), call.arg(5).as_bool()));
}
void adaptive_max_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool_over(call, adaptive_windows(call.in(0), call.out(), call.arg(2).as_bool()));
}
void fractional_max_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool_over(call, fractional_windows(call));
}

// ---- The pixels that a mask names.

// body(place among the pixels of all images, place in the mask), one plane's in the mask's order.
template <class Body>
void for_each_named(const oar_tensor& mask, const int32_t* places, const oar_tensor& image,
                    bool channels_last, Body&& body) {
  const Windows w(image, mask, channels_last,
                  [](int, int64_t, int64_t count) { return adaptive_spans(1, count); });
  const int64_t pixels = w.pixels(), count = w.count();
  w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
    for (int64_t i = piece * count; i < (piece + 1) * count; ++i)
      for (int64_t c = begin; c < end; ++c) {
        const int64_t at = i * w.channels + c;
        if (places[at] == -1) continue;
        user_check(places[at] >= 0 && places[at] < pixels, ErrorKind::OutOfRange,
                   "the mask names pixel {} of an image with {} pixels.", places[at], pixels);
        body((piece * pixels + places[at]) * w.channels + c, at);
      }
  });
}

void max_pool_scatter(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Copied<int32_t> mask(call.in(1));
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    std::fill(result.data(), result.data() + call.out().numel, compute_t<T>(0));
    for_each_named(call.in(1), mask.data(), call.out(), call.arg(3).as_bool(),
                   [&](int64_t pixel, int64_t i) {
                     compute_t<T>& to = result.data()[pixel];
                     to = static_cast<compute_t<T>>(to + grad.data()[i]);
                   });
    result.finish();
  });
}

void max_pool_gather(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Copied<int32_t> mask(call.in(1));
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Copied<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    std::fill(out, out + call.out().numel, T(0));
    for_each_named(call.in(1), mask.data(), call.in(0), call.arg(2).as_bool(),
                   [&](int64_t pixel, int64_t i) { out[i] = x.data()[pixel]; });
  });
}

// ---- Means.

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

// What a window's sum is divided by: a given number, its pixels, or its pixels and the padding.
struct Divisor {
  bool exclusive = true;
  double given = 0;

  template <class C>
  C share(C sum, const Span& z, const Span& y, const Span& x) const {
    using R = typename RealOf<C>::type;
    if (given != 0) return sum / static_cast<R>(given);
    return sum / static_cast<R>(exclusive ? z.size() * y.size() * x.size()
                                          : z.extent * y.extent * x.extent);
  }
};

template <class C>
void add_to(int64_t n, const C* __restrict from, C* __restrict to) {
  for (int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// Sums of the lines between two spans, in blocks, so that the rounding of many lines stays small.
// Answers the line itself where there is only one.
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
    if (++seen % each == 0 || seen == lines) add_to(width, block, total);
  });
  return total;
}

// sums[i] = the sum of window i of a line.
template <class C>
void sum_windows(const Spans& columns, const Runs& runs, const C* line, C* sums) {
  for (const Run& run : runs) {
    C* to = sums + run.first;
    if (run.size > 32 || run.count < 4) {
      for (int64_t i = 0; i < run.count; ++i) {
        const Span& x = columns[static_cast<size_t>(run.first + i)];
        to[i] = sum_of<C>(x.size(), [&](int64_t k) { return line[x.begin + k]; });
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

template <class T>
void average_of(const Windows& w, const Divisor& divisor, const compute_t<T>* x, T* out) {
  using C = compute_t<T>;
  const Runs runs = runs_of(w.spans[2]);
  const auto columns = static_cast<int64_t>(w.spans[2].size());
  w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
    const C* image = x + piece * w.pixels() * w.channels + begin;
    const int64_t first = piece * w.count() * w.channels + begin, n = end - begin;
    const int64_t room = std::max({columns, n, w.channels == 1 ? w.size[2] : 0});
    const Scratch<C> total(room), part(room);
    w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
      if (w.channels == 1) {
        const C* line = sum_lines(w, image, z, y, total.data(), part.data());
        sum_windows(w.spans[2], runs, line, part.data());
        for (int64_t i = 0; i < columns; ++i)
          out[first + row + i] =
              static_cast<T>(divisor.share(part[i], z, y, w.spans[2][static_cast<size_t>(i)]));
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
        for (int64_t k = 0; k < n; ++k) to[k] = static_cast<T>(divisor.share(total[k], z, y, c));
      }
    });
  });
}

// Every window's cotangent, divided, goes to each of its pixels: first along the line, then to the lines.
template <class C>
void spread_plane(const Windows& w, const Divisor& divisor, const Runs& runs, const C* grad,
                  C* plane, C* line, C* shares) {
  const int64_t width = w.size[2];
  const int64_t lines = w.size[0] * w.size[1];
  const Scratch<bool> written(lines);
  std::fill_n(written.data(), lines, false);
  w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
    std::fill_n(line, width, C(0));
    const Spans& columns = w.spans[2];
    for (size_t i = 0; i < columns.size(); ++i)
      shares[i] = columns[i].size() == 0
                      ? C(0)
                      : divisor.share(grad[row + static_cast<int64_t>(i)], z, y, columns[i]);
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
void spread_channels(const Windows& w, const Divisor& divisor, const C* grad, C* image, int64_t n,
                     C* shares) {
  for (int64_t p = 0; p < w.pixels(); ++p) std::fill_n(image + p * w.channels, n, C(0));
  w.for_each_row([&](int64_t row, const Span& z, const Span& y) {
    for (const Span& x : w.spans[2]) {
      const C* from = grad + row++ * w.channels;
      if (z.size() == 0 || y.size() == 0 || x.size() == 0) continue;
      for (int64_t c = 0; c < n; ++c) shares[c] = divisor.share(from[c], z, y, x);
      w.for_each_line(z, y, [&](int64_t line) {
        for (int64_t p = line * w.size[2] + x.begin; p < line * w.size[2] + x.end; ++p)
          add_to(n, shares, image + p * w.channels);
      });
    }
  });
}

void average(KernelCall& call, const Windows& w, const Divisor& divisor) {
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    average_of<T>(w, divisor, x.data(), static_cast<T*>(call.out().data));
  });
}

void spread(KernelCall& call, const Windows& w, const Divisor& divisor) {
  const Runs runs = runs_of(w.spans[2]);
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
      const C* from = grad.data() + piece * w.count() * w.channels + begin;
      C* to = result.data() + piece * w.pixels() * w.channels + begin;
      const Scratch<C> shares(
          std::max<int64_t>(static_cast<int64_t>(w.spans[2].size()), end - begin));
      if (w.channels > 1) return spread_channels(w, divisor, from, to, end - begin, shares.data());
      const Scratch<C> line(w.size[2]);
      spread_plane(w, divisor, runs, from, to, line.data(), shares.data());
    });
    result.finish();
  });
}

// Arguments from `first` on: exclusive, divisor.
Divisor divisor_of(const KernelCall& call, int first) {
  return {call.arg(first).as_bool(), call.has(first + 1) ? call.arg(first + 1).as_double() : 0};
}

void avg_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  average(call, sliding_windows(call, 1, call.in(0), call.out(), call.arg(7).as_bool()),
          divisor_of(call, 5));
}
void avg_pool_grad(KernelCall& call) {
  if (call.out().numel == 0) return;
  spread(call, sliding_windows(call, 2, call.out(), call.in(0), call.arg(8).as_bool()),
         divisor_of(call, 6));
}
void adaptive_avg_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  average(call, adaptive_windows(call.in(0), call.out(), call.arg(2).as_bool()), {});
}
void adaptive_avg_pool_grad(KernelCall& call) {
  if (call.out().numel == 0) return;
  spread(call, adaptive_windows(call.out(), call.in(0), call.arg(2).as_bool()), {});
}

}  // namespace

KernelList pool_kernels() {
  static const oar_kernel list[] = {
      {"max_pool", 1, "cpu:ref", nullptr, kernel_entry<max_pool>},
      {"adaptive_max_pool", 1, "cpu:ref", nullptr, kernel_entry<adaptive_max_pool>},
      {"fractional_max_pool", 1, "cpu:ref", nullptr, kernel_entry<fractional_max_pool>},
      {"max_pool_scatter", 1, "cpu:ref", nullptr, kernel_entry<max_pool_scatter>},
      {"max_pool_gather", 1, "cpu:ref", nullptr, kernel_entry<max_pool_gather>},
      {"avg_pool", 1, "cpu:ref", nullptr, kernel_entry<avg_pool>},
      {"avg_pool_grad", 1, "cpu:ref", nullptr, kernel_entry<avg_pool_grad>},
      {"adaptive_avg_pool", 1, "cpu:ref", nullptr, kernel_entry<adaptive_avg_pool>},
      {"adaptive_avg_pool_grad", 1, "cpu:ref", nullptr, kernel_entry<adaptive_avg_pool_grad>},
  };
  return list;
}

}  // namespace oar::cpu
