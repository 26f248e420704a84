#include "oar/autograd/engine.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <queue>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "oar/autograd/record.h"
#include "oar/autograd/sharded.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/interrupt.h"
#include "oar/ops/core/autocast.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/core/watch.h"
#include "oar/ops/families/sparse.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

thread_local bool t_keeps_graph = true;

// While alive, sets what keeps_graph() returns.
class KeepsGraph {
 public:
  explicit KeepsGraph(bool keeps) : outer_(std::exchange(t_keeps_graph, keeps)) {}
  ~KeepsGraph() { t_keeps_graph = outer_; }
  KeepsGraph(const KeepsGraph&) = delete;
  KeepsGraph& operator=(const KeepsGraph&) = delete;

 private:
  bool outer_;
};

// Guards the gradient of a leaf; leaves share a few locks.
ForkMutex& lock_of(const Tensor& leaf) {
  constexpr size_t kLocks = 64;
  static auto* const locks = new ForkMutex[kLocks];
  return locks[reinterpret_cast<uintptr_t>(leaf.impl()) / 64 % kLocks];
}

using Place = std::pair<const void*, uint32_t>;  // (node, result) or (leaf, 0)
struct PlaceHash {
  size_t operator()(const Place& p) const {
    return std::hash<const void*>{}(p.first) * 31 + p.second;
  }
};
Place place_of(const Edge& edge) {
  return edge.node ? Place(edge.node.get(), edge.index) : Place(edge.leaf.impl(), 0);
}

// Nothing else refers to the tensor or its memory: it may be changed in place.
bool is_exclusive(const Tensor& t) {
  return t.defined() && t.is_dense() && t->reference_count() == 1 &&
         t->storage->reference_count() == 1 && t.is_contiguous();
}

class BackwardRun {
 public:
  BackwardRun(BackwardOptions options, bool into_leaves)
      : options_(options), into_leaves_(into_leaves) {}

  void want(const Edge& edge, size_t slot) { wanted_[place_of(edge)].push_back(slot); }
  void block(const Edge& edge) { blocked_.insert(place_of(edge)); }
  // Only nodes from which a requested place can be reached need to run.
  void restrict_to_wanted(const std::vector<Edge>& roots);
  void start(const Edge& edge, Tensor cotangent) { give(edge, std::move(cotangent)); }
  void execute();
  std::vector<Tensor> found;

 private:
  struct Pending {
    Intrusive<Node> node;
    SmallVector<Tensor, 1> cotangents;
  };
  void give(const Edge& edge, Tensor cotangent);
  void give_leaf(const Tensor& leaf, Tensor cotangent);
  void keep_leaf(const Tensor& leaf, Tensor cotangent);
  void count_due();
  void note_done(const Node& node);
  void run_leaf_hooks(size_t place);
  void run_tensor_hooks(Node::Extras& extras, uint32_t index, const Shape& shape, Tensor& g);
  void run_node(Pending& pending);
  void run_known(const Origin& origin, Pending& pending);
  bool add_to_base(const Node& node, const Tensor& cotangent);
  bool add_to_leaf(const OpNode& view, const Tensor& leaf, const Tensor& cotangent);
  static void accumulate(Tensor& into, Tensor more) {
    if (!into.defined())
      into = std::move(more);
    else if (!grad_enabled() && is_exclusive(into) && more.is_dense() &&
             more.dtype() == into.dtype())
      add_(into, more);
    else
      into = add(into, more);
  }
  static void accumulate(Gradient& into, Tensor more) {
    Tensor sum = into.is_tensor() ? into.take() : Tensor();
    accumulate(sum, std::move(more));
    into.set(std::move(sum));
  }
  void note_wanted(const Place& place, const Tensor& cotangent) {
    if (auto it = wanted_.find(place); it != wanted_.end())
      for (size_t slot : it->second) accumulate(found[slot], cotangent);
  }

  BackwardOptions options_;
  bool into_leaves_;
  bool restricted_ = false;
  std::unordered_map<Node*, Pending> pending_;
  // Consumers always have larger numbers than what they consume, so the largest pending node has all
  // its cotangents.
  std::priority_queue<std::pair<uint64_t, Node*>> ready_;
  std::unordered_map<Place, std::vector<size_t>, PlaceHash> wanted_;
  std::unordered_set<Place, PlaceHash> blocked_;
  std::unordered_set<const Node*> useful_;
  // Leaves with hooks, which see the whole gradient once: as soon as the last node that has an edge to them has run, so that a
  // hook may send it away while the others run. Nodes that no cotangent reaches never run; leaves that wait for one are
  // handled at the end.
  std::vector<std::pair<Tensor, Tensor>> hooked_;
  std::unordered_map<const TensorImpl*, size_t> hooked_places_;
  std::unordered_map<const TensorImpl*, size_t> due_;  // edges to them, of nodes that have not run
  Node* running_ = nullptr;
  bool counted_ = false;
};

