// Where every value of a step is, found for one axis of the mesh after another: each call takes one of its cuts, and a value that
// is made in one layout and read in another is moved by a collective, whose time is part of the cost.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/planner/machine.h"
#include "oar/planner/step.h"

namespace OAR_API oar {
namespace planner {

struct MeshAxis {
  std::string name;
  Group group;  // the devices along it
};

// What may be cut of the states along an axis; Cut: all that can be.
enum class StateRule : uint8_t { Any, Whole, Moments, Cut };

// Calls and values that are alike, with all that is near them, have one colour: those of repeated
// blocks, except near the ends.
struct Colours {
  std::vector<uint64_t> calls, values;
};
// Steps of fewer calls are not folded.
inline constexpr size_t kSmallStep = 150;
Colours colours_of(const Step& step, const std::map<ValueId, Layout>& fixed);

struct AxisRequest {
  MeshAxis axis;
  std::map<ValueId, Layout> fixed;  // of inputs, states and results that the user has placed
  StateRule states = StateRule::Any;
  // Must inputs be cut along their first axis, may they not, or is that open?
  enum class Batch : uint8_t { Open, Cut, Whole } batch = Batch::Open;
  int64_t micro_batches =
      1;  // the forward and backward phase run so often, each time on a part of the batch
  double price = 0;  // seconds for each byte of a state on a device
  bool fold = true;  // calls of repeated blocks are cut alike
  // Of the step before other axes cut it; none: its own.
  std::shared_ptr<const Colours> colours;
};

struct AxisPlan {
  MeshAxis axis;
  std::vector<int> cut;      // by call: which of its cuts
  std::vector<Layout> made;  // by value
  // By phase and value: the layout in which several calls of the phase read it.
  std::array<std::vector<Layout>, 3> read;
  double cost = 0,
         bound = 0;  // seconds of the search's model, and what no plan of its kind can beat
  size_t variables = 0;
};

// A value that changes its layout, or a result that is reduced inside its call.
struct Transfer {
  ValueId value = kNoValue;
  Layout from = kWhole, to = kWhole;
  Collective collective = Collective::AllReduce;
  double bytes = 0;    // of one run of it
  int64_t runs = 1;    // in a step
  double seconds = 0;  // of all runs
  Phase phase = Phase::Forward;
  int call = -1;  // that reads it, or reduces it inside; none: a state is written
  Group group;
};

AxisPlan place(const Step& step, const Machine& machine, const AxisRequest& request);

std::vector<Transfer> transfers_of(const Step& step, const Machine& machine, const AxisPlan& plan,
                                   int64_t micro_batches);
// Seconds of the call's work in a step, under its cut of the plan.
double work_time(const Step& step, const Machine& machine, const AxisPlan& plan, size_t call,
                 int64_t micro_batches);

// Leaves what one device has after the plan's cuts. `plan` becomes a plan of the divided step.
void divide(Step& step, const AxisPlan& plan);

}  // namespace planner
}  // namespace oar
