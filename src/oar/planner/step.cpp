#include "oar/planner/step.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "oar/base/error.h"
#include "oar/base/hash.h"
#include "oar/base/string_util.h"
#include "oar/ir/cost.h"
#include "oar/ir/print.h"
#include "oar/ir/region.h"
#include "oar/ops/core/work.h"
#include "oar/ops/sharding/plan.h"

namespace oar::planner {
namespace {

std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (Dim d : shape) sizes.push_back(d.hint());
  return sizes;
}

// What the record says of one call, whatever its place in the program.
struct Facts {
  Cost cost;
  std::shared_ptr<const std::vector<Cut>> cuts;
  std::vector<int64_t> factors;
};

// An operand of a call with its place in the schema.
struct Place {
  size_t parameter, element;
  ValueId value;
};

// How many parts an update of a list of parameters has; 1 for other calls.
size_t parts_of(const Instruction& call) {
  if (!is_update(*call.op)) return 1;
  size_t parts = 1;
  for (size_t i = 0; i < call.operands.size(); ++i)
    if (call.op->schema().parameters[i].written && call.operands[i].kind == Operand::List)
      parts = std::max(parts, call.operands[i].ids.size());
  return parts;
}

// The call of one part: lists have its tensors only.
Instruction part_of(const Instruction& call, size_t parts, size_t part) {
  Instruction one(call);
  if (parts == 1) return one;
  for (Operand& operand : one.operands)
    if (operand.kind == Operand::List && operand.ids.size() == parts)
      operand.ids = {operand.ids[part]};
  return one;
}

std::vector<Place> places_of(const Instruction& call) {
  std::vector<Place> places;
  for (size_t i = 0; i < call.operands.size(); ++i)
    for (size_t k = 0; k < call.operands[i].ids.size(); ++k)
      if (call.operands[i].ids[k] != kNoValue) places.push_back({i, k, call.operands[i].ids[k]});
  return places;
}

Layout layout_in(const PlanTensor& tensor, int factor) {
  for (size_t axis = 0; axis < tensor.axes.size(); ++axis)
    if (tensor.axes[axis].factor == factor) return static_cast<Layout>(axis);
  return kWhole;
}

class FactsReader {
 public:
  FactsReader(const Program& program, const Instruction& call)
      : program_(program), call_(call), rules_(rules_of(*call.op)), places_(places_of(call)) {
    if (is_update(*call.op))
      for (size_t p = 0; p < places_.size(); ++p)
        if (call.op->schema().parameters[places_[p].parameter].written) rewritten_.push_back(p);
  }

  Facts read() {
    facts_.cost = work();
    cuts_.push_back(plain_cut());
    if (!has_regions(call_)) {
      add_partial_cuts();
      add_plan();
    }
    facts_.cuts = std::make_shared<const std::vector<Cut>>(std::move(cuts_));
    return std::move(facts_);
  }

 private:
  Frame bare() const {
    return with_operands(call_.attributes.clone(), call_, [&](size_t, ValueId id) {
      const ValueType& type = program_.type_of(id);
      return Tensor::meta(type.shape, type.dtype);
    });
  }

  Cost work() const {
    Cost cost = cost_of(program_, call_);
    if (cost.bytes >= 0) return cost;
    cost.bytes = 0;
    for (const Place& p : places_) cost.bytes += bytes(p.value);
    for (ValueId id : call_.results) cost.bytes += bytes(id);
    return cost;
  }
  double bytes(ValueId id) const {
    const ValueType& type = program_.type_of(id);
    return static_cast<double>(type.shape.numel().hint()) *
           static_cast<double>(bits_of(type.dtype)) / 8;
  }

  Cut plain_cut() const {
    return {-1,
            std::vector<Layout>(places_.size(), kWhole),
            std::vector<Layout>(call_.results.size(), kWhole),
            {}};
  }

  // Sums pass through linear calls: of all operands together, or of one while the others are whole.
  void add_partial_cuts() {
    const auto add = [&](const std::vector<size_t>& partial) {
      if (partial.empty()) return;
      Cut cut = plain_cut();
      for (size_t p : partial) cut.operands[p] = kPartial;
      std::fill(cut.results.begin(), cut.results.end(), kPartial);
      cuts_.push_back(std::move(cut));
    };
    std::vector<size_t> all(places_.size());
    std::iota(all.begin(), all.end(), size_t{0});
    if (rules_.has(Trait::Linear) || rules_.has(Trait::Moves) || rules_.has(Trait::View)) add(all);
    for (const std::string_view name : split(std::string_view(linear_in()), ' ')) {
      const int parameter = name.empty() ? -1 : rules_.schema().index_of(name);
      std::vector<size_t> partial;
      for (size_t p : all)
        if (static_cast<int>(places_[p].parameter) == parameter) partial.push_back(p);
      add(partial);
    }
  }
  const char* linear_in() const {
    const char* names = rules_.def().linear_in;
    return names ? names : "";
  }