void BackwardRun::restrict_to_wanted(const std::vector<Edge>& roots) {
  restricted_ = true;
  std::vector<Node*> order;
  std::unordered_set<Node*> seen;
  std::priority_queue<std::pair<uint64_t, Node*>> queue;
  for (const Edge& e : roots)
    if (e.node && seen.insert(e.node.get()).second) queue.emplace(e.node->sequence(), e.node.get());
  while (!queue.empty()) {
    Node* node = queue.top().second;
    queue.pop();
    order.push_back(node);
    for (const Edge& e : node->edges)
      if (e.node && seen.insert(e.node.get()).second)
        queue.emplace(e.node->sequence(), e.node.get());
  }
  // Inputs come later in this order, so one backward pass over it sees every path.
  for (auto it = order.rbegin(); it != order.rend(); ++it)
    for (const Edge& e : (*it)->edges)
      if (e.valid() &&
          (wanted_.contains(place_of(e)) || (e.node && useful_.contains(e.node.get()))))
        useful_.insert(*it);
}

void BackwardRun::give(const Edge& edge, Tensor cotangent) {
  if (!edge.valid() || !cotangent.defined()) return;
  if (!blocked_.empty() && blocked_.contains(place_of(edge))) return;
  if (!edge.node) return give_leaf(edge.leaf, std::move(cotangent));
  Node* node = edge.node.get();
  auto [it, fresh] = pending_.try_emplace(node);
  if (fresh) {
    it->second.node = edge.node;
    it->second.cotangents.resize(node->results.size());
    ready_.emplace(node->sequence(), node);
  }
  accumulate(it->second.cotangents[edge.index], std::move(cotangent));
}

// A gradient that nothing else refers to is kept as it is; a shared or strided one is copied, because
// users change gradients in place.
Tensor owned(Tensor g, bool create_graph) {
  if (create_graph) return g;
  if (g.kind() == Kind::Symbolic || g.kind() == Kind::Distributed) return assign(g);
  if (!g.is_dense() || is_exclusive(g)) return g;
  return assign(g);
}

void BackwardRun::give_leaf(const Tensor& leaf, Tensor cotangent) {
  const GradMode mode(options_.create_graph);
  if (History* h = maybe_history(leaf); !h || h->leaf_hooks.empty())
    return keep_leaf(leaf, std::move(cotangent));
  auto [it, fresh] = hooked_places_.try_emplace(leaf.impl(), hooked_.size());
  if (fresh) hooked_.emplace_back(leaf, Tensor());
  if (running_ != nullptr && !counted_) count_due();
  accumulate(hooked_[it->second].second, std::move(cotangent));
}

void BackwardRun::count_due() {
  counted_ = true;
  std::vector<const Node*> stack{running_};
  for (const auto& [node, pending] : pending_) stack.push_back(node);
  std::unordered_set<const Node*> seen(stack.begin(), stack.end());
  while (!stack.empty()) {
    const Node* node = stack.back();
    stack.pop_back();
    for (const Edge& e : node->edges) {
      if (e.node) {
        if (seen.insert(e.node.get()).second) stack.push_back(e.node.get());
      } else if (e.valid()) {
        const History* h = maybe_history(e.leaf);
        if (h && !h->leaf_hooks.empty()) ++due_[e.leaf.impl()];
      }
    }
  }
}

void BackwardRun::note_done(const Node& node) {
  if (due_.empty()) return;
  for (const Edge& e : node.edges) {
    const auto due = e.valid() && !e.node ? due_.find(e.leaf.impl()) : due_.end();
    if (due == due_.end() || --due->second > 0) continue;
    due_.erase(due);
    if (const auto it = hooked_places_.find(e.leaf.impl()); it != hooked_places_.end())
      run_leaf_hooks(it->second);
  }
}

