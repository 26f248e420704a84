// Ensembles of decision trees (ai.onnx.ml). All rows go down all trees at once, a level at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "oar/interop/constants.h"
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

using List = std::vector<int64_t>;
using Numbers = std::vector<double>;

enum Mode : int64_t { UpTo, Below, From, Above, Equal, NotEqual, Member };
constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                  "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
enum Aggregate : int64_t { Average, Sum, Least, Most };
constexpr const char* kAggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
enum Transform : int64_t { None, Softmax, Logistic, SoftmaxZero, Probit };
constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};

template <size_t N>
int64_t place_of(const Call& c, const char* const (&names)[N], const std::string& name) {
  for (size_t i = 0; i < N; ++i)
    if (name == names[i]) return static_cast<int64_t>(i);
  c.refuse(format("it does not know '{}'", name));
}

// The numbers of an attribute that is a list of floats or a tensor.
Numbers numbers_of(const Call& c, const std::string& name) {
  const Attribute* tensor = c.node.find(name + "_as_tensor");
  if (!tensor) tensor = c.node.find(name);
  if (tensor && tensor->tensor.defined()) return interop::numbers_in(tensor->tensor);
  return c.number_list(name);
}

// Inner nodes and leaves are nodes; a leaf leads to itself.
struct Ensemble {
  List feature, yes, no, mode, misses_yes, roots;
  Numbers split;
  std::vector<Numbers> members;  // of the node, for those that ask for membership
  std::vector<Numbers> weights;  // of each node, by target; NaN: none
  int64_t targets = 1;
  Aggregate aggregate = Sum;
  Transform transform = None;
  Numbers base;

  size_t add_leaf() {
    const auto own = static_cast<int64_t>(feature.size());
    feature.push_back(0);
    yes.push_back(own);
    no.push_back(own);
    mode.push_back(UpTo);
    misses_yes.push_back(0);
    split.push_back(0);
    members.emplace_back();
    weights.emplace_back(static_cast<size_t>(targets), std::numeric_limits<double>::quiet_NaN());
    return static_cast<size_t>(own);
  }
  void add_weight(size_t node, int64_t target, double weight) {
    double& held = weights.at(node).at(static_cast<size_t>(target));
    held = std::isnan(held) ? weight : held + weight;
  }

  // The most steps from a root to a leaf; also refuses cycles.
  int64_t depth(const Call& c) const;
};

int64_t Ensemble::depth(const Call& c) const {
  List now = roots;
  for (int64_t level = 0; level <= static_cast<int64_t>(feature.size()); ++level) {
    List next;
    for (const int64_t node : now) {
      const auto at = static_cast<size_t>(node);
      for (const int64_t to : {yes[at], no[at]})
        if (to != node) next.push_back(to);
    }
    if (next.empty()) return level;
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    now = std::move(next);
  }
  c.refuse("its nodes lead in a circle");
}

template <class T>
Tensor table(const std::vector<T>& values, DType dtype) {
  return Tensor::from_vector(values, Shape{static_cast<int64_t>(values.size())}, dtype);
}
Tensor looked_up(const Tensor& table, const Tensor& places) {
  return reshape(index_select(table, reshape(places, {-1}), 0), places.shape());
}

class Evaluation {
 public:
  Evaluation(const Call& c, const Ensemble& e, const Tensor& x) : e_(e), x_(x) {
    for (const int64_t mode : e.mode) used_[static_cast<size_t>(mode)] = true;
    has_misses_ =
        std::any_of(e.misses_yes.begin(), e.misses_yes.end(), [](int64_t m) { return m; });
    depth_ = e.depth(c);
  }

  // The leaf of each row [rows, trees].
  Tensor leaves() const {
    const Tensor feature = table(e_.feature, DType::Int64), yes = table(e_.yes, DType::Int64),
                 no = table(e_.no, DType::Int64);
    const auto trees = static_cast<int64_t>(e_.roots.size());
    Tensor node =
        broadcast_to(reshape(table(e_.roots, DType::Int64), {1, trees}), {x_.dim(0), Dim(trees)});
    for (int64_t level = 0; level < depth_; ++level) {
      const Tensor value = take_along_axis(x_, looked_up(feature, node), 1, false);
      node = where(goes_yes(node, value), looked_up(yes, node), looked_up(no, node));
    }
    return node;
  }

