#include "oar/media/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "oar/base/error.h"
#include "oar/media/taps.h"

namespace oar::media {
namespace {

// The neighbours of each new position along an axis: `taps` source positions and their weights.
template <class W>
struct Neighbours {
  int taps = 0;
  std::vector<int64_t> at;
  std::vector<W> weights;

  const int64_t* positions(int64_t i) const { return at.data() + i * taps; }
  const W* values(int64_t i) const { return weights.data() + i * taps; }
};

// How elements of type T are weighed: the type of a weight and of a sum, and the rounding.
template <class T>
struct Weighing {
  using Weight = T;
  using Sum = T;
  static Weight weight(float value) { return static_cast<Weight>(value); }
  static T result(Sum sum) { return sum; }
};
template <>
struct Weighing<uint8_t> {
  using Weight = int32_t;
  using Sum = int32_t;
  static constexpr int kBits = 11;  // of the weights of each axis
  static Weight weight(float value) {
    const long scaled = std::lrint(value * (1 << kBits));
    return static_cast<Weight>(std::clamp<long>(scaled, INT16_MIN, INT16_MAX));
  }
  static uint8_t result(Sum sum) {
    return static_cast<uint8_t>(std::clamp((sum + (1 << (2 * kBits - 1))) >> (2 * kBits), 0, 255));
  }
};

// The place of a new position in the source.
struct Place {
  int64_t before;
  float fraction;
};

Place place_of(int64_t i, int64_t in, int64_t out, Interpolation interpolation) {
  const double growth = static_cast<double>(out) / static_cast<double>(in);
  const double scale = 1.0 / growth;
  const auto position = static_cast<double>(i);
  if (interpolation ==
      Interpolation::
          Area) {  // of an image that grows: areas of the source, blended at their borders
    const double before = std::floor(position * scale);
    const auto fraction = static_cast<float>((position + 1) - (before + 1) * growth);
    return {static_cast<int64_t>(before), fraction <= 0 ? 0.F : fraction - std::floor(fraction)};
  }
  const auto at = static_cast<float>((position + 0.5) * scale - 0.5);
  const float before = std::floor(at);
  return {static_cast<int64_t>(before), at - before};
}

template <class T>
auto neighbours_of(int64_t in, int64_t out, Interpolation interpolation) {
  using W = Weighing<T>;
  Neighbours<typename W::Weight> found;
  const int taps = found.taps = taps_of(interpolation);
  for (int64_t i = 0; i < out; ++i) {
    Place place = place_of(i, in, out, interpolation);
    if (taps == 2 && (place.before < 0 || place.before >= in - 1))
      place = {std::clamp<int64_t>(place.before, 0, in - 1), 0.F};
    const TapWeights weights = tap_weights(interpolation, place.fraction);
    for (int k = 0; k < taps; ++k) {
      found.at.push_back(std::clamp<int64_t>(place.before + k - taps / 2 + 1, 0, in - 1));
      found.weights.push_back(W::weight(weights[static_cast<size_t>(k)]));
    }
  }
  return found;
}

template <class T, class W, class S>
void weigh_row(const T* in, int64_t channels, const Neighbours<W>& columns, int64_t width, S* out) {
  for (int64_t x = 0; x < width; ++x) {
    const int64_t* at = columns.positions(x);
    const W* weights = columns.values(x);
    for (int64_t c = 0; c < channels; ++c) {
      S sum = 0;
      for (int k = 0; k < columns.taps; ++k)
        sum += weights[k] * static_cast<S>(in[at[k] * channels + c]);
      *out++ = sum;
    }
  }
}

template <class T>
T blended(int64_t x, int taps, const typename Weighing<T>::Weight* weights,
          const typename Weighing<T>::Sum* const* rows) {
  using W = Weighing<T>;
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (taps == 2) {  // with the lower bits dropped early, as OpenCV does
      const int32_t first = (weights[0] * (rows[0][x] >> 4)) >> 16;
      const int32_t second = (weights[1] * (rows[1][x] >> 4)) >> 16;
      return static_cast<uint8_t>(std::clamp((first + second + 2) >> 2, 0, 255));
    }
  }
  typename W::Sum sum = 0;
  for (int k = 0; k < taps; ++k) sum += weights[k] * rows[k][x];
  return W::result(sum);
}

// Rows with new columns, while they are in use: each is computed once.
template <class T>
class RowCache {
 public:
  using Sum = typename Weighing<T>::Sum;