void BackwardRun::run_leaf_hooks(size_t place) {
  const Tensor leaf = std::exchange(hooked_[place].first, Tensor());
  if (!leaf.defined()) return;
  Tensor cotangent = std::exchange(hooked_[place].second, Tensor());
  hooked_places_.erase(leaf.impl());
  const GradMode mode(options_.create_graph);
  const History& h = *maybe_history(leaf);
  for (size_t i = 0; i < h.leaf_hooks.size(); ++i)
    if (Tensor replaced = h.leaf_hooks[i].function(cotangent); replaced.defined())
      cotangent = fitting_gradient(std::move(replaced), leaf.shape(), "a hook");
  keep_leaf(leaf, std::move(cotangent));
}

void BackwardRun::keep_leaf(const Tensor& leaf, Tensor cotangent) {
  cotangent = placed_like(leaf, std::move(cotangent));
  note_wanted({leaf.impl(), 0}, cotangent);
  if (!into_leaves_) return;
  // Threads may add to one leaf at the same time. Each removes the gradient, adds to it and stores it
  // again, until no other thread has stored one meanwhile; no lock is held while an op runs.
  bool ours = false;  // may the leaf keep the cotangent as it is?
  for (;;) {
    Tensor before;
    {
      const std::lock_guard lock(lock_of(leaf));
      Gradient& grad = history_of(leaf).grad;
      if (grad.is_tensor()) {
        before = grad.take();
      } else if (ours) {
        grad.set(std::move(cotangent));
        return;
      }
    }
    ours = true;
    if (!before.defined()) {
      cotangent = owned(std::move(cotangent), options_.create_graph);
      continue;
    }
    try {
      cotangent = add(before, cotangent);
    } catch (...) {
      const std::lock_guard lock(lock_of(leaf));
      if (Gradient& grad = history_of(leaf).grad; !grad.defined()) grad.set(before);
      throw;
    }
  }
}

// In the order in which hooks were added and gradients retained, so that a retained gradient is the
// one that the hooks before it made.
void BackwardRun::run_tensor_hooks(Node::Extras& extras, uint32_t index, const Shape& shape,
                                   Tensor& g) {
  uint64_t kept = 0;
  const auto keep_until = [&](uint64_t id) {
    if (into_leaves_)
      for (const Node::Retained& r : extras.retained)
        if (r.index == index && r.id >= kept && r.id < id)
          accumulate(history_of(Tensor::share(r.tensor)).grad, g);
    kept = id;
  };
  for (size_t k = 0; k < extras.tensor_hooks.size(); ++k) {
    if (extras.tensor_hooks[k].index != index) continue;
    keep_until(extras.tensor_hooks[k].id);
    if (Tensor replaced = extras.tensor_hooks[k].function(g); replaced.defined())
      g = fitting_gradient(std::move(replaced), shape, "a hook");
  }
  keep_until(UINT64_MAX);
}

// The cotangent of a view is a part of the cotangent of its base. If the latter exists already, the part is added to it in
// place, and no tensor of the base's size is allocated.
bool BackwardRun::add_to_base(const Node& node, const Tensor& cotangent) {
  if (options_.create_graph || node.edges.size() != 1 || typeid(node) != typeid(OpNode) ||
      !blocked_.empty())
    return false;
  const auto& view = static_cast<const OpNode&>(node);
  const Edge& base = node.edges[0];
  if (!view.is_view()) return false;
  if (!base.node) return add_to_leaf(view, base.leaf, cotangent);
  const auto it = pending_.find(base.node.get());
  if (it == pending_.end()) return false;
  const Tensor& sum = it->second.cotangents[base.index];
  return is_exclusive(sum) && view.add_to(sum, cotangent);
}

bool BackwardRun::add_to_leaf(const OpNode& view, const Tensor& leaf, const Tensor& cotangent) {
  const History* history = maybe_history(leaf);
  if (!into_leaves_ || !wanted_.empty() || !history || !history->leaf_hooks.empty()) return false;
  Tensor sum;
  {
    const std::lock_guard lock(lock_of(leaf));
    Gradient& grad = history_of(leaf).grad;
    if (!grad.is_tensor()) return false;
    sum = grad.take();
  }
  const auto give_back = [&] {
    {
      const std::lock_guard lock(lock_of(leaf));
      if (Gradient& grad = history_of(leaf).grad; !grad.is_tensor()) {
        grad.set(std::move(sum));
        return;
      }
    }
    keep_leaf(leaf, std::move(sum));  // another thread has stored a gradient
  };
  try {
    const bool added = is_exclusive(sum) && view.add_to(sum, cotangent);
    give_back();
    return added;
  } catch (...) {
    give_back();
    throw;
  }
}