 private:
  Tensor goes_yes(const Tensor& node, const Tensor& value) const {
    const Tensor split = looked_up(table(e_.split, x_.dtype()), node);
    const Tensor mode = looked_up(table(e_.mode, DType::Int64), node);
    Tensor made;
    for (int64_t m = UpTo; m <= Member; ++m) {
      if (!used_[static_cast<size_t>(m)]) continue;
      const Tensor holds = m == Member ? is_member(node, value) : compared(m, value, split);
      made = made.defined() ? where(equal(mode, full({}, m, DType::Int64)), holds, made) : holds;
    }
    if (!has_misses_) return made;
    const Tensor tracks = cast(looked_up(table(e_.misses_yes, DType::Int64), node), DType::Bool);
    return logical_or(made, logical_and(isnan(value), tracks));
  }
  static Tensor compared(int64_t mode, const Tensor& a, const Tensor& b) {
    switch (mode) {
      case UpTo:
        return less_equal(a, b);
      case Below:
        return less_than(a, b);
      case From:
        return greater_equal(a, b);
      case Above:
        return greater_than(a, b);
      case Equal:
        return equal(a, b);
      default:
        return not_equal(a, b);
    }
  }
  // The members of each node as a row, filled with NaN, which equals nothing.
  Tensor is_member(const Tensor& node, const Tensor& value) const {
    size_t most = 1;
    for (const Numbers& own : e_.members) most = std::max(most, own.size());
    Numbers rows;
    for (const Numbers& own : e_.members) {
      rows.insert(rows.end(), own.begin(), own.end());
      rows.resize((rows.size() + most - 1) / most * most, std::numeric_limits<double>::quiet_NaN());
      if (own.empty()) rows.resize(rows.size() + most, std::numeric_limits<double>::quiet_NaN());
    }
    const auto count = static_cast<int64_t>(e_.members.size());
    const Tensor all =
        Tensor::from_vector(rows, Shape{count, static_cast<int64_t>(most)}, x_.dtype());
    const Tensor own = reshape(index_select(all, reshape(node, {-1}), 0),
                               {node.dim(0), node.dim(1), Dim(static_cast<int64_t>(most))});
    return any(equal(own, unsqueeze(value, {2})), IntArgs({2}), false);
  }

  const Ensemble& e_;
  const Tensor& x_;
  bool used_[Member + 1] = {};
  bool has_misses_ = false;
  int64_t depth_ = 0;
};

Tensor probit(const Tensor& x) { return erfinv(x * 2.0 - 1.0) * std::sqrt(2.0); }

Tensor transformed(const Tensor& x, Transform transform) {
  switch (transform) {
    case Softmax:
      return softmax(x, -1);
    case Logistic:
      return sigmoid(x);
    case SoftmaxZero: {  // zeros stay zeros
      const Tensor e =
          where(equal(x, zeros_like(x)), zeros_like(x), exp(x - max(x, IntArgs({-1}), true)));
      return e / sum(e, IntArgs({-1}), x.dtype(), true);
    }
    case Probit:
      return probit(x);
    default:
      return x;
  }
}

