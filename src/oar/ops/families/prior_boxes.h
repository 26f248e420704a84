// The aspect ratios of prior boxes, for inference and for kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

namespace oar {

// 1, then the given ones without those that were there before; with `flip` each followed by its inverse.
inline std::vector<double> all_ratios(std::optional<std::span<const double>> given, bool flip) {
  std::vector<double> ratios{1.0};
  for (const double ratio : given ? *given : std::span<const double>()) {
    if (std::ranges::any_of(ratios, [&](double r) { return std::abs(ratio - r) < 1e-6; })) continue;
    ratios.push_back(ratio);
    if (flip) ratios.push_back(1 / ratio);
  }
  return ratios;
}

}  // namespace oar
