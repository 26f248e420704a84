// The columns of a convolution: row (channel, tap), column (position in the result) holds the pixel that
// this tap of the kernel reads for this element of the result; zeros outside the image. Images have three
// spatial axes here, the leading ones of size 1 if there are fewer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "oar/backend/cpu/gemm/gemm.h"

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

struct ConvAxis {
  int64_t size = 1, out = 1;  // of the input and the result
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0;  // padding; may be negative for a gradient

  int64_t offset(int64_t tap) const { return tap * dilation - before; }
  // Positions [first, second) of the result whose tap is inside the input.
  std::pair<int64_t, int64_t> inside(int64_t tap) const {
    const auto ceil_at = [&](int64_t edge) {  // least i with i * stride + offset >= edge
      const int64_t distance = edge - offset(tap);
      return distance <= 0 ? int64_t{0} : (distance + stride - 1) / stride;
    };
    const int64_t begin = std::min(ceil_at(0), out);
    return {begin, std::clamp(ceil_at(size), begin, out)};
  }
  bool is_pointwise() const { return kernel == 1 && stride == 1 && before == 0 && size == out; }
};

struct ConvShape {
  int64_t batch, groups;
  int64_t channels, out_channels;  // per group
  ConvAxis z, y, x;

  int64_t plane() const { return z.size * y.size * x.size; }
  int64_t pixels() const { return z.out * y.out * x.out; }
  int64_t taps() const { return z.kernel * y.kernel * x.kernel; }
  int64_t depth() const { return channels * taps(); }
  // The columns are the image itself.
  bool is_pointwise() const { return z.is_pointwise() && y.is_pointwise() && x.is_pointwise(); }
  bool has_steps() const { return z.stride != 1 || y.stride != 1 || x.stride != 1; }
};

// A position in the kernel.
struct Tap {
  int64_t z, y, x;
  Tap(const ConvShape& s, int64_t index)
      : z(index / s.x.kernel / s.y.kernel),
        y(index / s.x.kernel % s.y.kernel),
        x(index % s.x.kernel) {}
};

// Entries [first, first + count) of one row of the columns.
template <class T>
void im2col_row(const ConvShape& s, const T* plane, const Tap& tap, int64_t first, int64_t count,
                T* to) {
  const int64_t x_offset = s.x.offset(tap.x);
  const auto [x_begin, x_end] = s.x.inside(tap.x);
  int64_t ox = first % s.x.out, oy = first / s.x.out % s.y.out, oz = first / s.x.out / s.y.out;
  while (count > 0) {
    const int64_t run = std::min(count, s.x.out - ox);
    const int64_t iz = oz * s.z.stride + s.z.offset(tap.z);
    const int64_t iy = oy * s.y.stride + s.y.offset(tap.y);
    const bool visible = iz >= 0 && iz < s.z.size && iy >= 0 && iy < s.y.size;
    const int64_t begin = visible ? std::clamp(x_begin, ox, ox + run) : ox + run;
    const int64_t end = visible ? std::clamp(x_end, begin, ox + run) : begin;
    const T* line = plane + (iz * s.y.size + iy) * s.x.size + x_offset;
    std::fill(to, to + (begin - ox), T{});
    if (s.x.stride == 1)
      std::copy(line + begin, line + end, to + (begin - ox));
    else
      for (int64_t x = begin; x < end; ++x) to[x - ox] = line[x * s.x.stride];
    std::fill(to + (end - ox), to + run, T{});
    to += run;
    count -= run;
    ox = 0;
    if (++oy == s.y.out) {
      oy = 0;
      ++oz;
    }
  }
}

// All of them, depth x pixels.
template <class T>
void im2col(const ConvShape& s, const T* image, T* columns) {
  for (int64_t row = 0; row < s.depth(); ++row)
    im2col_row(s, image + row / s.taps() * s.plane(), Tap(s, row % s.taps()), 0, s.pixels(),
               columns + row * s.pixels());
}

// body(tap's index, offset in the input, offset in the result, count) for every row of the result that a
// tap contributes to; elements of the input are s.x.stride apart.
template <class Body>
void for_each_row(const ConvShape& s, Body&& body) {
  for (int64_t index = 0; index < s.taps(); ++index) {
    const Tap tap(s, index);
    const auto [z_begin, z_end] = s.z.inside(tap.z);
    const auto [y_begin, y_end] = s.y.inside(tap.y);
    const auto [x_begin, x_end] = s.x.inside(tap.x);
    if (x_begin == x_end) continue;
    const int64_t x_at = x_begin * s.x.stride + s.x.offset(tap.x);
    for (int64_t oz = z_begin; oz < z_end; ++oz)
      for (int64_t oy = y_begin; oy < y_end; ++oy) {
        const int64_t iz = oz * s.z.stride + s.z.offset(tap.z);
        const int64_t iy = oy * s.y.stride + s.y.offset(tap.y);
        body(index, (iz * s.y.size + iy) * s.x.size + x_at, (oz * s.y.out + oy) * s.x.out + x_begin,
             x_end - x_begin);
      }
  }
}

// Adds columns back to the pixels they were taken from: channels [begin, end) of the image.
template <class T>
void col2im(const ConvShape& s, const T* columns, int64_t begin, int64_t end, T* image) {
  for (int64_t c = begin; c < end; ++c) {
    T* plane = image + c * s.plane();
    std::fill(plane, plane + s.plane(), T(0));
    for_each_row(s, [&](int64_t tap, int64_t in_at, int64_t out_at, int64_t n) {
      const T* from = columns + (c * s.taps() + tap) * s.pixels() + out_at;
      T* to = plane + in_at;
      for (int64_t i = 0; i < n; ++i) to[i * s.x.stride] = plus(to[i * s.x.stride], from[i]);
    });
  }
}

}  // namespace oar::cpu