// [rows, targets]
Tensor scores_of(const Call& c, const Ensemble& e) {
  Tensor x = c.tensor(0);
  if (!is_floating(x.dtype())) x = cast(x, DType::Float32);
  const Tensor leaf = Evaluation(c, e, x).leaves();
  const double absent = e.aggregate == Least  ? std::numeric_limits<double>::infinity()
                        : e.aggregate == Most ? -std::numeric_limits<double>::infinity()
                                              : 0;
  Numbers all;
  for (const Numbers& row : e.weights)
    for (const double w : row) all.push_back(std::isnan(w) ? absent : w);
  const Tensor weights =
      Tensor::from_vector(all, Shape{static_cast<int64_t>(e.weights.size()), e.targets}, x.dtype());
  const Tensor each = reshape(index_select(weights, reshape(leaf, {-1}), 0),
                              {leaf.dim(0), leaf.dim(1), Dim(e.targets)});
  Tensor made = e.aggregate == Least  ? min(each, IntArgs({1}), false)
                : e.aggregate == Most ? max(each, IntArgs({1}), false)
                                      : sum(each, IntArgs({1}), x.dtype(), false);
  if (e.aggregate == Average) made = made * (1.0 / static_cast<double>(e.roots.size()));
  if (absent != 0) made = where(equal(made, full({}, absent, x.dtype())), zeros_like(made), made);
  if (e.base.empty()) return made;
  Tensor based = made + table(e.base, x.dtype());
  if (e.targets == 1) return based;
  Numbers reached;  // as in ONNX Runtime, a target that no leaf has a weight for stays 0
  for (const Numbers& row : e.weights)
    for (const double w : row) reached.push_back(std::isnan(w) ? 0 : 1);
  const Tensor reaches = Tensor::from_vector(reached, weights.shape(), x.dtype());
  const Tensor has = max(reshape(index_select(reaches, reshape(leaf, {-1}), 0), each.shape()),
                         IntArgs({1}), false);
  return based * has;
}

// ---- version 5: indices of nodes and of leaves ---------------------------------------------------

void read_members(const Call& c, Ensemble& e) {
  const Numbers all = numbers_of(c, "membership_values");
  size_t at = 0;
  for (size_t i = 0; i < e.mode.size(); ++i) {
    if (e.mode[i] != Member) continue;
    while (at < all.size() && !std::isnan(all[at])) e.members[i].push_back(all[at++]);
    ++at;
  }
}

Ensemble ensemble_of(const Call& c) {
  Ensemble e;
  e.targets = c.integer("n_targets", 1);
  const Numbers modes = numbers_of(c, "nodes_modes"), splits = numbers_of(c, "nodes_splits");
  const List features = c.list("nodes_featureids"), yes = c.list("nodes_truenodeids"),
             no = c.list("nodes_falsenodeids"), yes_leaf = c.list("nodes_trueleafs"),
             no_leaf = c.list("nodes_falseleafs"),
             misses = c.list("nodes_missing_value_tracks_true"),
             leaf_targets = c.list("leaf_targetids");
  const Numbers leaf_weights = numbers_of(c, "leaf_weights");
  const size_t nodes = features.size();
  for (const size_t size :
       {modes.size(), splits.size(), yes.size(), no.size(), yes_leaf.size(), no_leaf.size()})
    if (size != nodes) c.refuse("its nodes are not described completely");
  if (e.targets <= 0 || leaf_weights.size() != leaf_targets.size())
    c.refuse("its leaves are not described completely");
  const auto place = [&](int64_t id, bool leaf) {
    const size_t count = leaf ? leaf_targets.size() : nodes;
    if (id < 0 || static_cast<size_t>(id) >= count) c.refuse(format("it has no node {}", id));
    return id + (leaf ? static_cast<int64_t>(nodes) : 0);
  };
  for (size_t i = 0; i < nodes + leaf_targets.size(); ++i) e.add_leaf();
  for (size_t i = 0; i < nodes; ++i) {
    e.feature[i] = features[i];
    e.mode[i] = static_cast<int64_t>(modes[i]);
    if (e.mode[i] < UpTo || e.mode[i] > Member) c.refuse("its modes are unknown");
    e.split[i] = splits[i];
    e.yes[i] = place(yes[i], yes_leaf[i] != 0);
    e.no[i] = place(no[i], no_leaf[i] != 0);
    e.misses_yes[i] = i < misses.size() ? misses[i] : 0;
  }
  for (size_t i = 0; i < leaf_targets.size(); ++i) {
    if (leaf_targets[i] < 0 || leaf_targets[i] >= e.targets) c.refuse("its targets are unknown");
    e.add_weight(nodes + i, leaf_targets[i], leaf_weights[i]);
  }
  for (const int64_t root : c.list("tree_roots")) e.roots.push_back(place(root, false));
  if (e.roots.empty()) c.refuse("it has no trees");
  read_members(c, e);
  e.aggregate = static_cast<Aggregate>(c.integer("aggregate_function", Sum));
  e.transform = static_cast<Transform>(c.integer("post_transform", None));
  return e;
}
Values tree_ensemble(const Call& c) {
  const Ensemble e = ensemble_of(c);
  return {transformed(scores_of(c, e), e.transform)};
}

