// Weights of the neighbours of a point between pixels.
#pragma once

#include <array>
#include <cmath>
#include <numbers>

#include "oar/media/resize.h"

namespace oar::media {

constexpr int kMostTaps = 8;
using TapWeights = std::array<float, kMostTaps>;

inline int taps_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::Cubic:
      return 4;
    case Interpolation::Lanczos:
      return 8;
    default:
      return 2;
  }
}

inline TapWeights cubic_weights(float x) {
  constexpr float a = -0.75F;
  TapWeights w{};
  w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
  w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
  w[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
  w[3] = 1.F - w[0] - w[1] - w[2];
  return w;
}

inline TapWeights lanczos_weights(float x) {
  TapWeights w{};
  constexpr double quarter = std::numbers::pi / 4;
  float sum = 0;
  for (int i = 0; i < 8; ++i) {
    const double at = static_cast<double>(x) + 3 - i;
    const double t = at * quarter;
    const double value = std::abs(at) < 1e-6 ? 1 : std::sin(4 * t) * std::sin(t) / (4 * t * t);
    sum += w[static_cast<size_t>(i)] = static_cast<float>(value);
  }
  for (float& value : w) value /= sum;
  return w;
}

// The weights of a point at a distance of `x` after pixel (taps / 2 - 1).
inline TapWeights tap_weights(Interpolation interpolation, float x) {
  switch (interpolation) {
    case Interpolation::Cubic:
      return cubic_weights(x);
    case Interpolation::Lanczos:
      return lanczos_weights(x);
    default:
      return {1.F - x, x};
  }
}

}  // namespace oar::media
