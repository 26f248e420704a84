// A training step as the planner sees it: its calls with their phase, their work, and the ways in which they may be cut; its values
// with their sizes on one device. Everything comes from the program and the records of its ops.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {
namespace planner {

// Forward: what the program's outputs need. Update: optimisers, and what else only leads to states. Backward: the rest.
enum class Phase : uint8_t { Forward, Backward, Update };

// Where a value is along one axis of the mesh: the axis of the value that is cut, or one of these.
using Layout = int8_t;
inline constexpr Layout kWhole = -1;    // every device has all of it
inline constexpr Layout kPartial = -2;  // the sum over the devices is the value

std::string text_of(Layout layout);  // "whole", "cut 0", "partial"

// One way to run a call on the devices along an axis of the mesh.
struct Cut {
  int factor = -1;  // of the sharding plan; none: every device does all of the work
  std::vector<Layout> operands, results;
  std::vector<size_t> joined;  // results that are reduced inside the call
};

// A call of the program, or the part of an update that belongs to one parameter.
struct StepCall {
  size_t instruction = 0;
  Phase phase = Phase::Forward;
  Cost cost;  // what is left of it on one device
  std::vector<ValueId> operands, results;
  std::shared_ptr<const std::vector<Cut>> cuts;  // the first one cuts nothing
  std::vector<int64_t> factors;                  // what is left of each factor's size on one device
  uint64_t signature = 0;                        // alike for calls of one op on alike tensors
};

enum class Origin : uint8_t { Call, Input, State, Constant };

struct StepValue {
  Origin origin = Origin::Constant;
  int maker = -1;    // its call
  int state = -1;    // its index among the states, of the content before the step
  double bytes = 0;  // on one device
  double whole_bytes = 0;
  std::vector<int64_t> shape;  // on one device
  std::vector<int> readers;    // calls, each once
  bool output = false;
  Layout batch_axis = kWhole;  // the axis along which it has the samples of the batch, if any
  int written_to = -1;         // the state that it becomes
};

struct Step {
  const Program* program = nullptr;  // outlives the step
  std::vector<StepCall> calls;       // in an order in which they can run
  std::vector<StepValue> values;     // by id
  int64_t batch = 1;                 // the common first size of the inputs; 1 if there is none

  // States that the forward phase reads and a run replaces.
  bool is_parameter(size_t state) const;
  // … that only updates read: moments, counters.
  bool is_moment(size_t state) const;
  bool reads_in(ValueId value, Phase phase) const;
  bool cuts_batch(const StepCall& call, const Cut& cut) const;
  std::string label(ValueId value) const { return program->label(value); }
};

// Open sizes count as their hints. An error if the program is no training step.
Step read_step(const Program& program);

}  // namespace planner
}  // namespace oar
