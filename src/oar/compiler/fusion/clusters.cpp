#include "oar/compiler/fusion/clusters.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "oar/base/flags.h"
#include "oar/base/format.h"
#include "oar/compiler/fusion/graph.h"
#include "oar/compiler/fusion/nest.h"
#include "oar/compiler/fusion/worth.h"
#include "oar/compiler/passes/edit.h"
#include "oar/ops/core/work.h"
#include "oar/runtime/layout.h"
#include "oar/tensor/byte_count.h"

namespace oar::fusion {
namespace {

bool is_view(const Instruction& call) { return static_cast<bool>(call.op->def().view); }

double bytes_of(const ValueType& type) {
  return static_cast<double>(byte_count(type.shape.numel().value(), type.dtype));
}

// Cuts calls out of a program as one of their own.
class Cutter {
 public:
  Cutter(const Program& program, const CallGraph& graph) : program_(program), graph_(graph) {
    numbers_.resize(program.values.size());
    for (const Constant& c : program.constants)
      numbers_[static_cast<size_t>(c.value)] = number_of(c.tensor);
  }

  Group cut(std::vector<size_t> calls) {
    Group made;
    made.calls = std::move(calls);
    inside_ = std::set<size_t>(made.calls.begin(), made.calls.end());
    ids_.clear();
    made.region.name = "fused";
    for (const size_t call : made.calls)
      for_each_operand(program_.body.instructions[call], [&](ValueId id) { bring(made, id); });
    // Inputs and numbers are there now; the calls follow in order, each after the views that it reads.
    for (const size_t call : made.calls) append(made, call);
    for (const size_t call : made.calls)
      for (ValueId id : program_.body.instructions[call].results)
        if (is_read_outside(id)) {
          made.outputs.push_back(id);
          made.region.outputs.push_back(ids_.at(id));
        }
    made.region.renumber();
    return made;
  }

 private:
  // A number, or a table of one number: folding makes such of numbers that are spread. Undefined for others.
  static Tensor number_of(const Tensor& t) {
    if (!is_one_number(t)) return {};
    return Tensor::view_of(t->storage, Shape{}, Ints(), t->data, t.dtype());
  }
  bool is_number_behind(ValueId id) const {
    for (int maker = graph_.maker(id); maker >= 0; maker = graph_.maker(id)) {
      const Instruction& call = program_.body.instructions[static_cast<size_t>(maker)];
      if (!is_view(call)) return false;
      id = operand(call, 0);
    }
    return numbers_[static_cast<size_t>(id)].defined();
  }
  bool comes_along(ValueId id) const {
    const int maker = graph_.shown(id);
    return (maker >= 0 && inside_.count(static_cast<size_t>(maker)) > 0) || is_number_behind(id);
  }

  ValueId add(Group& group, ValueId id) {
    const ValueId made = group.region.add_value(program_.type_of(id));
    ids_[id] = made;
    return made;
  }

  // Makes inputs and constants of what the calls read from outside.
  void bring(Group& group, ValueId id) {
    if (ids_.count(id) > 0) return;
    if (comes_along(id)) {
      const int maker = graph_.maker(id);
      if (maker >= 0 && inside_.count(static_cast<size_t>(maker)) > 0) return;
      if (maker >= 0)
        return bring(group, operand(program_.body.instructions[static_cast<size_t>(maker)], 0));
      return bring_number(group, id);
    }
    group.region.inputs.push_back(add(group, id));
    group.inputs.push_back(id);
  }

  void bring_number(Group& group, ValueId id) {
    const Tensor& number = numbers_[static_cast<size_t>(id)];
    const ValueId made = add(group, id);
    const ValueType& type = program_.type_of(id);
    if (type.shape.empty()) {
      group.region.constants.push_back({made, number});
      return;
    }
    const ValueId single = group.region.add_value({type.dtype, Shape{}, type.device, nullptr});
    group.region.constants.push_back({single, number});
    SmallVector<int64_t, 6> sizes;
    for (Dim d : type.shape) sizes.push_back(d.value());
    group.region.body.instructions.push_back(
        NewCall(get_op("broadcast_to"), made)
            .operand("x", single)
            .attribute("shape", Value(Ints(sizes.data(), sizes.size())))
            .take());
  }

  void append(Group& group, size_t index) {
    const Instruction& call = program_.body.instructions[index];
    for_each_operand(call, [&](ValueId id) {
      const int maker = graph_.maker(id);
      if (ids_.count(id) > 0 || maker < 0) return;
      append(group, static_cast<size_t>(maker));  // a view of what is there
    });
    Instruction& copy = group.region.body.instructions.emplace_back(call);
    for (Operand& operand : copy.operands)
      for (ValueId& id : operand.ids)
        if (id != kNoValue) id = ids_.at(id);
    for (ValueId& id : copy.results) id = add(group, id);
  }

