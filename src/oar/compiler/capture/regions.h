// Captures inside captures: the branches of a cond and the bodies of loops become separate programs.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "oar/base/api.h"
#include "oar/compiler/capture/capture.h"
#include "oar/ir/region.h"
#include "oar/runtime/region_runs.h"

namespace OAR_API oar {

// An outside tensor that a region reads, and the value that the region writes to it, if any.
struct Lifted {
  Tensor tensor;
  ValueId value = kNoValue;
  ValueId written = kNoValue;
};

// A region before it is adapted to the other regions of its call. Lifted tensors are not yet
// among its inputs.
struct RegionParts {
  Program program;
  std::vector<Lifted> lifted;
  std::vector<bool> flows;  // by value: does a gradient flow through it?
  bool is_flowing(ValueId id) const {
    return static_cast<size_t>(id) < flows.size() && flows[static_cast<size_t>(id)];
  }

  // Of sources through which nothing flows in this region. A tensor outside keeps its stop where another region of the
  // call lets something flow through it.
  Stops idle;
  void forget_stops(const std::function<bool(ValueId source, const Lifted*)>& needless);
};

// Runs the function in a capture inside the running one, on tensors like these. `own`: sizes
// that are unknown outside.
RegionParts capture_region(const std::string& name, TensorList like,
                           const Closure::Function& function, const std::vector<Dim>& own = {});

// The function of its inputs alone, which any layer may call.
ClosurePtr trace_closure(const Closure::Function& function, TensorList like,
                         const std::string& name);

// A finished region.
ClosurePtr to_region(Program program);

// Implement Closure::vjp and jvp.
ClosurePtr region_vjp(const Program& program, const std::vector<bool>& wanted,
                      TensorList cotangents);
ClosurePtr region_jvp(const Program& program, const std::vector<bool>& active);

// While a region is captured: through which values the tape leads. Values off the tape get a call
// of without_gradient, since the region is differentiated by its program.
struct Capture::Flow {
  void add_source(ValueId id, const Tensor& t);
  bool is_active(ValueId id) const {
    return static_cast<size_t>(id) < active.size() && active[static_cast<size_t>(id)];
  }
  void activate(ValueId id);

  std::vector<bool> active;  // by value
  Stops stopped;
  std::unordered_map<ValueId, Tensor> sources;  // from outside, with the handle that is on the tape
  std::unordered_set<ValueId> asking_inputs;
  std::unordered_set<const TensorImpl*> handles;  // of sources
  bool on_tape = false;                           // a recorded call is running
};

class OnTape {
 public:
  OnTape(Capture::Flow* flow, bool on) : flow_(flow), outer_(flow && flow->on_tape) {
    if (flow_) flow_->on_tape = on;
  }
  ~OnTape() {
    if (flow_) flow_->on_tape = outer_;
  }
  OnTape(const OnTape&) = delete;
  OnTape& operator=(const OnTape&) = delete;

 private:
  Capture::Flow* flow_;
  bool outer_;
};

}  // namespace oar
