// Captures inside captures: the branches of a cond and the bodies of loops become programs of their own.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "oar/compiler/capture/capture.h"
#include "oar/ir/region.h"

namespace oar {

// A tensor outside that a region reads, and the value it leaves there, if it writes.
struct Lifted {
  Tensor tensor;
  ValueId value = kNoValue;
  ValueId written = kNoValue;
};

// A region before it is fitted to those that stand beside it in one call. Lifted tensors are not yet
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

// Runs the function in a capture inside the one that is running, on tensors like these. `own`: sizes
// that nobody outside knows.
RegionParts capture_region(const std::string& name, TensorList like,
                           const Closure::Function& function, const std::vector<Dim>& own = {});

// The function on nothing but its inputs, which may be called by any layer.
ClosurePtr trace_closure(const Closure::Function& function, TensorList like,
                         const std::string& name);

// A finished region.
ClosurePtr to_region(Program program);

// What Closure::vjp and jvp promise.
ClosurePtr region_vjp(const Program& program, const std::vector<bool>& wanted,
                      TensorList cotangents);
ClosurePtr region_jvp(const Program& program, const std::vector<bool>& active);

// While a region is captured: through which values the tape leads. What goes past the tape gets a call
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

// Nothing of what is switched on around this call is for it.
class FreshLayers {
 public:
  FreshLayers() : outer_(t_layers) { t_layers = {outer_.on & kProfile, 0}; }
  ~FreshLayers() { t_layers = outer_; }
  FreshLayers(const FreshLayers&) = delete;
  FreshLayers& operator=(const FreshLayers&) = delete;

 private:
  const ThreadLayers outer_;
};

}  // namespace oar
