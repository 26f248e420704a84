#include "oar/cli/op_times.h"

#include <algorithm>
#include <map>

namespace oar::cli {

std::vector<OpTime> op_times(const timeline::Recording& recording) {
  using timeline::Event;
  std::vector<const Event*> calls;
  for (const Event& event : recording.events)
    if (event.kind == timeline::Kind::Op) calls.push_back(&event);
  // By beginning, and the outer one of two that begin together first.
  std::sort(calls.begin(), calls.end(), [](const Event* a, const Event* b) {
    if (a->thread != b->thread) return a->thread < b->thread;
    return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->end_ns > b->end_ns;
  });
  struct Sum {
    OpTime time;
    int64_t longest = -1;
  };
  std::map<std::string, Sum> sums;
  const auto milliseconds = [](const Event& e) {
    return static_cast<double>(e.end_ns - e.begin_ns) * 1e-6;
  };
  std::vector<const Event*> open;
  for (const Event* call : calls) {
    while (!open.empty() &&
           (open.back()->thread != call->thread || open.back()->end_ns <= call->begin_ns))
      open.pop_back();
    if (!open.empty()) sums[open.back()->name].time.milliseconds -= milliseconds(*call);
    open.push_back(call);
    Sum& sum = sums[call->name];
    sum.time.name = call->name;
    ++sum.time.calls;
    sum.time.milliseconds += milliseconds(*call);
    if (call->end_ns - call->begin_ns > sum.longest) {
      sum.longest = call->end_ns - call->begin_ns;
      sum.time.operands = call->operands;
    }
  }
  std::vector<OpTime> made;
  for (auto& [name, sum] : sums) made.push_back(std::move(sum.time));
  std::sort(made.begin(), made.end(),
            [](const OpTime& a, const OpTime& b) { return a.milliseconds > b.milliseconds; });
  return made;
}

}  // namespace oar::cli
