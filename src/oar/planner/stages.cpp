#include "oar/planner/stages.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "oar/base/error.h"

namespace oar::planner {
namespace {

size_t index(ValueId id) { return static_cast<size_t>(id); }

// The place of every call and state in the order of the forward phase. What belongs to the backward phase is where the forward values
// that it reads were made, and a state is where it is read first.
class Positions {
 public:
  explicit Positions(const Step& step) : step_(step) {
    call_.assign(step.calls.size(), 0);
    first_.assign(step.values.size(), -1);
    last_.assign(step.values.size(), -1);
    find_forward();
    for (size_t k = 0; k < step.calls.size(); ++k)
      if (step.calls[k].phase != Phase::Forward) call_[k] = later(step.calls[k]);
  }
  int64_t of_call(size_t call) const { return call_[call]; }
  int64_t count() const { return count_; }
  // The first reader's place; 0 for what nothing reads.
  int64_t of_state(ValueId id) const {
    const StepValue& v = step_.values[index(id)];
    if (first_[index(id)] >= 0) return first_[index(id)];
    return v.readers.empty() ? 0 : call_[static_cast<size_t>(v.readers[0])];
  }

 private:
  void find_forward() {
    for (size_t k = 0; k < step_.calls.size(); ++k) {
      if (step_.calls[k].phase != Phase::Forward) continue;
      call_[k] = count_++;
      for (ValueId id : step_.calls[k].operands) {
        last_[index(id)] = call_[k];
        if (first_[index(id)] < 0) first_[index(id)] = call_[k];
      }
    }
  }

  int64_t later(const StepCall& call) const {
    int64_t place = std::max<int64_t>(count_ - 1, 0);
    for (ValueId id : call.operands) {
      const StepValue& v = step_.values[index(id)];
      if (v.maker >= 0) place = std::min(place, call_[static_cast<size_t>(v.maker)]);
      if (v.origin != Origin::State || last_[index(id)] < 0) continue;
      // An update belongs to its parameter, a gradient's product to the last call that reads the weight.
      place = std::min(place, call.phase == Phase::Update ? first_[index(id)] : last_[index(id)]);
    }
    return place;
  }

  const Step& step_;
  std::vector<int64_t> call_, first_, last_;
  int64_t count_ = 0;
};

class Profiler {
 public:
  Profiler(const PlacedStep& placed, int64_t micro_batches)
      : placed_(placed), step_(placed.step), at_(placed.step), micro_(micro_batches) {}

  StepProfile run() {
    const auto count = static_cast<size_t>(std::max<int64_t>(at_.count(), 1));
    for (auto* list : {&p_.forward, &p_.backward, &p_.update, &p_.reduce, &p_.gather, &p_.states,
                       &p_.gradients, &p_.kept, &p_.passes})
      list->assign(count, 0);
    add_work();
    add_transfers();
    add_states();
    add_kept();
    add_passes();
    find_blocks();
    return std::move(p_);
  }

 private:
  size_t place(size_t call) const { return static_cast<size_t>(at_.of_call(call)); }
  const StepValue& value(ValueId id) const { return step_.values[index(id)]; }

  void add_work() {
    for (size_t k = 0; k < step_.calls.size(); ++k) {
      const StepCall& call = step_.calls[k];
      const double runs = static_cast<double>(call.phase == Phase::Update ? 1 : micro_);
      list(call.phase)[place(k)] += placed_.work[k] / runs;
      double bytes = 0;
      for (ValueId id : call.operands) bytes += value(id).bytes;
      for (ValueId id : call.results) bytes += value(id).bytes;
      p_.transient = std::max(p_.transient, bytes / runs);
    }
  }
  std::vector<double>& list(Phase phase) {
    if (phase == Phase::Forward) return p_.forward;
    return phase == Phase::Backward ? p_.backward : p_.update;
  }

  void add_transfers() {
    for (const Transfer& t : placed_.transfers) {
      const StepValue& v = value(t.value);
      const size_t where = t.call >= 0 ? place(static_cast<size_t>(t.call))
                                       : place(static_cast<size_t>(std::max(v.maker, 0)));
      if (t.phase == Phase::Update)
        (v.written_to >= 0 ? p_.gather : p_.reduce)[where] += t.seconds;
      else
        list(t.phase)[where] += t.seconds / static_cast<double>(micro_);
    }
  }