  // By a call outside, perhaps through views, or by the caller of the program.
  bool is_read_outside(ValueId id) const {
    if (graph_.is_given_back(id)) return true;
    for (const size_t reader : graph_.readers(id)) {
      if (inside_.count(reader) > 0) continue;
      const Instruction& call = program_.body.instructions[reader];
      if (!is_view(call) || is_read_outside(call.results[0])) return true;
    }
    return false;
  }

  const Program& program_;
  const CallGraph& graph_;
  std::vector<Tensor> numbers_;  // by value
  std::set<size_t> inside_;
  std::unordered_map<ValueId, ValueId> ids_;
};

class Grouping {
 public:
  explicit Grouping(const Program& program)
      : program_(program), graph_(program), cutter_(program, graph_) {}

  std::vector<Group> run() {
    for (size_t i = 0; i < graph_.size(); ++i) facts_.push_back(facts_of(i));
    join_all();
    // Without the burdens of groups that do not pay, what is left of these may.
    if (drop_burdens()) {
      graph_ = CallGraph(program_);
      join_all();
    }
    std::vector<Group> made;
    for (size_t i = 0; i < graph_.size(); ++i)
      if (graph_.group(i) == i && graph_.members(i).size() > 1)
        if (std::optional<Group> group = checked(graph_.members(i)); group && pays(*group, true))
          made.push_back(std::move(*group));
    double seconds = 0;
    for (const Group& group : made) seconds += group.seconds_saved;
    if (pays_to_load(seconds, made.size())) return made;
    if (tracing(Trace::Fusion) && !made.empty())
      std::fprintf(stderr, "fusion: %zu loops are not made: all together save %.2f us\n",
                   made.size(), 1e6 * seconds);
    return {};
  }

 private:
  struct Facts {
    bool fusible = false;
    bool simple = false;  // elementwise, with a scalar body
    Shape domain;
    double extra = 0;  // seconds of an element, more than in the call's own kernel
    std::string why;
  };

  void join_all() {
    for (size_t i = 0; i < graph_.size(); ++i)
      if (facts_[i].fusible) join_with_sources(i);
  }

  bool drop_burdens() {
    bool dropped = false;
    for (size_t i = 0; i < graph_.size(); ++i) {
      const std::vector<size_t>& members = graph_.members(i);
      if (graph_.group(i) != i || members.size() < 2 ||
          std::none_of(members.begin(), members.end(), [&](size_t m) { return is_burden(m); }))
        continue;
      if (std::optional<Group> group = checked(members); group && pays(*group, false)) continue;
      for (const size_t member : members)
        if (is_burden(member)) {
          facts_[member].fusible = false;
          dropped = true;
        }
    }
    return dropped;
  }
  bool is_burden(size_t call) const { return facts_[call].extra >= kBurden; }

  bool pays(Group& group, bool is_final) const {
    double extra = 0;
    for (const size_t call : group.calls)
      extra += facts_[call].extra * static_cast<double>(facts_[call].domain.numel().value());
    group.seconds_saved = seconds_saved(group.bytes_saved, group.calls.size(), extra);
    const bool paid = fusion::pays(group.seconds_saved);
    if (!paid && is_final && tracing(Trace::Fusion))
      std::fprintf(stderr,
                   "fusion: %s and %zu calls around it stay apart: one loop saves %.2f us\n",
                   program_.body.instructions[group.calls[0]].op->name().c_str(),
                   group.calls.size() - 1, 1e6 * group.seconds_saved);
    return paid;
  }

  Facts facts_of(size_t i) {
    const Instruction& call = program_.body.instructions[i];
    Facts facts;
    if (is_view(call) || call.results.empty() || takes_lists(call)) return facts;
    std::string why;
    const Group alone = cutter_.cut({i});
    const std::shared_ptr<const FusedLoop> loop =
        alone.outputs.empty() ? nullptr : loop_of(alone.region, &why);
    facts.why = why;
    if (!loop || !is_worth(*loop, alone)) {
      say(call, loop ? "it has long rows, joins few elements or jumps in memory" : why.c_str());
      return facts;
    }
    facts.fusible = true;
    facts.simple = loop->folded == 0 && loop->totals.empty() && call.op->scalar() != nullptr;
    facts.domain = loop->domain;
    facts.extra = extra_seconds(*loop);
    return facts;
  }
  // At the strides that the views outside give the inputs.
  bool is_worth(const FusedLoop& loop, const Group& group) const {
    if (!loop.is_worth()) return false;
    std::vector<Tensor> inputs;
    for (ValueId id : group.inputs) inputs.push_back(layout(id));
    const std::optional<Nest> nest = Nest::of(loop, inputs);
    return nest && (fuses_all() || !nest->jumps());
  }
  Tensor layout(ValueId id) const {
    const int maker = graph_.maker(id);
    if (maker >= 0) {
      const Instruction& call = program_.body.instructions[static_cast<size_t>(maker)];
      if (is_view(call)) {
        Frame frame = call.attributes.clone();
        const Tensor base = layout(operand(call, 0));
        frame.set_tensor(0, base);
        if (const std::optional<ViewSpec> spec = call.op->def().view(frame.args()))
          return layout_of(*spec, base);
      }
    }
    return layout_of(program_.type_of(id));
  }

