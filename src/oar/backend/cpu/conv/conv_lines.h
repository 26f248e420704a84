// An image with its padding is one long line per channel, and a position of the kernel is a distance on it:
// result q is the sum over positions t of weight(t) · line(q + distance(t)). Results at the ends of
// rows are meaningless and skipped. With a stride, every stride-th pixel forms a separate line.
#pragma once

#include <algorithm>
#include <cstdint>

#include "oar/backend/cpu/conv/conv_shape.h"
#include "oar/backend/cpu/gemm/tile_table.h"

namespace oar::cpu {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Segment {
  int64_t from, count, to;  // positions on the line, and of the first in the result
};

// The lines of one image and group. With few channels, the columns of the kernel are folded into them
// (`folds`): then each column of the kernel has its own channels.
class Lines {
 public:
  // `spread`: the distance of the pixels, with zeros between them.
  Lines(const ConvShape& s, const int64_t (&spread)[3])
      : s_(s), spread_{spread[0], spread[1], spread[2]} {
    const int64_t apart = ceil_div(s.channels, kTileDepth) * s.x.kernel;
    folds_ = s.x.kernel > 1 && ceil_div(s.channels * s.x.kernel, kTileDepth) < apart;
    const auto places = [](const ConvAxis& a) {
      return a.out + (a.kernel - 1) * a.dilation / a.stride;
    };
    z_ = places(s.z), y_ = places(s.y), x_ = folds_ ? s.x.out : places(s.x);
  }
  int64_t channels() const { return folds_ ? s_.channels * s_.x.kernel : s_.channels; }
  int64_t blocks() const { return ceil_div(channels(), kTileDepth); }
  int64_t phases() const { return s_.z.stride * s_.y.stride * x_phases(); }
  int64_t length() const { return z_ * y_ * x_ + 2 * kTileRows; }  // tiles read past the end
  int64_t results() const { return ((s_.z.out - 1) * y_ + s_.y.out - 1) * x_ + s_.x.out; }
  // Positions of the kernel that are distances on a line.
  int64_t taps() const { return folds_ ? s_.z.kernel * s_.y.kernel : s_.taps(); }
  int64_t phase(int64_t tap) const {
    const Tap t = at(tap);
    return (t.z * s_.z.dilation % s_.z.stride * s_.y.stride + t.y * s_.y.dilation % s_.y.stride) *
               x_phases() +
           (folds_ ? 0 : t.x * s_.x.dilation % s_.x.stride);
  }
  int64_t distance(int64_t tap) const {
    const Tap t = at(tap);
    return (t.z * s_.z.dilation / s_.z.stride * y_ + t.y * s_.y.dilation / s_.y.stride) * x_ +
           (folds_ ? 0 : t.x * s_.x.dilation / s_.x.stride);
  }
  // The position of the kernel for a tap and a line's channel is the sum of both parts.
  int64_t place_of_tap(int64_t tap) const { return folds_ ? tap * s_.x.kernel : tap; }
  int64_t place_of_channel(int64_t channel) const { return folds_ ? channel % s_.x.kernel : 0; }
  int64_t image_channel(int64_t channel) const { return folds_ ? channel / s_.x.kernel : channel; }

  // One channel's line; room for length().
  void fill(const uint16_t* image, int64_t channel, int64_t phase, uint16_t* to) const {
    const int64_t px = phase % x_phases(), py = phase / x_phases() % s_.y.stride;
    const int64_t pz = phase / x_phases() / s_.y.stride;
    const uint16_t* plane = image + image_channel(channel) * s_.plane();
    const int64_t shift = folds_ ? place_of_channel(channel) * s_.x.dilation : px;
    for (int64_t z = 0; z < z_; ++z)
      for (int64_t y = 0; y < y_; ++y, to += x_) {
        const int64_t iz = pixel(s_.z, spread_[0], z * s_.z.stride + pz);
        const int64_t iy = pixel(s_.y, spread_[1], y * s_.y.stride + py);
        if (iz < 0 || iy < 0)
          std::fill_n(to, x_, uint16_t{0});
        else
          fill_row(plane + (iz * s_.y.size + iy) * s_.x.size, shift - s_.x.before, to);
      }
    std::fill_n(to, 2 * kTileRows, uint16_t{0});
  }

  // A channel of the result put on a line; `to` is zeros.
  void place_results(const uint16_t* from, uint16_t* to) const {
    for (int64_t z = 0; z < s_.z.out; ++z)
      for (int64_t y = 0; y < s_.y.out; ++y, from += s_.x.out)
        std::copy_n(from, s_.x.out, to + (z * y_ + y) * x_);
  }
  // The results among positions [first, first + count); at most one per row of the result.
  int64_t segments(int64_t first, int64_t count, Segment* to) const {
    int64_t made = 0;
    const int64_t last = std::min(first + count, results());
    for (int64_t q = first; q < last;) {
      const int64_t x = q % x_, y = q / x_ % y_, z = q / x_ / y_;
      const int64_t row_end = q - x + x_;
      if (x < s_.x.out && y < s_.y.out)
        to[made++] = {q - first, std::min(last, q - x + s_.x.out) - q,
                      (z * s_.y.out + y) * s_.x.out + x};
      q = row_end;
    }
    return made;
  }

 private:
  int64_t x_phases() const { return folds_ ? 1 : s_.x.stride; }
  Tap at(int64_t tap) const { return {s_, folds_ ? tap * s_.x.kernel : tap}; }
  // The pixel at a position of the padded, spread axis; negative if there is none.
  static int64_t pixel(const ConvAxis& axis, int64_t spread, int64_t place) {
    const int64_t p = place - axis.before;
    return p >= 0 && p % spread == 0 && p / spread < axis.size ? p / spread : -1;
  }
  // to[i] = row[i * stride + offset] if that pixel exists, else 0.
  void fill_row(const uint16_t* row, int64_t offset, uint16_t* to) const {
    const int64_t stride = s_.x.stride, spread = spread_[2], size = s_.x.size;
    if (stride == 1 && spread == 1) {
      const int64_t begin = std::clamp<int64_t>(-offset, 0, x_);
      const int64_t end = std::clamp<int64_t>(size - offset, begin, x_);
      std::fill(to, to + begin, uint16_t{0});
      std::copy(row + begin + offset, row + end + offset, to + begin);
      std::fill(to + end, to + x_, uint16_t{0});
      return;
    }
    std::fill_n(to, x_, uint16_t{0});
    // One of both is 1. Pixel p is at position (p * spread - offset) / stride.
    const int64_t first = std::max<int64_t>(0, ceil_div(offset, spread));
    if (stride == 1) {
      for (int64_t p = first; p < size && p * spread - offset < x_; ++p)
        to[p * spread - offset] = row[p];
    } else {
      const int64_t begin = std::max<int64_t>(0, ceil_div(-offset, stride));
      const int64_t end = std::min(x_, ceil_div(size - offset, stride));
      for (int64_t i = begin; i < end; ++i) to[i] = row[i * stride + offset];
    }
  }

  const ConvShape& s_;
  int64_t spread_[3];
  bool folds_;
  int64_t z_, y_, x_;
};

}  // namespace oar::cpu