  void add_states() {
    for (size_t s = 0; s < step_.program->states.size(); ++s) {
      const ValueId id = step_.program->states[s].value;
      p_.states[static_cast<size_t>(at_.of_state(id))] += value(id).bytes;
    }
    // Gradients: what updates read of the backward phase.
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const StepValue& made = step_.values[v];
      if (made.maker < 0 || step_.calls[static_cast<size_t>(made.maker)].phase != Phase::Backward)
        continue;
      for (int r : made.readers)
        if (step_.calls[static_cast<size_t>(r)].phase == Phase::Update) {
          p_.gradients[place(static_cast<size_t>(r))] += made.bytes;
          break;
        }
    }
  }

  // The value whose memory a view shows.
  ValueId shown_by(ValueId id) const {
    for (int depth = 0; depth < 64; ++depth) {
      const int maker = value(id).maker;
      if (maker < 0) return id;
      const StepCall& call = step_.calls[static_cast<size_t>(maker)];
      const Op& op = *step_.program->body.instructions[call.instruction].op;
      if (!op.has(Trait::View) || call.operands.empty()) return id;
      id = call.operands[0];
    }
    return id;
  }

  void add_kept() {
    std::vector<bool> seen(step_.values.size(), false);
    for (size_t v = 0; v < step_.values.size(); ++v) {
      if (!step_.reads_in(static_cast<ValueId>(v), Phase::Backward)) continue;
      const ValueId root = shown_by(static_cast<ValueId>(v));
      const StepValue& made = value(root);
      if (made.maker < 0 || seen[index(root)]) continue;
      if (step_.calls[static_cast<size_t>(made.maker)].phase != Phase::Forward) continue;
      seen[index(root)] = true;
      p_.kept[place(static_cast<size_t>(made.maker))] += made.bytes / static_cast<double>(micro_);
    }
  }

  void add_passes() {
    std::vector<double> change(p_.passes.size() + 1, 0);
    for (size_t v = 0; v < step_.values.size(); ++v) {
      const StepValue& made = step_.values[v];
      if (made.maker < 0 || step_.calls[static_cast<size_t>(made.maker)].phase != Phase::Forward)
        continue;
      size_t last = place(static_cast<size_t>(made.maker));
      const size_t first = last;
      for (int r : made.readers)
        if (step_.calls[static_cast<size_t>(r)].phase == Phase::Forward)
          last = std::max(last, place(static_cast<size_t>(r)));
      change[first] += made.bytes;
      change[last] -= made.bytes;
    }
    double bytes = 0;
    for (size_t i = 0; i < p_.passes.size(); ++i)
      p_.passes[i] = (bytes += change[i]) / static_cast<double>(micro_);
  }

  // A block ends where fewer bytes pass on than anywhere near.
  void find_blocks() {
    constexpr size_t kNear = 6;
    const size_t count = p_.passes.size();
    p_.blocks = {0};
    for (size_t i = 0; i + 1 < count; ++i) {
      const size_t from = i > kNear ? i - kNear : 0, to = std::min(i + kNear, count - 2);
      bool least = true;
      for (size_t k = from; k <= to; ++k)
        least &= p_.passes[i] < p_.passes[k] * (1 - 1e-9) ||
                 (p_.passes[i] <= p_.passes[k] * (1 + 1e-9) && k >= i) || k == i;
      if (least && i + 1 > p_.blocks.back() + 1) p_.blocks.push_back(i + 1);
    }
  }

  const PlacedStep& placed_;
  const Step& step_;
  const Positions at_;
  const int64_t micro_;
  StepProfile p_;
};

double sum_between(const std::vector<double>& list, size_t from, size_t to) {
  return std::accumulate(list.begin() + static_cast<std::ptrdiff_t>(from),
                         list.begin() + static_cast<std::ptrdiff_t>(to), 0.0);
}

}  // namespace

std::vector<size_t> cut_evenly(const std::vector<double>& weights, size_t count) {
  const size_t n = weights.size();
  user_check(count > 0 && count <= n, ErrorKind::InvalidArgument,
             "{} blocks cannot be cut into {} parts of a pipeline.\nhint: Ask for fewer stages.", n,
             count);
  std::vector<double> before(n + 1, 0);
  for (size_t i = 0; i < n; ++i) before[i + 1] = before[i] + weights[i];
  // best[k][i]: the largest sum of the first i weights in k runs, and where the last run begins.
  const double far = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(count + 1, std::vector<double>(n + 1, far));
  std::vector<std::vector<size_t>> from(count + 1, std::vector<size_t>(n + 1, 0));
  best[0][0] = 0;
  for (size_t k = 1; k <= count; ++k)
    for (size_t i = k; i <= n; ++i)
      for (size_t j = i; j-- > k - 1;) {
        const double run = before[i] - before[j];
        const double cost = std::max(best[k - 1][j], run);
        if (cost < best[k][i]) {
          best[k][i] = cost;
          from[k][i] = j;
        }
        if (run > best[k][i]) break;
      }
  std::vector<size_t> starts(count);
  for (size_t k = count, i = n; k > 0; --k) starts[k - 1] = i = from[k][i];
  return starts;
}

