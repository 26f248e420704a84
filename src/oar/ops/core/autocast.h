// Automatic mixed precision: a layer that casts operands according to each op's record.
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

// OD: only ops that gain from the low type compute in it, all others in float32.
// O1: those that gain in the low type, delicate ones in float32, the rest in the types of their operands.
// O2: as O1, but delicate ops follow their operands too: parameters are in the low type already.
enum class AutocastLevel : uint8_t { OD, O1, O2 };

struct AutocastState {
  bool enabled = false;
  DType dtype = DType::BFloat16;
  // Ops whose record is overridden: to the low type, to float32.
  std::vector<std::string> low, full;
  AutocastLevel level = AutocastLevel::O1;
  bool promote = true;  // false, at O2: what is not in `full` computes in the low type
};

void install_autocast_layer();
const AutocastState& autocast_state();
// The dtype of this thread's last state that was enabled; float32 before the first. It tells what a loss was computed in.
DType last_autocast_dtype();
// From now on only states from now on count, and the one that is on.
void forget_autocast_dtype();

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
