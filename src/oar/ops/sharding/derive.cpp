// Plans from decompositions. The calls that an op is made of say which of their axes are cut together;
// axes that meet in one call form a class. A class is a factor of the whole op if every call lets it
// be cut, if what is summed over it is used linearly from there on, and if the decomposition, run on a
// piece, would make each of its calls as that call's own plan wants it.
#include <algorithm>
#include <map>
#include <numeric>

#include "oar/base/string_util.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/pieces.h"
#include "oar/ops/sharding/trace.h"

namespace oar {
namespace {

struct AxisOf {
  int value;
  size_t axis;
  bool operator==(const AxisOf&) const = default;
};

// The least common multiple; none where symbols hide it.
std::optional<Dim> common_multiple(Dim a, Dim b) {
  if (a == b || b == Dim(1)) return a;
  if (a == Dim(1)) return b;
  if (a.is_known() && b.is_known()) return Dim(std::lcm(a.word(), b.word()));
  if (floor_mod(a, b) == Dim(0)) return a;
  if (floor_mod(b, a) == Dim(0)) return b;
  return std::nullopt;
}

// Which axes of a trace are cut together.
class Classes {
 public:
  explicit Classes(const ShardTrace& trace) {
    for (size_t v = 0; v < trace.value_count(); ++v) {
      nodes_.emplace_back();
      for (Dim d : trace.tensor(static_cast<int>(v)).dims()) {
        nodes_.back().push_back({d == Dim(1) ? -1 : static_cast<int>(whole_.size()), 1});
        if (!(d == Dim(1))) whole_.push_back(trace.is_constant(static_cast<int>(v)));
      }
    }
    for (const TracedCall& call : trace.calls()) join_axes(call);
    for (size_t v = 0; v < nodes_.size(); ++v) refuse_repeated(nodes_[v]);
  }

  int class_of(AxisOf a) const { return node(a).cls; }
  Dim inner(AxisOf a) const { return node(a).inner; }
  bool is_whole(int cls) const { return cls < 0 || whole_[static_cast<size_t>(cls)]; }
  bool has(int value, int cls) const {
    const auto& axes = nodes_[static_cast<size_t>(value)];
    return std::any_of(axes.begin(), axes.end(), [&](const Node& n) { return n.cls == cls; });
  }
  // The factors of a call that belong to a class.
  std::vector<size_t> factors(const TracedCall& call, int cls) const {
    std::vector<size_t> found;
    for (size_t f = 0; f < call.plan.factors.size(); ++f)
      if (const std::vector<Member> all = members(call, static_cast<int>(f));
          class_of(all[0].at) == cls)
        found.push_back(f);
    return found;
  }

 private:
  struct Node {
    int cls;
    Dim inner;  // elements of the axis for one of the class
  };
  struct Member {
    AxisOf at;
    Dim inner;  // … for one of the call's factor
  };

  const Node& node(AxisOf a) const { return nodes_[static_cast<size_t>(a.value)][a.axis]; }

  static std::vector<Member> members(const TracedCall& call, int factor) {
    std::vector<Member> found;
    const auto visit = [&](const std::vector<PlanTensor>& tensors, const std::vector<int>& values) {
      for (size_t i = 0; i < tensors.size(); ++i)
        for (size_t axis = 0; axis < tensors[i].axes.size(); ++axis)
          if (tensors[i].axes[axis].factor == factor && !(tensors[i].shape[axis] == Dim(1)))
            found.push_back({{values[i], axis}, tensors[i].axes[axis].inner});
    };
    visit(call.plan.operands, call.operands);
    visit(call.plan.results, call.results);
    return found;
  }

  void join_axes(const TracedCall& call) {
    for (size_t f = 0; f < call.plan.factors.size(); ++f) {
      const std::vector<Member> all = members(call, static_cast<int>(f));
      for (const Member& m : all) unite(all[0], m);
    }
    for (const Member& m : members(call, -1)) refuse(class_of(m.at));
  }

