// Weighted sums of neighbouring pixels along one axis, in integers of 32 bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oar/media/image.h"

namespace oar::media {

// For each new position: the first source position that counts, and the weights from there on. A weight is an integer, 2^22 for 1.
class AxisWeights {
 public:
  AxisWeights(int64_t size, int64_t most_taps);

  void set(int64_t position, int64_t first, std::span<const double> weights);

  int64_t size() const { return static_cast<int64_t>(first_.size()); }
  int64_t most_taps() const { return most_taps_; }
  int64_t first(int64_t position) const { return first_[static_cast<size_t>(position)]; }
  std::span<const int32_t> weights(int64_t position) const {
    const auto i = static_cast<size_t>(position);
    return {weights_.data() + i * stride_, static_cast<size_t>(count_[i])};
  }
  // The same in halves, as vectors want them: for taps 2k and 2k + 1 the high parts (weight / 4096), then the low parts. Beyond the
  // last tap, up to a multiple of four, they are zero.
  const int16_t* halves(int64_t position) const {
    return halves_.data() + static_cast<size_t>(position) * stride_ * 2;
  }
  // Source positions [first_used, last_used) count for any new one.
  int64_t first_used() const;
  int64_t last_used() const;

 private:
  int64_t most_taps_;
  size_t stride_;
  std::vector<int64_t> first_, count_;
  std::vector<int32_t> weights_;
  std::vector<int16_t> halves_;
};

// Each of `rows` rows at `in`, of an image of this size, gets new columns.
void weigh_columns(const uint8_t* in, const ImageSize& size, int64_t rows, const AxisWeights& axis,
                   uint8_t* out);
// New rows of `row` bytes each; `in` begins at row `first_row` of the axis.
void weigh_rows(const uint8_t* in, int64_t row, int64_t first_row, const AxisWeights& axis,
                uint8_t* out);

}  // namespace oar::media
