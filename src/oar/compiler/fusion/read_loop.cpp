// From a region to its loop.
#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "oar/base/format.h"
#include "oar/compiler/fusion/loop.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/expand.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/work.h"
#include "oar/runtime/layout.h"
#include "oar/runtime/region_runs.h"
#include "oar/tensor/element.h"

namespace oar::fusion {
namespace {

constexpr size_t kMostPorts = 48;
constexpr int kDeepest = 8;  // decompositions inside each other

// A value of the region, before it is known for which elements it is wanted.
struct Node {
  enum Kind : uint8_t { Input, Number, Call, View, Rounded };
  Kind kind = Input;
  const Instruction* call = nullptr;
  std::vector<int> operands{};  // by parameter of the call; -1 for attributes
  size_t result = 0;
  size_t input = 0;
  double real = 0;
  int64_t integer = 0;
  ValueType type;
  std::vector<DType> made{};  // of all results of the call
  bool rounds = true;         // 16-bit floats are rounded as an eager call's are
};

class Reader {
 public:
  explicit Reader(const Program& region) : region_(region) {}

  std::shared_ptr<FusedLoop> run() {
    std::vector<int> inputs;
    for (size_t i = 0; i < region_.inputs.size(); ++i)
      inputs.push_back(
          add({.kind = Node::Input, .input = i, .type = region_.type_of(region_.inputs[i])}));
    const std::vector<int> outputs = read(region_, inputs, true, 0);
    find_domain(outputs);
    for (const int output : outputs) {
      const Node& node = nodes_[static_cast<size_t>(output)];
      loop_->made.push_back(node.type.shape);
      if (const int fold = unrounded(output); is_total(fold)) {
        add_total(nodes_[static_cast<size_t>(fold)]);
        continue;
      }
      check_output(node);
      loop_->kernel.results.push_back(step_of(output, {}));
      loop_->kernel.outputs.push_back({.dtype = node.type.dtype});
    }
    loop_->kernel.steps = steps_.take();
    check_totals();
    place();
    return std::move(loop_);
  }

 private:
  using Views = std::vector<const Instruction*>;

  int add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size() - 1);
  }

  // ---- reading the program

  std::vector<int> read(const Program& program, const std::vector<int>& inputs, bool rounds,
                        int depth) {
    std::vector<int> known(program.values.size(), -1);
    const auto at = [&](ValueId id) -> int& { return known[static_cast<size_t>(id)]; };
    for (size_t i = 0; i < inputs.size(); ++i) at(program.inputs[i]) = inputs[i];
    for (const Constant& c : program.constants)
      at(c.value) = number(program.type_of(c.value), c.tensor);
    for (const Instruction& call : program.body.instructions) {
      std::vector<int> operands;
      for (const Operand& operand : call.operands) {
        if (operand.kind == Operand::List) throw NotFusible{"it takes a list"};
        const ValueId id = operand.kind == Operand::One ? operand.ids[0] : kNoValue;
        operands.push_back(id == kNoValue ? -1 : at(id));
      }
      const std::vector<int> made = read_call(program, call, operands, rounds, depth);
      for (size_t r = 0; r < call.results.size(); ++r) at(call.results[r]) = made[r];
    }
    std::vector<int> outputs;
    for (ValueId id : program.outputs) outputs.push_back(at(id));
    return outputs;
  }

  int number(const ValueType& type, const Tensor& t) {
    computed_as(t.dtype());
    if (!is_one_number(t)) throw NotFusible{"a part of it is a table"};
    Node node{.kind = Node::Number, .type = type};
    if (is_floating(t.dtype()))
      node.real = load_element(t->data, t.dtype()).real();
    else
      node.integer = load_integer(t->data, t.dtype());
    return add(std::move(node));
  }