  void refuse(int cls) {
    if (cls >= 0) whole_[static_cast<size_t>(cls)] = true;
  }

  void scale(int cls, Dim by) {
    if (by == Dim(1)) return;
    for (auto& axes : nodes_)
      for (Node& n : axes)
        if (n.cls == cls) n.inner = n.inner * by;
  }

  // Makes the class of an axis so coarse that its elements are whole numbers of the factor's; answers
  // how many.
  std::optional<Dim> align(const Member& m) {
    const std::optional<Dim> coarse = common_multiple(node(m.at).inner, m.inner);
    if (!coarse) return std::nullopt;
    scale(class_of(m.at), floor_div(*coarse, node(m.at).inner));
    return floor_div(node(m.at).inner, m.inner);
  }

  void unite(const Member& a, const Member& b) {
    const std::optional<Dim> first = align(a), second = align(b);
    const int to = class_of(a.at), from = class_of(b.at);
    const std::optional<Dim> common =
        first && second ? common_multiple(*first, *second) : std::nullopt;
    if (!common || (to == from && !(*first == *second))) {
      refuse(to);
      return refuse(from);
    }
    if (to == from) return;
    scale(to, floor_div(*common, *first));
    scale(from, floor_div(*common, *second));
    for (auto& axes : nodes_)
      for (Node& n : axes)
        if (n.cls == from) n.cls = to;
    if (is_whole(from)) refuse(to);
  }