bool holds_nan(const Tensor& t) {
  if (!t.defined() || !t.is_dense() || !is_differentiable(t.dtype()) || t->numel == 0) return false;
  const LayersOff off(kDispatchMask);
  return any(isnan(t)).item_double() != 0;
}

void check_gradients(const Node& node, TensorList grads) {
  for (size_t i = 0; i < grads.size(); ++i)
    user_check(
        !holds_nan(grads[i]), ErrorKind::Runtime,
        "the backward of {} returned NaN as the gradient of its tensor input {} ({}).\nhint: "
        "Anomaly mode makes this an error; set_detect_anomaly(True, check_nan=False) does not.",
        node.name(), i, grads[i].describe());
}

// As run_node, for a node that knows where its call was made: errors say so.
void BackwardRun::run_known(const Origin& origin, Pending& pending) {
  const InLayer layer(origin.layer);
  try {
    run_node(pending);
  } catch (const Error& error) {
    const std::string place = origin.lines.empty() ? std::string() : origin.text();
    if (place.empty() || error.kind() == ErrorKind::Interrupted) throw;
    Error told(error.kind(), error.text() + "\n" + place, error.hint());
    throw told.with_op(error.op());
  } catch (...) {
    if (const auto add_note = host_language().add_note; add_note && !origin.lines.empty())
      add_note(origin.text().c_str());
    throw;
  }
}

void BackwardRun::run_node(Pending& pending) {
  Node& node = *pending.node;
  Node::Extras* extras = node.maybe_extras();
  for (uint32_t i = 0; i < pending.cotangents.size(); ++i) {
    Tensor& g = pending.cotangents[i];
    if (extras && g.defined()) run_tensor_hooks(*extras, i, node.results[i].shape, g);
    if (g.defined()) note_wanted({&node, i}, g);
  }
  if (restricted_ && !useful_.contains(&node)) return;
  const devices::Scope device(node.results.empty() ? devices::current() : node.results[0].device);
  const bool floats = std::any_of(node.results.begin(), node.results.end(),
                                  [](const auto& meta) { return is_differentiable(meta.dtype); });
  for (uint32_t i = 0; i < pending.cotangents.size() && !node.takes_missing_cotangents(); ++i) {
    const Node::ResultMeta& meta = node.results[i];
    // Next to floats, integers are indices; alone they have gradients.
    if (!pending.cotangents[i].defined() && (is_differentiable(meta.dtype) || !floats))
      pending.cotangents[i] = zeros(meta.shape, meta.dtype);
  }
  SmallVector<bool, 4> needed;
  for (const Edge& e : node.edges)
    needed.push_back(e.valid() && (!restricted_ || wanted_.contains(place_of(e)) ||
                                   (e.node && useful_.contains(e.node.get()))));
  const TensorList cotangents{pending.cotangents.data(), pending.cotangents.size()};
  const std::string name = node.name();
  OpScope scope(name.c_str());
  if ((!extras || extras->node_hooks.empty()) && needed.size() == 1 && needed[0] &&
      cotangents.size() == 1 && add_to_base(node, cotangents[0])) {
    if (!options_.retain_graph) node.free_saved();
    return;
  }
  const WatchedCall watched;
  Grads grads = node.apply(cotangents, {needed.data(), needed.size()});
  if (checks_nan()) [[unlikely]]
    check_gradients(node, {grads.data(), grads.size()});
  if (watched.is_outermost()) [[unlikely]]
    watched.returned({.name = name + "_grad",
                      .cotangents = cotangents,
                      .results = {grads.data(), grads.size()},
                      .sequence = node.sequence()});
  if (extras)
    for (size_t k = 0; k < extras->node_hooks.size(); ++k)
      extras->node_hooks[k].second(cotangents, grads);
  internal_check(grads.size() == node.edges.size(),
                 "the vjp of {} returned {} gradients for {} operands", node.name(), grads.size(),
                 node.edges.size());
  if (extras && !extras->node_hooks.empty())
    for (size_t i = 0; i < grads.size(); ++i)
      grads[i] =
          fitting_gradient(std::move(grads[i]), node.edges[i], format("a hook of {}", node.name()));
  pending.cotangents.clear();
  for (size_t i = 0; i < grads.size(); ++i)
    if (needed[i]) give(node.edges[i], std::move(grads[i]));
  if (!options_.retain_graph && !options_.create_graph) node.free_saved();
}

