// What an optimiser keeps for one parameter. Not part of the interface.
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "oar/nn/optimizer.h"

namespace oar::nn {

struct Optimizer::Clock {
  Tensor steps;  // 0-d float32
};

struct Optimizer::Slot {
  size_t group = 0;
  bool created = false;
  std::vector<Tensor> states;
  Tensor master;
  std::shared_ptr<Clock> clock;
  int64_t loaded_count = 0;  // until there is a clock

  int64_t count() const {
    return clock ? static_cast<int64_t>(std::lround(to_host(clock->steps))) : loaded_count;
  }
  static double to_host(const Tensor& number);
};

}  // namespace oar::nn
