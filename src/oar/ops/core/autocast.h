// Automatic mixed precision: a layer that casts operands according to each op's record.
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

struct AutocastState {
  bool enabled = false;
  DType dtype = DType::BFloat16;
  // Ops whose record is overridden: to the low type, to float32.
  std::vector<std::string> low, full;
};

void install_autocast_layer();
const AutocastState& autocast_state();

// While alive, calls of this thread are cast (or, if disabled, not).
class AutocastScope {
 public:
  explicit AutocastScope(AutocastState state);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  AutocastState outer_;
};

// For front ends whose scopes are not C++ blocks; returns the previous state.
AutocastState exchange_autocast(AutocastState state);

}  // namespace oar