  std::vector<int> read_call(const Program& program, const Instruction& call,
                             const std::vector<int>& operands, bool rounds, int depth) {
    const Op& op = *call.op;
    for (ValueId id : call.results) {
      const ValueType& type = program.type_of(id);
      if (!type.device.is_cpu() || !type.shape.is_known())
        throw NotFusible{"it is not on the CPU at known sizes"};
    }
    if (op.def().view)
      return {add({.kind = Node::View,
                   .call = &call,
                   .operands = operands,
                   .type = program.type_of(call.results[0])})};
    check_kind(program, call);
    if (const ScalarBody* body = op.scalar(); body && (body->folds() || fits(program, call)))
      return read_body(program, call, operands, rounds);
    return read_parts(program, call, operands, rounds, depth);
  }

  static void check_kind(const Program& program, const Instruction& call) {
    const Op& op = *call.op;
    if (!op.is_built_in() || op.has(Trait::Random) || op.has(Trait::DataDependent) ||
        is_update(op) || has_regions(call))
      throw NotFusible{"it does more than compute elements"};
    if (op.has(Trait::MayFail) && !is_floating(program.type_of(call.results[0]).dtype))
      throw NotFusible{"it checks its operands"};
  }
  // Are operands and results of one shape?
  static bool fits(const Program& program, const Instruction& call) {
    const Shape& shape = program.type_of(call.results[0]).shape;
    bool same = true;
    for_each_operand(call, [&](ValueId id) { same &= program.type_of(id).shape == shape; });
    for (ValueId id : call.results) same &= program.type_of(id).shape == shape;
    return same;
  }

  std::vector<int> read_body(const Program& program, const Instruction& call,
                             const std::vector<int>& operands, bool rounds) {
    std::vector<DType> made;
    for (ValueId id : call.results) {
      made.push_back(program.type_of(id).dtype);
      computed_as(made.back());
    }
    std::vector<int> results;
    for (size_t r = 0; r < call.results.size(); ++r)
      results.push_back(add({.kind = Node::Call,
                             .call = &call,
                             .operands = operands,
                             .result = r,
                             .type = program.type_of(call.results[r]),
                             .made = made,
                             .rounds = rounds}));
    return results;
  }

  // Inside a decomposition nothing is rounded to 16 bits, as in the kernel that it stands for.
  std::vector<int> read_parts(const Program& program, const Instruction& call,
                              const std::vector<int>& operands, bool rounds, int depth) {
    if (depth == kDeepest) throw NotFusible{"its decomposition is too deep"};
    if (cost_of(*call.op, meta_call(program, call).args(), meta_results(program, call)).products >
        0)
      throw NotFusible{"it is a product"};
    std::optional<Program> parts = parts_of(program, call, Device{});
    if (!parts) throw NotFusible{"it has no scalar body and no decomposition"};
    const Program& inner = programs_.emplace_back(std::move(*parts));
    std::vector<int> inputs;
    for (const int operand : operands)
      if (operand >= 0) inputs.push_back(operand);
    std::vector<int> outputs = read(inner, inputs, false, depth + 1);
    if (rounds)
      for (int& output : outputs) {
        const ValueType type = nodes_[static_cast<size_t>(output)].type;
        if (is_floating(type.dtype) && size_of(type.dtype) == 2)
          output = add({.kind = Node::Rounded, .operands = {output}, .type = type});
      }
    return outputs;
  }
  static Frame meta_call(const Program& program, const Instruction& call) {
    return with_operands(call.attributes.clone(), call, [&](size_t, ValueId id) {
      const ValueType& type = program.type_of(id);
      return Tensor::meta(type.shape, type.dtype, type.device);
    });
  }
  static std::vector<Tensor> meta_results(const Program& program, const Instruction& call) {
    std::vector<Tensor> made;
    for (ValueId id : call.results) {
      const ValueType& type = program.type_of(id);
      made.push_back(Tensor::meta(type.shape, type.dtype, type.device));
    }
    return made;
  }

  // ---- the elements of the loop