  static bool takes_lists(const Instruction& call) {
    return std::any_of(call.operands.begin(), call.operands.end(),
                       [](const Operand& o) { return o.kind == Operand::List; });
  }
  static void say(const Instruction& call, const char* why) {
    if (tracing(Trace::Fusion))
      std::fprintf(stderr, "fusion: %s stays alone: %s\n", call.op->name().c_str(), why);
  }

  void join_with_sources(size_t i) {
    const Instruction& call = program_.body.instructions[i];
    for_each_operand(call, [&](ValueId id) {
      const int maker = graph_.shown(id);
      if (maker < 0 || !facts_[static_cast<size_t>(maker)].fusible || is_behind_mark(id)) return;
      const bool direct = graph_.maker(id) == maker;
      try_join(static_cast<size_t>(maker), i, direct);
    });
  }

  // What belongs to the derivative is computed later than what it is computed from, for the sake of memory.
  bool is_behind_mark(ValueId id) const {
    for (int maker = graph_.maker(id); maker >= 0; maker = graph_.maker(id)) {
      const Instruction& call = program_.body.instructions[static_cast<size_t>(maker)];
      if (!is_view(call)) return false;
      if (call.op->has(Trait::BackwardMark)) return true;
      id = operand(call, 0);
    }
    return false;
  }

  void try_join(size_t maker, size_t reader, bool direct) {
    const size_t a = graph_.group(maker), b = graph_.group(reader);
    if (a == b || !graph_.can_join(a, b)) return;
    bool plain = direct;
    for (const size_t g : {a, b})
      for (const size_t call : graph_.members(g))
        plain &= facts_[call].simple && facts_[call].domain == facts_[reader].domain;
    if (!plain) {
      std::vector<size_t> both = graph_.members(a);
      both.insert(both.end(), graph_.members(b).begin(), graph_.members(b).end());
      std::sort(both.begin(), both.end());
      std::string why;
      const Group joint = cutter_.cut(std::move(both));
      const std::shared_ptr<const FusedLoop> loop = loop_of(joint.region, &why);
      if (!loop || !is_worth(*loop, joint)) return;
    }
    graph_.join(a, b);
  }

  std::optional<Group> checked(const std::vector<size_t>& members) {
    Group group = cutter_.cut(members);
    std::string why;
    group.loop = loop_of(group.region, &why);
    if (!group.loop || !is_worth(*group.loop, group)) {
      say(program_.body.instructions[members[0]], why.c_str());
      return std::nullopt;
    }
    group.bytes_saved = saved(group);
    return group;
  }

  // What the calls read and write one by one, less what they do together.
  double saved(const Group& group) const {
    double apart = 0, together = 0;
    for (const size_t i : group.calls) {
      const Instruction& call = program_.body.instructions[i];
      for_each_operand(call, [&](ValueId id) { apart += moved(id); });
      for (ValueId id : call.results) apart += moved(id);
    }
    for (ValueId id : group.inputs) together += moved(id);
    for (ValueId id : group.outputs) together += moved(id);
    return apart - together;
  }
  // A view that repeats elements moves those of its base.
  double moved(ValueId id) const {
    double least = bytes_of(program_.type_of(id));
    for (int maker = graph_.maker(id); maker >= 0; maker = graph_.maker(id)) {
      const Instruction& call = program_.body.instructions[static_cast<size_t>(maker)];
      if (!is_view(call)) break;
      id = operand(call, 0);
      least = std::min(least, bytes_of(program_.type_of(id)));
    }
    return least;
  }

  const Program& program_;
  CallGraph graph_;
  Cutter cutter_;
  std::vector<Facts> facts_;
};

}  // namespace

std::vector<Group> find_groups(const Program& program) { return Grouping(program).run(); }

void replace_groups(Program& program, const std::vector<Group>& groups) {
  CallGraph graph(program);
  std::map<size_t, const Group*> by_node;
  for (const Group& group : groups) {
    size_t node = group.calls[0];
    for (size_t k = 1; k < group.calls.size(); ++k) node = graph.join(node, group.calls[k]);
    by_node[node] = &group;
  }
  std::vector<Instruction> sorted;
  for (const size_t node : graph.sorted()) {
    const auto found = by_node.find(node);
    if (found == by_node.end()) {
      sorted.push_back(std::move(program.body.instructions[node]));
      continue;
    }
    const Group& group = *found->second;
    const Instruction& last = program.body.instructions[group.calls.back()];
    Instruction call;
    call.op = &get_op("fused");
    call.operands.push_back({Operand::List, {group.inputs.begin(), group.inputs.end()}});
    call.operands.emplace_back();
    const ClosurePtr body = make_intrusive<const Region>(group.region);
    call.attributes.push(Value());
    call.attributes.push(program_value(body));
    call.results = group.outputs;
    call.location = last.location;
    call.layer = last.layer;
    call.called = last.called;
    sorted.push_back(std::move(call));
  }
  program.body.instructions = std::move(sorted);
}

}  // namespace oar::fusion
