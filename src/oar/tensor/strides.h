// What strides say about the elements they lead to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

#include "oar/base/api.h"
#include "oar/base/small_vector.h"

namespace OAR_API oar {

// Is no element met twice? None is if each step is longer than all smaller ones reach.
inline bool meets_each_once(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  SmallVector<std::pair<int64_t, int64_t>, 6> axes;  // (step, reach)
  for (size_t i = 0; i < shape.size(); ++i) {
    const int64_t step = std::abs(strides[i]);
    if (shape[i] > 1) axes.push_back({step, step * (shape[i] - 1)});
  }
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (const auto& [step, length] : axes) {
    if (step <= reach) return false;
    reach += length;
  }
  return true;
}

}  // namespace oar