void BackwardRun::execute() {
  const GradMode mode(options_.create_graph);
  const KeepsGraph keeps(options_.retain_graph || options_.create_graph);
  const AutocastScope off({});  // a derivative is in the types of the call that it belongs to
  std::optional<timeline::Span> span;
  if (profiling()) span.emplace(timeline::Kind::Range, "backward", timeline::RangeType::Backward);
  Patience patience;
  while (!ready_.empty()) {
    patience.look();
    Node* node = ready_.top().second;
    ready_.pop();
    auto entry = pending_.extract(node);
    running_ = node;
    const Node::Extras* extras = node->maybe_extras();
    if (extras && extras->origin)
      run_known(*extras->origin, entry.mapped());
    else
      run_node(entry.mapped());
    note_done(*node);
  }
  for (size_t i = 0; i < hooked_.size(); ++i) run_leaf_hooks(i);
}

Tensor first_cotangent(const Tensor& whole, TensorList cotangents, size_t i) {
  const Tensor& root = carrier_of(whole);
  if (i < cotangents.size() && cotangents[i].defined()) {
    Tensor given = is_sparse(whole) ? values_for(whole, cotangents[i]) : cotangents[i];
    // Paddle's scalars once had shape [1], and programs still pass such gradients.
    if (root.rank() == 0 && given.rank() == 1 && given.dim(0) == Dim(1)) given = reshape(given, {});
    user_check(same(given.shape(), root.shape()), ErrorKind::InvalidArgument,
               "the gradient passed for an output has shape {}, the output {}.",
               to_string(given.dims()), to_string(root.dims()));
    return given.dtype() == root.dtype() ? given : cast(given, root.dtype());
  }
  return ones_like(root);
}

void check_roots(TensorList roots, TensorList cotangents) {
  user_check(cotangents.empty() || cotangents.size() == roots.size(), ErrorKind::InvalidArgument,
             "there are {} outputs but {} gradients for them.", roots.size(), cotangents.size());
}

thread_local uint64_t t_backward_calls = 0;

}  // namespace

bool keeps_graph() { return t_keeps_graph; }

uint64_t backward_calls() { return t_backward_calls; }

void backward(TensorList roots, TensorList cotangents, BackwardOptions options) {
  ++t_backward_calls;
  check_roots(roots, cotangents);
  BackwardRun run(options, true);
  const GradMode mode(options.create_graph);
  for (size_t i = 0; i < roots.size(); ++i) {
    user_check(roots[i].defined(), ErrorKind::InvalidType, "an output is None.");
    const Edge edge = edge_of(roots[i]);
    // In Paddle, backward on a tensor without gradient does nothing, and scripts rely on it.
    if (edge.valid()) run.start(edge, first_cotangent(roots[i], cotangents, i));
  }
  run.execute();
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList cotangents,
                         BackwardOptions options, bool allow_unused, TensorList no_grad_vars) {
  check_roots(outputs, cotangents);
  BackwardRun run(options, false);
  const GradMode mode(options.create_graph);
  run.found.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    user_check(inputs[i].defined(), ErrorKind::InvalidType, "input {} is None.", i);
    if (const Edge edge = edge_of(inputs[i]); edge.valid()) run.want(edge, i);
  }
  for (const Tensor& t : no_grad_vars)
    if (const Edge edge = edge_of(t); edge.valid()) run.block(edge);
  std::vector<Edge> roots;
  for (const Tensor& t : outputs) {
    user_check(t.defined(), ErrorKind::InvalidType, "an output is None.");
    roots.push_back(edge_of(t));
  }
  run.restrict_to_wanted(roots);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (roots[i].valid()) run.start(roots[i], first_cotangent(outputs[i], cotangents, i));
  run.execute();
  for (size_t i = 0; i < inputs.size(); ++i)
    user_check(allow_unused || run.found[i].defined(), ErrorKind::InvalidArgument,
               "the outputs do not depend on input {}.\nhint: Pass allow_unused=True to get "
               "None for it, or check that it was not detached and has stop_gradient=False.",
               i);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (is_sparse(inputs[i]) && run.found[i].defined())
      run.found[i] = with_values(inputs[i], run.found[i]);
  for (size_t i = 0; i < inputs.size(); ++i)
    run.found[i] = placed_like(inputs[i], std::move(run.found[i]));
  return std::move(run.found);
}

}  // namespace oar