  static bool folds(const Node& node) {
    return node.kind == Node::Call && node.call->op->scalar()->folds();
  }
  const Node& operand_of_fold(const Node& fold) const {
    return nodes_[static_cast<size_t>(fold.operands[0])];
  }
  std::vector<bool> folded_axes(const Node& fold) const {
    const Shape& shape = operand_of_fold(fold).type.shape;
    std::vector<bool> made(shape.size(), false);
    const Value& axis = attribute(*fold.call, "axis");
    if (axis.is_none() || axis.as_dim_list().empty()) made.assign(shape.size(), true);
    if (!axis.is_none())
      for (Dim d : axis.as_dim_list()) {
        const int64_t a = d.value();
        made[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(shape.size()) : a)] = true;
      }
    return made;
  }

  // Rounding to 16 bits is left to whoever joins the last parts of a total.
  int unrounded(int id) const {
    const Node& node = nodes_[static_cast<size_t>(id)];
    return node.kind == Node::Rounded ? node.operands[0] : id;
  }
  bool is_total(int id) const { return totals_[static_cast<size_t>(id)]; }

  // Reads of each node by others that the outputs need.
  std::vector<int> reads_of(const std::vector<int>& outputs) const {
    std::vector<int> reads(nodes_.size(), 0);
    std::vector<bool> needed(nodes_.size(), false);
    for (const int output : outputs) needed[static_cast<size_t>(unrounded(output))] = true;
    for (size_t i = nodes_.size(); i-- > 0;) {  // operands come first
      if (!needed[i]) continue;
      for (const int operand : nodes_[i].operands)
        if (operand >= 0) {
          ++reads[static_cast<size_t>(operand)];
          needed[static_cast<size_t>(operand)] = true;
        }
    }
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (!needed[i]) reads[i] = -1;
    return reads;
  }

  static bool is_last(const std::vector<bool>& axes, size_t count) {
    return std::all_of(axes.end() - static_cast<std::ptrdiff_t>(count), axes.end(),
                       [](bool on) { return on; });
  }

  // A fold of the last axes is one over rows; any other is a total, which nothing in the loop may read.
  void find_domain(const std::vector<int>& outputs) {
    const std::vector<int> reads = reads_of(outputs);
    totals_.assign(nodes_.size(), false);
    bool found = false;
    for (const bool inside : {true, false})
      for (size_t i = 0; i < nodes_.size(); ++i)
        if (folds(nodes_[i]) && (inside ? reads[i] > 0 : reads[i] == 0))
          place_fold(i, inside, found);
    for (const int output : outputs) {
      const Shape& shape = nodes_[static_cast<size_t>(output)].type.shape;
      if (!found && (loop_->domain.numel().value() < shape.numel().value() || output == outputs[0]))
        loop_->domain = shape;
    }
    for (Dim d : loop_->domain)
      if (d == Dim(0)) throw NotFusible{"it has no elements"};
  }

  void place_fold(size_t id, bool inside, bool& found) {
    const Node& fold = nodes_[id];
    const std::vector<bool> axes = folded_axes(fold);
    const auto count = static_cast<size_t>(std::count(axes.begin(), axes.end(), true));
    const Shape& shape = operand_of_fold(fold).type.shape;
    const bool of_rows = is_last(axes, count);
    if (found && !(loop_->domain == shape)) throw NotFusible{"it reduces different shapes"};
    if (inside && !of_rows) throw NotFusible{"it reduces axes before the last"};
    if (inside && found && loop_->folded != count) throw NotFusible{"it reduces different axes"};
    loop_->domain = shape;
    const bool first = !std::exchange(found, true);
    if (inside || (of_rows && first && are_good_rows(shape, count)))
      loop_->folded = count;
    else
      totals_[id] = !of_rows || loop_->folded != count;
  }

  // A result of the loop, joined over the rows.
  void add_total(const Node& fold) {
    const std::vector<bool> axes = folded_axes(fold);
    TotalOutput made{.output = loop_->kernel.outputs.size(), .dtype = fold.type.dtype};
    std::vector<int64_t> places(axes.size(), 0);
    for (int64_t distance = 1, d = static_cast<int64_t>(axes.size()) - 1; d >= 0; --d) {
      const auto at = static_cast<size_t>(d);
      const int64_t size = loop_->domain[at].value();
      if (axes[at]) {
        made.count *= size;
      } else {
        if (size > 1) places[at] = distance;
        distance *= size;
      }
    }
    Total total;
    const uint16_t each = step_of(fold.operands[0], {});
    const uint16_t joined = apply_body(steps_, *fold.call->op, fold.call->attributes.args(), {each},
                                       fold.made, fold.rounds, &total)[0];
    const DType type = steps_.at(joined).type;
    if (type != DType::Float32 && type != DType::Float64 && type != DType::Int64)
      throw NotFusible{"it reduces axes before the last"};
    made.is_mean = total.is_mean;
    loop_->kernel.results.push_back(joined);
    loop_->kernel.outputs.push_back({.dtype = type, .joins = total.joins});
    loop_->places.push_back(std::move(places));
    loop_->totals.push_back(made);
  }

  // A loop that runs once more would add everything twice.
  void check_totals() const {
    const std::vector<Step>& steps = loop_->kernel.steps;
    if (!loop_->totals.empty() && std::any_of(steps.begin(), steps.end(), has_hard_arguments))
      throw NotFusible{"a total is not joined where angles may be large"};
  }

  void check_output(const Node& node) {
    const auto strides = contiguous_strides(node.type.shape);
    const auto spread = loop_->over_domain(node.type.shape, {strides.data(), strides.size()});
    const int64_t size = node.type.shape.numel().value();
    const bool whole = size == loop_->domain.numel().value(), row = size == loop_->rows();
    if (!spread || !(whole || (row && loop_->folded > 0)))
      throw NotFusible{"its results have several shapes"};
    loop_->places.push_back(*spread);
  }

  uint16_t step_of(int id, const Views& views) {
    const std::pair key(id, views);
    if (const auto known = made_.find(key); known != made_.end()) return known->second;
    const uint16_t step = new_step(nodes_[static_cast<size_t>(id)], views);
    return made_[key] = step;
  }

  uint16_t new_step(const Node& node, const Views& views) {
    switch (node.kind) {
      case Node::Number:
        return steps_.number(computed_as(node.type.dtype), node.real,
                             is_floating(node.type.dtype) ? 0 : node.integer);
      case Node::Input:
        return steps_.load(port_of(node, views), node.type.dtype);
      case Node::View: {
        Views longer{node.call};
        longer.insert(longer.end(), views.begin(), views.end());
        const Node& base = nodes_[static_cast<size_t>(node.operands[0])];
        if (base.type.dtype != node.type.dtype) throw NotFusible{"it reads bits as another type"};
        return step_of(node.operands[0], longer);
      }
      case Node::Rounded:
        return steps_.rounded(step_of(node.operands[0], views), node.type.dtype);
      case Node::Call:
        break;
    }
    return call_step(node, views);
  }

  uint16_t call_step(const Node& node, const Views& views) {
    const bool fold = folds(node);
    if (fold) {
      check_fold(node, views);
      if (!(operand_of_fold(node).type.shape == loop_->domain))
        throw NotFusible{"it reduces something of another shape"};
    }
    std::vector<uint16_t> operands;
    for (const int operand : node.operands)
      operands.push_back(operand < 0 ? uint16_t{0} : step_of(operand, fold ? Views() : views));
    return apply_body(steps_, *node.call->op, node.call->attributes.args(), operands, node.made,
                      node.rounds)[node.result];
  }

  // Does each row of the domain read its own number of the fold?
  void check_fold(const Node& fold, const Views& views) const {
    Tensor layout = layout_of(fold.type);
    for (const Instruction* view : views) {
      Frame frame = view->attributes.clone();
      frame.set_tensor(0, layout);
      const std::optional<ViewSpec> spec = view->op->def().view(frame.args());
      if (!spec || spec->offset != 0) throw NotFusible{"a reduced value is moved"};
      layout = layout_of(*spec, layout);
    }
    const auto strides = loop_->over_domain(layout.shape(), layout.strides());
    if (!strides) throw NotFusible{"a reduced value is spread over something else"};
    int64_t expected = 1;
    for (size_t d = loop_->domain.size(); d-- > 0;) {
      const int64_t size = loop_->domain[d].value();
      const bool inner = d + loop_->folded >= loop_->domain.size();
      if (size > 1 && (*strides)[d] != (inner ? 0 : expected))
        throw NotFusible{"a reduced value is spread along other axes"};
      if (!inner) expected *= size;
    }
  }

  uint16_t port_of(const Node& node, const Views& views) {
    const std::pair key(node.input, views);
    if (const auto known = ports_.find(key); known != ports_.end()) return known->second;
    Source source{.input = node.input, .views = {}};
    for (const Instruction* view : views) source.views.push_back(*view);
    loop_->sources.push_back(std::move(source));
    const auto spread = loop_->spread(loop_->sources.size() - 1, layout_of(node.type));
    if (!spread) throw NotFusible{"an operand has another shape"};
    spreads_.push_back(*spread);
    if (loop_->sources.size() > kMostPorts) throw NotFusible{"it reads too many tensors"};
    loop_->kernel.inputs.push_back({.dtype = node.type.dtype});
    return ports_[key] = static_cast<uint16_t>(loop_->sources.size() - 1);
  }

  void place() {
    // Only whether a port has one element for a whole row matters yet.
    for (size_t p = 0; p < loop_->sources.size() && loop_->folded > 0; ++p) {
      const std::vector<int64_t>& strides = spreads_[p].strides;
      if (std::all_of(strides.end() - static_cast<std::ptrdiff_t>(loop_->folded), strides.end(),
                      [](int64_t s) { return s == 0; }))
        loop_->kernel.inputs[p].lie = Lie::Single;
    }
    for (size_t k = 0; k < loop_->made.size(); ++k)
      if (loop_->folded > 0 && !loop_->kernel.outputs[k].is_total() &&
          loop_->made[k].numel().value() == loop_->rows() &&
          loop_->made[k].numel().value() != loop_->domain.numel().value())
        loop_->kernel.outputs[k].lie = Lie::Single;
    loop_->kernel.place_steps();
  }

  const Program& region_;
  std::shared_ptr<FusedLoop> loop_ = std::make_shared<FusedLoop>();
  std::deque<Program> programs_;  // decompositions
  std::vector<Node> nodes_;
  std::vector<bool> totals_;                // by node
  std::vector<FusedLoop::Spread> spreads_;  // of the sources, for contiguous inputs
  StepList steps_;
  std::map<std::pair<int, Views>, uint16_t> made_;
  std::map<std::pair<size_t, Views>, uint16_t> ports_;
};

}  // namespace

std::shared_ptr<const FusedLoop> loop_of(const Program& region, std::string* why) try {
  const FreshLayers fresh;  // decompositions are captured, without the layers that are on outside
  const LaunchNow now;      // numbers are read
  return Reader(region).run();
} catch (const NotFusible& not_fusible) {
  if (why) *why = not_fusible.why;
  return nullptr;
}

std::shared_ptr<const FusedLoop> loop_of(const Region& region) {
  return std::static_pointer_cast<const FusedLoop>(region.code(
      [](const Region& r) -> std::shared_ptr<const RegionCode> { return loop_of(r.program()); }));
}

}  // namespace oar::fusion
