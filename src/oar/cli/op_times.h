// Where the time of a profile went, by op.
#pragma once

#include <string>
#include <vector>

#include "oar/base/timeline.h"

namespace oar::cli {

struct OpTime {
  std::string name;
  std::string operands;  // of the call that took longest
  int64_t calls = 0;
  double milliseconds = 0;  // without the calls inside it
};

// The longest first. Work on several threads counts once, as the time of the call.
std::vector<OpTime> op_times(const timeline::Recording& recording);

}  // namespace oar::cli
