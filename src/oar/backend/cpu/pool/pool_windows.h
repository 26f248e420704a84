// The windows of a pooling, axis by axis, and the images they slide over.
#pragma once

#include <algorithm>

#include "oar/backend/cpu/loops/loops.h"
#include "oar/base/small_vector.h"

namespace oar::cpu {

// A window along one axis, cut off at the image; `extent` counts padding too.
struct Span {
  int64_t begin = 0, end = 1, extent = 1;
  int64_t size() const { return end - begin; }
};
using Spans = SmallVector<Span, 32>;

inline Spans sliding_spans(int64_t size, int64_t count, int64_t window, int64_t stride,
                           int64_t before, int64_t after) {
  Spans spans;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = i * stride - before;
    const int64_t stop = std::min(start + window, size + after);
    const int64_t begin = std::clamp<int64_t>(start, 0, size);
    spans.push_back({begin, std::clamp(stop, begin, size), stop - start});
  }
  return spans;
}

inline Spans adaptive_spans(int64_t size, int64_t count) {
  Spans spans;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
    spans.push_back({begin, end, end - begin});
  }
  return spans;
}

// Windows at positions derived from u, in Paddle's float32 arithmetic. A window of size 0 ends where
// the next one starts.
inline Spans fractional_spans(int64_t size, int64_t count, int64_t window, float u) {
  const auto steps = static_cast<float>(window > 0 ? count - 1 : count);
  const float alpha = steps > 0 ? static_cast<float>(size - window) / steps : 0.0f;
  if (window == 0) {
    const int64_t base = size / count;
    u *= std::min(static_cast<float>(base + 2) / alpha - 1,
                  static_cast<float>(size + 1 - base) / alpha - static_cast<float>(count - 1));
  }
  const auto at = [&](int64_t i) {
    return static_cast<int64_t>((static_cast<float>(i) + u) * alpha) -
           static_cast<int64_t>(u * alpha);
  };
  Spans spans;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = at(i), end = std::min(window > 0 ? begin + window : at(i + 1), size);
    spans.push_back({begin, end, end - begin});
  }
  return spans;
}

// Neighbouring windows of one size at equal distances, which one loop can process together.
struct Run {
  int64_t first, count;  // of the windows
  int64_t begin, step, size;
};
using Runs = SmallVector<Run, 8>;

inline Runs runs_of(const Spans& spans) {
  Runs runs;
  const auto count = static_cast<int64_t>(spans.size());
  for (int64_t i = 0; i < count;) {
    const Span& first = spans[static_cast<size_t>(i)];
    const int64_t step =
        i + 1 < count ? spans[static_cast<size_t>(i) + 1].begin - first.begin : int64_t{1};
    int64_t n = 1;
    while (i + n < count && spans[static_cast<size_t>(i + n)].size() == first.size() &&
           spans[static_cast<size_t>(i + n)].begin == first.begin + n * step)
      ++n;
    runs.push_back({i, n, first.begin, step, first.size()});
    i += n;
  }
  return runs;
}

// Images with three spatial axes, the leading ones of size 1 if there are fewer. A piece of work is
// one plane, or with channels last one image.
struct Windows {
  int64_t pieces, channels;  // adjacent channels: 1 unless they are last
  int64_t size[3] = {1, 1, 1};
  Spans spans[3] = {{Span{}}, {Span{}}, {Span{}}};

  // spans_of(i, size, count) for every spatial axis.
  template <class SpansOf>
  Windows(const oar_tensor& image, const oar_tensor& out, bool channels_last, SpansOf spans_of)
      : pieces(channels_last ? image.shape[0] : image.shape[0] * image.shape[1]),
        channels(channels_last ? image.shape[image.ndim - 1] : 1) {
    const int spatial = image.ndim - 2, first = channels_last ? 1 : 2;
    for (int i = 0; i < spatial; ++i) {
      size[3 - spatial + i] = image.shape[first + i];
      spans[3 - spatial + i] = spans_of(i, image.shape[first + i], out.shape[first + i]);
    }
  }

  int64_t pixels() const { return size[0] * size[1] * size[2]; }
  int64_t count() const {
    return static_cast<int64_t>(spans[0].size() * spans[1].size() * spans[2].size());
  }
  // body(piece, begin, end): channels [begin, end) of a piece. Cut by shape, never by threads.
  template <class Body>
  void for_each_piece(Body&& body) const {
    constexpr int64_t kChannels = 64;
    const int64_t parts = (channels + kChannels - 1) / kChannels;
    const int64_t work =
        std::max<int64_t>(1, std::max(pixels(), count()) * std::min(channels, kChannels));
    parallel_for(0, pieces * parts, std::max<int64_t>(1, kGrain / 4 / work),
                 [&](int64_t first, int64_t last) {
                   for (int64_t p = first; p < last; ++p) {
                     const int64_t begin = p % parts * kChannels;
                     body(p / parts, begin, std::min(begin + kChannels, channels));
                   }
                 });
  }
  // body(index of the first window of a row, z span, y span) for every row of the result.
  template <class Body>
  void for_each_row(Body&& body) const {
    int64_t at = 0;
    for (const Span& z : spans[0])
      for (const Span& y : spans[1]) {
        body(at, z, y);
        at += static_cast<int64_t>(spans[2].size());
      }
  }
  // body(row) for every row of the image between two spans.
  template <class Body>
  void for_each_line(const Span& z, const Span& y, Body&& body) const {
    for (int64_t i = z.begin; i < z.end; ++i)
      for (int64_t j = y.begin; j < y.end; ++j) body(i * size[1] + j);
  }
};

// Arguments from `first` on: kernel_size, stride, padding.
inline Windows sliding_windows(const KernelCall& call, int first, const oar_tensor& image,
                               const oar_tensor& out, bool channels_last) {
  const Ints window = call.arg(first).as_ints(), stride = call.arg(first + 1).as_ints();
  const Ints padding = call.arg(first + 2).as_ints();
  return {image, out, channels_last, [&](int axis, int64_t size, int64_t count) {
            const auto i = static_cast<size_t>(axis);
            return sliding_spans(size, count, window[i], stride[i], padding[2 * i],
                                 padding[2 * i + 1]);
          }};
}
inline Windows adaptive_windows(const oar_tensor& image, const oar_tensor& out,
                                bool channels_last) {
  return {image, out, channels_last,
          [](int, int64_t size, int64_t count) { return adaptive_spans(size, count); }};
}

}  // namespace oar::cpu