  RowCache(const Tensor& image, const Neighbours<typename Weighing<T>::Weight>& columns,
           int64_t width)
      : data_(image.data<T>()), size_(size_of_image(image)), columns_(columns), width_(width) {
    held_.fill(-1);
    for (auto& row : rows_) row.resize(static_cast<size_t>(width * size_.channels));
  }

  const Sum* row(int64_t y) {
    const auto slot = static_cast<size_t>(y % kMostTaps);
    if (held_[slot] != y) {
      weigh_row(data_ + y * size_.row(), size_.channels, columns_, width_, rows_[slot].data());
      held_[slot] = y;
    }
    return rows_[slot].data();
  }

 private:
  const T* data_;
  ImageSize size_;
  const Neighbours<typename Weighing<T>::Weight>& columns_;
  int64_t width_;
  std::array<int64_t, kMostTaps> held_;
  std::array<std::vector<Sum>, kMostTaps> rows_;
};

template <class T>
void resize_by_taps(const Tensor& image, Tensor& out, Interpolation interpolation) {
  const ImageSize in = size_of_image(image), to = size_of_image(out);
  const auto columns = neighbours_of<T>(in.width, to.width, interpolation);
  const auto rows = neighbours_of<T>(in.height, to.height, interpolation);
  RowCache<T> cache(image, columns, to.width);
  T* target = out.data<T>();
  for (int64_t y = 0; y < to.height; ++y, target += to.row()) {
    std::array<const typename Weighing<T>::Sum*, kMostTaps> used{};
    for (int k = 0; k < rows.taps; ++k)
      used[static_cast<size_t>(k)] = cache.row(rows.positions(y)[k]);
    for (int64_t x = 0; x < to.row(); ++x)
      target[x] = blended<T>(x, rows.taps, rows.values(y), used.data());
  }
}

template <class T>
void resize_nearest(const Tensor& image, Tensor& out) {
  const ImageSize in = size_of_image(image), to = size_of_image(out);
  const double step_x = 1.0 / (static_cast<double>(to.width) / static_cast<double>(in.width));
  const double step_y = 1.0 / (static_cast<double>(to.height) / static_cast<double>(in.height));
  const auto at = [](int64_t i, double step, int64_t size) {
    return std::min(static_cast<int64_t>(std::floor(static_cast<double>(i) * step)), size - 1);
  };
  T* target = out.data<T>();
  for (int64_t y = 0; y < to.height; ++y) {
    const T* row = image.data<T>() + at(y, step_y, in.height) * in.row();
    for (int64_t x = 0; x < to.width; ++x, target += to.channels)
      std::copy_n(row + at(x, step_x, in.width) * in.channels, in.channels, target);
  }
}

// A source position that a new one covers, and how much of it.
struct Share {
  int64_t at;
  float amount;
};

// For an image that shrinks: the shares of each new position. They sum to 1.
std::vector<std::vector<Share>> shares_of(int64_t in, int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  std::vector<std::vector<Share>> found(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const double begin = static_cast<double>(i) * scale;
    const double end = begin + scale;
    const double cell = std::min(scale, static_cast<double>(in) - begin);
    int64_t first = static_cast<int64_t>(std::ceil(begin));
    const int64_t last = std::min(static_cast<int64_t>(std::floor(end)), in - 1);
    first = std::min(first, last);
    auto& shares = found[static_cast<size_t>(i)];
    if (static_cast<double>(first) - begin > 1e-3)
      shares.push_back(
          {first - 1, static_cast<float>((static_cast<double>(first) - begin) / cell)});
    for (int64_t k = first; k < last; ++k) shares.push_back({k, static_cast<float>(1.0 / cell)});
    if (end - static_cast<double>(last) > 1e-3)
      shares.push_back({last, static_cast<float>(
                                  std::min({end - static_cast<double>(last), 1.0, cell}) / cell)});
  }
  return found;
}

template <class T>
T rounded_area(double sum) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return static_cast<uint8_t>(std::clamp<long>(std::lrint(sum), 0, 255));
  else
    return static_cast<T>(sum);
}