  void add_plan() {
    const Frame frame = bare();
    const ShardPlan plan = plan_of(*call_.op, frame.args());
    for (const PlanFactor& f : plan.factors) facts_.factors.push_back(f.size.hint());
    if (plan.operands.size() != places_.size()) return;  // an empty tensor in a list
    for (size_t f = 0; f < plan.factors.size(); ++f) add_factor(plan, static_cast<int>(f));
  }

  void add_factor(const ShardPlan& plan, int factor) {
    const auto f = static_cast<size_t>(factor);
    Cut cut = plain_cut();
    cut.factor = factor;
    for (size_t p = 0; p < places_.size(); ++p)
      if (const PlanTensor* t = plan.operand(places_[p].parameter, places_[p].element))
        cut.operands[p] = layout_in(*t, factor);
    for (size_t r = 0; r < cut.results.size(); ++r) {
      if (!rewritten_.empty()) {
        if (r < rewritten_.size()) cut.results[r] = cut.operands[rewritten_[r]];
        continue;
      }
      if (r >= plan.results.size()) return;
      switch (plan.join_of(f, r)) {
        case Join::Concat:
          cut.results[r] = layout_in(plan.results[r], factor);
          break;
        case Join::Same:
          break;
        case Join::Sum:
        case Join::Mean:
          cut.results[r] = kPartial;
          break;
        default:
          cut.joined.push_back(r);
      }
    }
    cuts_.push_back(std::move(cut));
  }

  const Program& program_;
  const Instruction& call_;
  const Op& rules_;
  const std::vector<Place> places_;
  std::vector<size_t> rewritten_;  // for each result of an update: the operand that it replaces
  std::vector<Cut> cuts_;
  Facts facts_;
};

uint64_t signature_of(const Program& program, const Instruction& call) {
  size_t seed = hash_all(std::string_view(call.op->name()), attributes_text(call));
  for (const Operand& operand : call.operands) {
    hash_combine(seed,
                 static_cast<int>(operand.kind) * 1000 + static_cast<int>(operand.ids.size()));
    for (ValueId id : operand.ids)
      hash_combine(seed, id == kNoValue ? std::string("None") : program.type_of(id).str());
  }
  for (ValueId id : call.results) hash_combine(seed, program.type_of(id).str());
  return seed;
}

class StepReader {
 public:
  explicit StepReader(const Program& program) { step_.program = &program; }

  Step read() {
    read_values();
    read_calls();
    find_phases();
    find_batch();
    return std::move(step_);
  }

 private:
  const Program& program() const { return *step_.program; }
  StepValue& value(ValueId id) { return step_.values[static_cast<size_t>(id)]; }

  void read_values() {
    step_.values.resize(program().values.size());
    for (size_t id = 0; id < step_.values.size(); ++id) {
      const ValueType& type = program().values[id].type;
      StepValue& v = step_.values[id];
      v.shape = sizes_of(type.shape);
      v.bytes = v.whole_bytes = static_cast<double>(type.shape.numel().hint()) *
                                static_cast<double>(bits_of(type.dtype)) / 8;
    }
    for (ValueId id : program().inputs) value(id).origin = Origin::Input;
    for (size_t s = 0; s < program().states.size(); ++s) {
      const State& state = program().states[s];
      value(state.value).origin = Origin::State;
      value(state.value).state = static_cast<int>(s);
      if (state.written != kNoValue) value(state.written).written_to = static_cast<int>(s);
    }
    for (ValueId id : program().outputs) value(id).output = true;
  }

  void read_calls() {
    const auto& instructions = program().body.instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      if (is_constant(instructions[i])) continue;
      const size_t parts = parts_of(instructions[i]);
      for (size_t part = 0; part < parts; ++part) add_call(i, parts, part);
    }
  }

  // Made of numbers alone: every device makes what it needs of it, as of other constants.
  static bool is_constant(const Instruction& call) {
    return places_of(call).empty() && !has_regions(call) && !call.op->has(Trait::Random);
  }

  void add_call(size_t i, size_t parts, size_t part) {
    const Instruction& whole = program().body.instructions[i];
    Instruction one = part_of(whole, parts, part);
    if (parts > 1) one.results = results_of_part(whole, parts, part);
    StepCall call;
    call.instruction = i;
    for (const Place& p : places_of(one)) call.operands.push_back(p.value);
    call.results.assign(one.results.begin(), one.results.end());
    call.signature = signature_of(program(), one);
    auto found = facts_.find(call.signature);
    if (found == facts_.end())
      found = facts_.emplace(call.signature, FactsReader(program(), one).read()).first;
    call.cost = found->second.cost;
    call.cuts = found->second.cuts;
    call.factors = found->second.factors;
    const int number = static_cast<int>(step_.calls.size());
    for (ValueId id : call.results) {
      value(id).origin = Origin::Call;
      value(id).maker = number;
    }
    for (ValueId id : call.operands)
      if (auto& readers = value(id).readers; readers.empty() || readers.back() != number)
        readers.push_back(number);
    step_.calls.push_back(std::move(call));
  }