  // Two axes of one tensor cannot be cut at once: only the diagonal blocks would be left.
  void refuse_repeated(const SmallVector<Node, 6>& axes) {
    for (size_t i = 0; i < axes.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (axes[i].cls == axes[k].cls) refuse(axes[i].cls);
  }

  std::vector<SmallVector<Node, 6>> nodes_;  // of each axis of each value
  std::vector<bool> whole_;
};

// May a value that is only part of a sum (or a maximum) go through this call? The operands that are
// partial are marked.
bool passes(const TracedCall& call, const std::vector<bool>& partial, Join join) {
  const Op& op = *call.op;
  const auto count = std::count(partial.begin(), partial.end(), true);
  if (join == Join::Max || join == Join::Min) return op.has(Trait::View) && count == 1;
  if (op.has(Trait::Linear)) return count == static_cast<ptrdiff_t>(partial.size());
  if (count != 1) return false;
  const size_t which =
      static_cast<size_t>(std::find(partial.begin(), partial.end(), true) - partial.begin());
  const std::vector<std::string_view> names = split(op.def().linear_in, ' ');
  const std::string& name = op.schema().parameters[call.plan.operands[which].parameter].name;
  return std::find(names.begin(), names.end(), name) != names.end();
}

// How the op's results come from pieces of a class; none where they do not.
std::optional<SmallVector<Join, 3>> joins_over(const ShardTrace& trace, const Classes& classes,
                                               int cls) {
  std::map<int, Join> partial;  // by value
  for (const TracedCall& call : trace.calls()) {
    std::vector<bool> is_partial;
    std::optional<Join> join;
    for (int v : call.operands) {
      const auto found = partial.find(v);
      is_partial.push_back(found != partial.end());
      if (found == partial.end()) continue;
      if (join && *join != found->second) return std::nullopt;
      join = found->second;
    }
    const std::vector<size_t> factors = classes.factors(call, cls);
    if (factors.size() > 1 || (join && !factors.empty())) return std::nullopt;
    if (join && !passes(call, is_partial, *join)) return std::nullopt;
    for (size_t r = 0; r < call.results.size(); ++r) {
      const Join how =
          factors.empty() ? join.value_or(Join::Same) : call.plan.join_of(factors[0], r);
      const bool rounds = is_integral(trace.tensor(call.results[r]).dtype()) && join &&
                          !is_integral(trace.tensor(call.operands[0]).dtype());
      if (rounds || how == Join::Again) return std::nullopt;
      if (how != Join::Same && how != Join::Concat) partial[call.results[r]] = how;
    }
  }
  for (int v : trace.written())
    if (partial.contains(v)) return std::nullopt;
  SmallVector<Join, 3> joins;
  for (int v : trace.results()) {
    const auto found = partial.find(v);
    joins.push_back(found != partial.end() ? found->second
                    : classes.has(v, cls)  ? Join::Concat
                                           : Join::Same);
  }
  return joins;
}

// Do two calls have the same attributes? Of a shape, -1 and 0 stand for any size.
bool alike(const Op& op, Args made, Args wanted) {
  for (size_t i = 0; i < made.size(); ++i) {
    const Value &a = made[i], &b = wanted[i];
    if (a.tag != b.tag) return false;
    if (a.is_tensor() || a.is_tensors()) continue;
    if (a.tag != OAR_TAG_INTS) {
      if (a.str() != b.str()) return false;
      continue;
    }
    const bool open = op.schema().parameters[i].type == ArgType::Shape;
    const auto equal = [&](int64_t x, int64_t y) {
      return x == y || (open && (x == -1 || x == 0));
    };
    if (!std::ranges::equal(a.as_ints(), b.as_ints(), equal)) return false;
  }
  return true;
}

// Numbers that a decomposition has made of sizes must be those of the whole.
bool same_literals(const TracedCall& a, const TracedCall& b) {
  std::vector<Tensor> of_a, of_b;
  for_each_tensor(a.frame.args(), [&](const Tensor& t) { of_a.push_back(t); });
  for_each_tensor(b.frame.args(), [&](const Tensor& t) { of_b.push_back(t); });
  return std::ranges::equal(of_a, of_b, [](const Tensor& x, const Tensor& y) {
    if (!x.is_dense() || !y.is_dense()) return x.is_dense() == y.is_dense();
    return x.describe() == y.describe() &&
           x.to_vector<std::complex<double>>() == y.to_vector<std::complex<double>>();
  });
}

std::vector<const void*> tensors_of(Args args) {
  std::vector<const void*> list;
  for_each_tensor(args, [&](const Tensor& t) { list.push_back(t.impl()); });
  return list;
}

// Is `made`, a call of the decomposition of a piece, what the plan of the call in its place in the
// whole wants for that piece?
bool is_piece_of(const TracedCall& call, const std::vector<size_t>& factors, const TracedCall& made,
                 const Piece& piece, Dim count) {
  if (made.op != call.op || !same_literals(call, made)) return false;
  if (factors.empty()) return alike(*call.op, made.frame.args(), call.frame.args());
  const size_t f = factors[0];
  if (call.plan.factors[f].positions >= 0) return false;
  const OpDef& rules = rules_of(*call.op).def();
  Frame wanted = made.frame.clone();  // the piece's tensors, the whole's attributes
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].is_tensor() && !wanted[i].is_tensors()) wanted.set(i, call.frame[i]);
  if (rules.localise) {
    const std::vector<const void*> before = tensors_of(wanted.args());
    const Dim unit = floor_div(call.plan.factors[f].size, count);
    rules.localise({*call.op, wanted, call.plan, f, piece.start * unit, piece.size * unit});
    if (before != tensors_of(wanted.args())) return false;  // that cannot be done from outside
  }
  return alike(*call.op, made.frame.args(), wanted.args());
}

// Reads the decomposition of a piece, and compares.
class Rehearsal {
 public:
  Rehearsal(const PlanCall& call, const ShardTrace& trace, const Classes& classes, int cls)
      : call_(call), trace_(trace), classes_(classes), cls_(cls) {}

  // Of a piece of open size; or, if the decomposition wants a number, of all but the first element.
  bool holds(const ShardPlan& plan, size_t factor) const {
    const Dim count = plan.factors[factor].size;
    const int64_t other = count.hint() + 1;  // than the size of the whole
    const Dim open = Dim::symbol(format("piece:{}", other), other),
              start = Dim::symbol(format("start:{}", other), 1);
    return goes_through(plan, {factor, start, open}) || goes_through(plan, {factor, 1, count - 1});
  }

