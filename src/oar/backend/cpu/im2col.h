// The columns of a convolution: row (channel, ky, kx), column (oy, ox) holds the pixel that this
// place of the kernel meets at this place of the result; zeros outside the image.
#pragma once

#include <algorithm>
#include <cstdint>

#include "oar/backend/cpu/gemm.h"

namespace oar::cpu {

// Arithmetic in which integers wrap.
template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
T plus_product(T sum, T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(sum) +
                          static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return sum + a * b;
}

struct ConvShape {
  int64_t batch, groups;
  int64_t channels, height, width;              // of the input, per group
  int64_t out_channels, out_height, out_width;  // of the result, per group
  int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t top, left;  // padding; may be negative for a gradient

  int64_t plane() const { return height * width; }
  int64_t pixels() const { return out_height * out_width; }
  int64_t taps() const { return kernel_h * kernel_w; }
  int64_t depth() const { return channels * taps(); }
  // The columns are the image itself.
  bool is_pointwise() const {
    return taps() == 1 && stride_h == 1 && stride_w == 1 && top == 0 && left == 0 &&
           height == out_height && width == out_width;
  }
};

// Places [first, second) of an axis of the result whose tap lies inside the input.
inline std::pair<int64_t, int64_t> inside(int64_t size, int64_t out_size, int64_t stride,
                                          int64_t offset) {
  const auto ceil_at = [&](int64_t edge) {  // least i with i * stride + offset >= edge
    const int64_t distance = edge - offset;
    return distance <= 0 ? int64_t{0} : (distance + stride - 1) / stride;
  };
  const int64_t begin = std::min(ceil_at(0), out_size);
  return {begin, std::clamp(ceil_at(size), begin, out_size)};
}

// Entries [first, first + count) of one row of the columns.
template <class T>
void im2col_row(const ConvShape& s, const T* plane, int64_t ky, int64_t kx, int64_t first,
                int64_t count, T* to) {
  const int64_t x_offset = kx * s.dilation_w - s.left;
  const auto [x_begin, x_end] = inside(s.width, s.out_width, s.stride_w, x_offset);
  int64_t oy = first / s.out_width, ox = first % s.out_width;
  while (count > 0) {
    const int64_t run = std::min(count, s.out_width - ox);
    const int64_t iy = oy * s.stride_h + ky * s.dilation_h - s.top;
    const bool visible = iy >= 0 && iy < s.height;
    const int64_t begin = visible ? std::clamp(x_begin, ox, ox + run) : ox + run;
    const int64_t end = visible ? std::clamp(x_end, begin, ox + run) : begin;
    const T* line = plane + iy * s.width + x_offset;
    std::fill(to, to + (begin - ox), T(0));
    if (s.stride_w == 1)
      std::copy(line + begin, line + end, to + (begin - ox));
    else
      for (int64_t x = begin; x < end; ++x) to[x - ox] = line[x * s.stride_w];
    std::fill(to + (end - ox), to + run, T(0));
    to += run;
    count -= run;
    ox = 0;
    ++oy;
  }
}

// All of them, depth x pixels.
template <class T>
void im2col(const ConvShape& s, const T* image, T* columns) {
  for (int64_t row = 0; row < s.depth(); ++row) {
    const int64_t tap = row % s.taps();
    im2col_row(s, image + row / s.taps() * s.plane(), tap / s.kernel_w, tap % s.kernel_w, 0,
               s.pixels(), columns + row * s.pixels());
  }
}

// Adds columns back to the pixels they were taken from: channels [begin, end) of the image.
template <class T>
void col2im(const ConvShape& s, const T* columns, int64_t begin, int64_t end, T* image) {
  for (int64_t c = begin; c < end; ++c) {
    T* plane = image + c * s.plane();
    std::fill(plane, plane + s.plane(), T(0));
    for (int64_t tap = 0; tap < s.taps(); ++tap) {
      const int64_t ky = tap / s.kernel_w, kx = tap % s.kernel_w;
      const int64_t x_offset = kx * s.dilation_w - s.left;
      const auto [x_begin, x_end] = inside(s.width, s.out_width, s.stride_w, x_offset);
      const auto [y_begin, y_end] =
          inside(s.height, s.out_height, s.stride_h, ky * s.dilation_h - s.top);
      for (int64_t oy = y_begin; oy < y_end; ++oy) {
        const T* from = columns + (c * s.taps() + tap) * s.pixels() + oy * s.out_width;
        T* to = plane + (oy * s.stride_h + ky * s.dilation_h - s.top) * s.width + x_offset;
        for (int64_t x = x_begin; x < x_end; ++x)
          to[x * s.stride_w] = plus(to[x * s.stride_w], from[x]);
      }
    }
  }
}

}  // namespace oar::cpu
