// Which axes of the calls of a decomposition are cut together: axes that meet in one call form a class.
#pragma once

#include <algorithm>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/sharding/trace.h"

namespace OAR_API oar {

struct AxisOf {
  int value;
  size_t axis;
  bool operator==(const AxisOf&) const = default;
};

// The least common multiple; none if symbols hide it.
std::optional<Dim> common_multiple(Dim a, Dim b);

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

  // Coarsens the class of an axis until its elements are whole multiples of the factor's; returns
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

}  // namespace oar