 private:
  bool goes_through(const ShardPlan& plan, const Piece& piece) const {
    try {
      const Frame frame = bare_piece(plan, piece);
      check_arguments(frame.args());
      const ShardTrace made(call_.op, frame.args());
      if (made.calls().size() != trace_.calls().size()) return false;
      for (size_t i = 0; i < made.calls().size(); ++i) {
        const TracedCall& call = trace_.calls()[i];
        if (!is_piece_of(call, classes_.factors(call, cls_), made.calls()[i], piece,
                         plan.factors[piece.factor].size))
          return false;
      }
      return true;
    } catch (const Error&) {
      return false;  // another number of elements is not for this op
    }
  }

  // As a call would be: inference refuses what does not fit.
  void check_arguments(Args args) const {
    if (!call_.op.def().infer) return;
    Frame ready;
    const bool changed = call_.op.prepares() && prepare(call_.op, args, ready);
    infer_results(call_.op, changed ? ready.args() : args);
  }

  Frame bare_piece(const ShardPlan& plan, const Piece& piece) const {
    Frame frame = bare_call(call_.args);
    for (const PlanTensor& place : plan.operands) {
      Shape shape = place.shape;
      for (size_t axis = 0; axis < shape.size(); ++axis)
        if (place.axes[axis].factor == static_cast<int>(piece.factor))
          shape[axis] = piece.size * place.axes[axis].inner;
      const Tensor& t = tensor_at(frame.args(), place);
      set_tensor(frame, place, Tensor::meta(shape, t.dtype(), t.device()));
    }
    const OpDef& rules = rules_of(call_.op).def();
    if (rules.localise)
      rules.localise({call_.op, frame, plan, piece.factor, piece.start, piece.size});
    return frame;
  }

  const PlanCall& call_;
  const ShardTrace& trace_;
  const Classes& classes_;
  const int cls_;
};

// The plan with one factor more: a class, so far as the op's own tensors have part in it.
ShardPlan with_factor(ShardPlan plan, const ShardTrace& trace, const Classes& classes, int cls,
                      Dim count, const SmallVector<Join, 3>& joins) {
  const int factor = plan.add(count);
  plan.factors.back().joins = joins;
  const auto put = [&](std::vector<PlanTensor>& tensors, const std::vector<int>& values) {
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t axis = 0; axis < tensors[i].axes.size(); ++axis)
        if (const AxisOf at{values[i], axis}; classes.class_of(at) == cls)
          plan.put(tensors[i], axis, factor, classes.inner(at));
  };
  put(plan.operands, trace.operands());
  put(plan.results, trace.results());
  return plan;
}

}  // namespace

void derive_plan(const PlanCall& call) {
  const ShardTrace trace(call.op, call.args);
  const Classes classes(trace);
  std::vector<int> seen;
  for (size_t i = 0; i < call.plan.operands.size(); ++i)
    for (size_t axis = 0; axis < call.plan.operands[i].axes.size(); ++axis) {
      const AxisOf at{trace.operands()[i], axis};
      const int cls = classes.class_of(at);
      if (classes.is_whole(cls) || std::find(seen.begin(), seen.end(), cls) != seen.end()) continue;
      seen.push_back(cls);
      const Dim size = call.plan.operands[i].shape[axis];
      const Dim count = floor_div(size, classes.inner(at));
      if (count.hint() < 2 || !(count * classes.inner(at) == size)) continue;
      const auto joins = joins_over(trace, classes, cls);
      if (!joins) continue;
      ShardPlan plan = with_factor(call.plan, trace, classes, cls, count, *joins);
      if (Rehearsal(call, trace, classes, cls).holds(plan, plan.factors.size() - 1))
        call.plan = std::move(plan);
    }
}

}  // namespace oar