// Sizes that divide: plain means, of integers in integers.
template <class T>
void mean_of_blocks(const Tensor& image, Tensor& out) {
  const ImageSize in = size_of_image(image), to = size_of_image(out);
  const int64_t high = in.height / to.height, wide = in.width / to.width;
  using Sum = std::conditional_t<std::is_same_v<T, uint8_t>, int64_t, T>;
  T* target = out.data<T>();
  const float share = 1.F / static_cast<float>(high * wide);
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x)
      for (int64_t c = 0; c < to.channels; ++c) {
        Sum sum = 0;
        for (int64_t i = 0; i < high; ++i) {
          const T* row = image.data<T>() + (y * high + i) * in.row() + x * wide * in.channels + c;
          for (int64_t j = 0; j < wide; ++j) sum += row[j * in.channels];
        }
        if (std::is_same_v<T, uint8_t> && high == 2 && wide == 2)
          *target++ = static_cast<T>((static_cast<int64_t>(sum) + 2) >> 2);
        else
          *target++ = rounded_area<T>(static_cast<double>(static_cast<float>(sum) * share));
      }
}

template <class T>
void resize_area(const Tensor& image, Tensor& out) {
  const ImageSize in = size_of_image(image), to = size_of_image(out);
  if (in.height % to.height == 0 && in.width % to.width == 0) return mean_of_blocks<T>(image, out);
  const auto columns = shares_of(in.width, to.width);
  const auto rows = shares_of(in.height, to.height);
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  std::vector<Sum> row(static_cast<size_t>(to.row())), sum(row.size());
  T* target = out.data<T>();
  for (const auto& parts : rows) {
    std::fill(sum.begin(), sum.end(), Sum{0});
    for (const Share& part : parts) {
      const T* source = image.data<T>() + part.at * in.row();
      std::fill(row.begin(), row.end(), Sum{0});
      for (size_t x = 0; x < columns.size(); ++x)
        for (const Share& column : columns[x])
          for (int64_t c = 0; c < in.channels; ++c)
            row[x * static_cast<size_t>(in.channels) + static_cast<size_t>(c)] +=
                static_cast<Sum>(source[column.at * in.channels + c]) *
                static_cast<Sum>(column.amount);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += row[i] * static_cast<Sum>(part.amount);
    }
    for (const Sum value : sum) *target++ = rounded_area<T>(static_cast<double>(value));
  }
}

template <class T>
void resize_elements(const Tensor& image, Tensor& out, Interpolation interpolation) {
  const ImageSize in = size_of_image(image), to = size_of_image(out);
  if (interpolation == Interpolation::Nearest) return resize_nearest<T>(image, out);
  const bool halves = in.height == 2 * to.height && in.width == 2 * to.width;
  const bool shrinks = in.height >= to.height && in.width >= to.width;
  // A half by two neighbours is the mean of four pixels.
  if ((interpolation == Interpolation::Area && shrinks) ||
      (interpolation == Interpolation::Linear && halves))
    return resize_area<T>(image, out);
  resize_by_taps<T>(image, out, interpolation);
}

}  // namespace

Interpolation interpolation_of(std::string_view name) {
  constexpr std::pair<std::string_view, Interpolation> kNames[] = {
      {"nearest", Interpolation::Nearest},
      {"bilinear", Interpolation::Linear},
      {"bicubic", Interpolation::Cubic},
      {"lanczos", Interpolation::Lanczos},
      {"area", Interpolation::Area}};
  for (const auto& [known, interpolation] : kNames)
    if (known == name) return interpolation;
  fail(ErrorKind::InvalidArgument,
       "interpolation is '{}'; for an array it can be 'nearest', 'bilinear', 'area', 'bicubic' or "
       "'lanczos'.",
       name);
}

Tensor resize(const Tensor& image, int64_t height, int64_t width, Interpolation interpolation) {
  const ImageSize size = size_of_image(image);
  check_output_size(height, width);
  Tensor out = empty_image(height, width, size.channels, image.dtype());
  switch (image.dtype()) {
    case DType::UInt8:
      resize_elements<uint8_t>(image, out, interpolation);
      return out;
    case DType::Float32:
      resize_elements<float>(image, out, interpolation);
      return out;
    case DType::Float64:
      resize_elements<double>(image, out, interpolation);
      return out;
    default:
      fail(ErrorKind::InvalidType,
           "an image of {} cannot be resized; its elements must be uint8, float32 or float64.",
           image.describe());
  }
}

}  // namespace oar::media