  // Results of an update are in the order of what it writes: for each written list, one for each part.
  static std::vector<ValueId> results_of_part(const Instruction& call, size_t parts, size_t part) {
    std::vector<ValueId> results;
    size_t at = 0;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      if (!call.op->schema().parameters[i].written) continue;
      const SmallVector<ValueId, 2>& ids = call.operands[i].ids;
      const bool list = call.operands[i].kind == Operand::List && ids.size() == parts;
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k] == kNoValue) continue;
        if (at < call.results.size() && (list ? k == part : part == 0))
          results.push_back(call.results[at]);
        ++at;
      }
    }
    return results;
  }

  void find_phases() {
    const size_t count = step_.calls.size();
    std::vector<bool> forward(count, false), update(count, false);
    for (size_t c = count; c-- > 0;) {
      const StepCall& call = step_.calls[c];
      const auto leads_on = [&](ValueId id) {
        const StepValue& v = value(id);
        return v.output || std::any_of(v.readers.begin(), v.readers.end(),
                                       [&](int r) { return forward[static_cast<size_t>(r)]; });
      };
      forward[c] = std::any_of(call.results.begin(), call.results.end(), leads_on);
    }
    for (size_t c = 0; c < count; ++c) {
      const StepCall& call = step_.calls[c];
      const auto follows = [&](ValueId id) {
        return value(id).maker >= 0 && update[static_cast<size_t>(value(id).maker)];
      };
      const auto from_outside = [&](ValueId id) {
        return value(id).origin == Origin::State || value(id).origin == Origin::Constant ||
               follows(id);
      };
      const bool writes = std::any_of(call.results.begin(), call.results.end(),
                                      [&](ValueId id) { return value(id).written_to >= 0; });
      const bool states_only =
          std::all_of(call.operands.begin(), call.operands.end(), from_outside) &&
          std::any_of(call.operands.begin(), call.operands.end(),
                      [&](ValueId id) { return value(id).origin == Origin::State || follows(id); });
      update[c] = !forward[c] && (is_update(*program().body.instructions[call.instruction].op) ||
                                  writes || (states_only && only_small(call)) ||
                                  std::any_of(call.operands.begin(), call.operands.end(), follows));
    }
    for (size_t c = 0; c < count; ++c)
      step_.calls[c].phase =
          forward[c] ? Phase::Forward : (update[c] ? Phase::Update : Phase::Backward);
    const bool learns = std::any_of(step_.calls.begin(), step_.calls.end(),
                                    [](const StepCall& c) { return c.phase == Phase::Update; });
    user_check(
        learns, ErrorKind::InvalidArgument,
        "the program {} changes no state, so it is no training step.\nhint: Capture a function "
        "that calls backward() and optimizer.step(), and returns the loss.",
        program().name);
    user_check(std::find(forward.begin(), forward.end(), true) != forward.end(),
               ErrorKind::InvalidArgument,
               "the program {} returns nothing that it computes, so its forward phase is "
               "unknown.\nhint: Return the loss.",
               program().name);
  }
  // Schedules and counters: numbers, not what a gradient needs of a weight.
  bool only_small(const StepCall& call) {
    return std::all_of(call.results.begin(), call.results.end(),
                       [&](ValueId id) { return value(id).bytes <= 64; });
  }

  void find_batch() {
    int64_t batch = 0;
    for (ValueId id : program().inputs)
      if (!value(id).shape.empty()) batch = std::gcd(batch, value(id).shape[0]);
    step_.batch = std::max<int64_t>(batch, 1);
    for (ValueId id : program().inputs)
      if (!value(id).shape.empty()) value(id).batch_axis = 0;
    for (const StepCall& call : step_.calls)
      for (const Cut& cut : *call.cuts)
        if (step_.cuts_batch(call, cut))
          for (size_t r = 0; r < call.results.size(); ++r)
            if (cut.results[r] >= 0) value(call.results[r]).batch_axis = cut.results[r];
  }

  Step step_;
  std::unordered_map<uint64_t, Facts> facts_;
};

}  // namespace

std::string text_of(Layout layout) {
  if (layout == kWhole) return "whole";
  return layout == kPartial ? "partial" : format("cut {}", static_cast<int>(layout));
}

bool Step::cuts_batch(const StepCall& call, const Cut& cut) const {
  for (size_t p = 0; p < call.operands.size(); ++p)
    if (const Layout axis = values[static_cast<size_t>(call.operands[p])].batch_axis;
        axis >= 0 && cut.operands[p] == axis)
      return true;
  return false;
}

bool Step::reads_in(ValueId value, Phase phase) const {
  const std::vector<int>& readers = values[static_cast<size_t>(value)].readers;
  return std::any_of(readers.begin(), readers.end(),
                     [&](int r) { return calls[static_cast<size_t>(r)].phase == phase; });
}

bool Step::is_parameter(size_t state) const {
  const State& s = program->states[state];
  return s.written != kNoValue && reads_in(s.value, Phase::Forward);
}

bool Step::is_moment(size_t state) const {
  const State& s = program->states[state];
  return s.written != kNoValue && !reads_in(s.value, Phase::Forward) &&
         !reads_in(s.value, Phase::Backward);
}

Step read_step(const Program& program) { return StepReader(program).read(); }

}  // namespace oar::planner