PlacedStep placed(const Step& step, const Machine& machine, std::vector<AxisPlan> axes,
                  int64_t micro_batches) {
  PlacedStep made{step, {}, {}, {}, {}};
  for (const AxisPlan& axis : axes) {
    const std::vector<Transfer> more = transfers_of(made.step, machine, axis, micro_batches);
    made.transfers.insert(made.transfers.end(), more.begin(), more.end());
    divide(made.step, axis);
  }
  // What a later axis divides, an earlier one no longer sends.
  for (Transfer& t : made.transfers) {
    const StepValue& v = made.step.values[index(t.value)];
    size_t axis = 0;
    while (axis < axes.size() && (axes[axis].axis.group.stride != t.group.stride ||
                                  axes[axis].axis.group.size != t.group.size))
      ++axis;
    double parts = 1;
    for (size_t later = axis + 1; later < axes.size(); ++later)
      if (axes[later].made[index(t.value)] >= 0)
        parts *= static_cast<double>(axes[later].axis.group.size);
    if (parts == 1 || v.bytes <= 0) continue;
    t.bytes /= parts;
    t.seconds = static_cast<double>(t.runs) * machine.time_of(t.collective, t.bytes, t.group);
  }
  for (const StepCall& call : made.step.calls) {
    const double runs = static_cast<double>(call.phase == Phase::Update ? 1 : micro_batches);
    made.work.push_back(runs * machine.time_of(Cost{call.cost.flops / runs, call.cost.bytes / runs,
                                                    call.cost.products / runs}));
  }
  made.axes = std::move(axes);
  made.profile = Profiler(made, micro_batches).run();
  return made;
}

PipelineRun pipeline_of(const PlacedStep& placed, const Machine& machine,
                        const StageOptions& options) {
  const StepProfile& p = placed.profile;
  std::vector<size_t> edges = p.blocks;
  edges.push_back(p.forward.size());
  std::vector<double> weights;
  for (size_t b = 0; b + 1 < edges.size(); ++b)
    weights.push_back(sum_between(p.forward, edges[b], edges[b + 1]) * (options.recompute ? 2 : 1) +
                      sum_between(p.backward, edges[b], edges[b + 1]));
  const auto parts = static_cast<size_t>(options.stages * options.interleave);
  std::vector<size_t> starts = cut_evenly(weights, parts);
  starts.push_back(weights.size());
  PipelineRun run;
  run.micro_batches = options.micro_batches;
  run.stages.resize(static_cast<size_t>(options.stages));
  for (size_t k = 0; k < parts; ++k) {
    const size_t from = edges[starts[k]], to = edges[starts[k + 1]];
    PipelinePart part;
    part.forward = sum_between(p.forward, from, to);
    part.backward = sum_between(p.backward, from, to) + (options.recompute ? part.forward : 0);
    if (k + 1 < parts) {
      part.sent = p.passes[to - 1];
      part.send = machine.time_of(Collective::Send, std::max(part.sent, 1.0), options.between);
    }
    part.activations = sum_between(p.kept, from, to);
    double largest_block = 0;
    if (options.recompute) {
      part.activations = 0;
      for (size_t b = starts[k]; b < starts[k + 1]; ++b) {
        part.activations += edges[b] == 0 ? 0 : p.passes[edges[b] - 1];
        largest_block = std::max(largest_block, sum_between(p.kept, edges[b], edges[b + 1]));
      }
    }
    PipelineStage& stage = run.stages[k % run.stages.size()];
    stage.reduce += sum_between(p.reduce, from, to);
    stage.gather += sum_between(p.gather, from, to);
    stage.update += sum_between(p.update, from, to);
    stage.memory +=
        sum_between(p.states, from, to) + sum_between(p.gradients, from, to) + largest_block;
    stage.hidden = machine.overlap;
    run.parts.push_back(part);
  }
  for (PipelineStage& stage : run.stages) stage.memory += p.transient;
  return run;
}

}  // namespace oar::planner