// ---- older versions: nodes by the ids of trees and nodes -----------------------------------------

Ensemble named_ensemble(const Call& c, const char* of, int64_t targets) {
  Ensemble e;
  e.targets = targets;
  const List trees = c.list("nodes_treeids"), ids = c.list("nodes_nodeids"),
             features = c.list("nodes_featureids"), yes = c.list("nodes_truenodeids"),
             no = c.list("nodes_falsenodeids"), misses = c.list("nodes_missing_value_tracks_true");
  const Numbers splits = numbers_of(c, "nodes_values");
  const Attribute* modes = c.node.find("nodes_modes");
  const size_t nodes = trees.size();
  if (!modes || targets <= 0) c.refuse("it has no modes or no targets");
  for (const size_t size :
       {ids.size(), features.size(), yes.size(), no.size(), splits.size(), modes->texts.size()})
    if (size != nodes) c.refuse("its nodes are not described completely");
  std::map<std::pair<int64_t, int64_t>, size_t> places;
  for (size_t i = 0; i < nodes; ++i) places[{trees[i], ids[i]}] = e.add_leaf();
  const auto place = [&](int64_t tree, int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) c.refuse(format("its tree {} has no node {}", tree, id));
    return found->second;
  };
  std::vector<bool> has_parent(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    if (modes->texts[i] == "LEAF") continue;
    e.feature[i] = features[i];
    e.mode[i] = place_of(c, kModes, modes->texts[i]);
    e.split[i] = splits[i];
    const size_t to_yes = place(trees[i], yes[i]), to_no = place(trees[i], no[i]);
    has_parent[to_yes] = has_parent[to_no] = true;
    e.yes[i] = static_cast<int64_t>(to_yes);
    e.no[i] = static_cast<int64_t>(to_no);
    e.misses_yes[i] = i < misses.size() ? misses[i] : 0;
  }
  for (size_t i = 0; i < nodes; ++i)
    if (!has_parent[i]) e.roots.push_back(static_cast<int64_t>(i));
  const std::string stem = of;
  const List leaf_trees = c.list(stem + "_treeids"), leaf_nodes = c.list(stem + "_nodeids"),
             leaf_ids = c.list(stem + "_ids");
  const Numbers leaf_weights = numbers_of(c, stem + "_weights");
  for (const size_t size : {leaf_trees.size(), leaf_nodes.size(), leaf_ids.size()})
    if (size != leaf_weights.size()) c.refuse("its leaves are not described completely");
  for (size_t i = 0; i < leaf_weights.size(); ++i) {
    if (leaf_ids[i] < 0 || leaf_ids[i] >= targets) c.refuse("its targets are unknown");
    e.add_weight(place(leaf_trees[i], leaf_nodes[i]), leaf_ids[i], leaf_weights[i]);
  }
  if (e.roots.empty()) c.refuse("it has no trees");
  e.aggregate =
      static_cast<Aggregate>(place_of(c, kAggregates, c.text("aggregate_function", "SUM")));
  e.transform = static_cast<Transform>(place_of(c, kTransforms, c.text("post_transform", "NONE")));
  e.base = numbers_of(c, "base_values");
  return e;
}
Values tree_regressor(const Call& c) {
  const Ensemble e = named_ensemble(c, "target", c.integer("n_targets", 1));
  return {cast(transformed(scores_of(c, e), e.transform), DType::Float32)};
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr Converter kConverters[] = {
    {"TreeEnsemble", tree_ensemble, kDomain},
    {"TreeEnsembleRegressor", tree_regressor, kDomain},
};

}  // namespace

std::span<const Converter> tree_converters() { return kConverters; }

}  // namespace oar::onnx
