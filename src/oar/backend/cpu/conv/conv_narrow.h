// Convolutions with few output channels, without columns: a few rows of weights fill no panel of a
// product, and creating columns for them costs more than the arithmetic. The image is copied once with its
// padding; the taps are then at fixed offsets from each pixel.
#pragma once

#include <vector>

#include "oar/backend/cpu/conv/conv_shape.h"
#include "oar/backend/cpu/loops/scratch.h"

namespace oar::cpu {

inline bool is_narrow(const ConvShape& s) {
  constexpr int64_t kMostDepth = 2048;  // the sums are single chains
  return s.out_channels <= 8 && !s.has_steps() && !s.is_pointwise() && s.z.kernel == 1 &&
         s.z.size == 1 && s.z.out == 1 && s.x.out >= 4 && s.depth() <= kMostDepth;
}

template <class T>
class NarrowConvolution {
 public:
  explicit NarrowConvolution(const ConvShape& s)
      : s_(s),
        table_(micro_table<T>()),
        lanes_(table_.lanes),
        height_(s.y.out + (s.y.kernel - 1) * s.y.dilation),
        // The last vector of a line may reach beyond it.
        width_((s.x.out + lanes_ - 1) / lanes_ * lanes_ + (s.x.kernel - 1) * s.x.dilation) {
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t y = 0; y < s.y.kernel; ++y)
        for (int64_t x = 0; x < s.x.kernel; ++x)
          places_.push_back((c * height_ + y * s.y.dilation) * width_ + x * s.x.dilation);
  }

  // One image of one group; no bias if it is null.
  void run(const T* image, const T* weight, const T* bias, T* out) const {
    Scratch<T> padded(s_.channels * height_ * width_);
    pad(image, padded.data());
    for (int64_t y = 0; y < s_.y.out; y += kLines)
      for (int64_t x = 0; x < s_.x.out; x += lanes_)
        for (int64_t o = 0; o < s_.out_channels; o += table_.rows)
          tile(padded.data(), weight, bias, out, {y, x, o});
  }

 private:
  static constexpr int64_t kLines = 2;
  struct Corner {
    int64_t y, x, channel;
  };

  void pad(const T* image, T* padded) const {
    std::fill_n(padded, s_.channels * height_ * width_, T(0));
    const int64_t x0 = std::max<int64_t>(0, s_.x.before), from = std::max<int64_t>(0, -s_.x.before);
    const int64_t count = std::min(s_.x.size - from, width_ - x0);
    if (count <= 0) return;
    for (int64_t c = 0; c < s_.channels; ++c)
      for (int64_t y = 0; y < height_; ++y) {
        const int64_t line = y - s_.y.before;
        if (line >= 0 && line < s_.y.size)
          std::copy_n(image + (c * s_.y.size + line) * s_.x.size + from, count,
                      padded + (c * height_ + y) * width_ + x0);
      }
  }

  // Two lines of one vector each, for as many channels as a tile has rows.
  void tile(const T* padded, const T* weight, const T* bias, T* out, Corner at) const {
    const int64_t channels = std::min<int64_t>(table_.rows, s_.out_channels - at.channel);
    const int64_t lines = std::min(kLines, s_.y.out - at.y);
    alignas(64) T sums[8 * kLines * 16];
    const int64_t row = lines * lanes_;
    table_.run_places[channels - 1][lines - 1]({s_.depth(), weight + at.channel * s_.depth(),
                                                s_.depth(), padded + at.y * width_ + at.x,
                                                places_.data(), width_, sums, row, lanes_});
    const int64_t count = std::min(lanes_, s_.x.out - at.x);
    for (int64_t c = 0; c < channels; ++c) {
      const T shift = bias ? bias[at.channel + c] : T(0);
      for (int64_t l = 0; l < lines; ++l) {
        const T* from = sums + c * row + l * lanes_;
        T* to = out + (at.channel + c) * s_.pixels() + (at.y + l) * s_.x.out + at.x;
        for (int64_t i = 0; i < count; ++i) to[i] = from[i] + shift;
      }
    }
  }

  const ConvShape& s_;
  const MicroTable<T>& table_;
  const int64_t lanes_, height_, width_;
  std::vector<long> places_;
};

template <class T>
void narrow_forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* out) {
  const NarrowConvolution<T> convolution(s);
  parallel_for(0, s.batch * s.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t g = i % s.groups;
      convolution.run(x + i * s.channels * s.plane(), weight + g * s.out_channels * s.depth(),
                      bias ? bias + g * s.out_channels : nullptr,
                      out + i * s.out_channels * s.pixels());
    }
  });
}

}  // namespace oar::cpu
