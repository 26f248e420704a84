#include "oar/autograd/node.h"

#include <atomic>

#include "oar/autograd/record.h"
#include "oar/autograd/transform.h"
#include "oar/ops/families/sparse.h"

namespace oar {
namespace {

std::atomic<uint64_t> g_sequence{0};
std::atomic<uint64_t> g_hook_id{0};

}  // namespace

// Inputs are always created before what is computed from them, so the numbers order the graph.
Node::Node() : sequence_(g_sequence.fetch_add(1, std::memory_order_relaxed)) {
  if (keeps_origins()) [[unlikely]]
    extras().origin = std::make_unique<const Origin>(current_origin());
}

void Node::release() const {
  if (!drop_reference()) return;
  // Deleting a node releases the nodes that its edges lead to. The outermost call deletes them in a loop,
  // so that the depth of the stack does not grow with the depth of the graph.
  thread_local std::vector<const Node*> pending;
  thread_local bool draining = false;
  pending.push_back(this);
  if (draining) return;
  draining = true;
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    delete node;
  }
  draining = false;
}

History::~History() { forget_retained(); }

void History::forget_retained() {
  if (!retains || !retaining) return;
  auto& retained = retaining->extras().retained;
  std::erase_if(retained, [this](const auto& entry) { return entry.tensor == retains; });
}

History* maybe_history(const Tensor& t) { return static_cast<History*>(t->autograd.get()); }

History& history_of(const Tensor& t) {
  if (!t->autograd) t->autograd = std::make_unique<History>();
  return static_cast<History&>(*t->autograd);
}

Edge edge_of(const Tensor& whole) {
  const Tensor& t = carrier_of(whole);
  if (!t.has(kRecording)) return {};
  refresh_view_history(t);
  if (const History* h = maybe_history(t); h && h->node) return {h->node, h->index, {}};
  return {{}, 0, t};
}

void set_history(const Tensor& t, Intrusive<Node> node, uint32_t index) {
  History& h = history_of(t);
  // A tensor written in place retains the gradient of the value that it had when that was asked for,
  // as in Paddle. The node of a view that is made anew replaces the old one.
  const bool moves = h.retains && t->view_base;
  if (moves) h.forget_retained();
  h.node = std::move(node);
  h.index = index;
  if (moves && h.node) {
    h.node->keep_grad(index, h.retains);
    h.retaining = h.node;
  }
  if (t->view_base)
    if (const auto* base = static_cast<History*>(t->view_base->autograd.get()))
      h.seen_epoch = base->epoch;
  t->flags |= kRecording;
}

bool stop_gradient(const Tensor& t) { return !carrier_of(t).has(kRecording); }

void set_stop_gradient(const Tensor& whole, bool stop) {
  const Tensor& t = carrier_of(whole);
  if (stop) {
    t->flags &= ~uint32_t{kRecording};
    return;
  }
  // Integers have no gradient unless a user requests it.
  if (is_differentiable(t.dtype())) t->flags |= kRecording;
}

void request_gradient(const Tensor& whole) {
  const Tensor& t = carrier_of(whole);
  if (is_differentiable(t.dtype()) || (is_integral(t.dtype()) && t.is_dense()))
    t->flags |= kRecording;
}

bool is_leaf(const Tensor& whole) {
  const Tensor& t = carrier_of(whole);
  const History* h = maybe_history(t);
  return !t.has(kRecording) || !h || !h->node;
}

Tensor detach(const Tensor& t) {
  if (t.defined() && t.has(kWrapped)) return detach_wrapped(t);
  if (is_sparse(t)) return with_values(t, detach(carrier_of(t)));
  return Tensor(t->alias());
}

uint64_t add_tensor_hook(const Tensor& t, TensorHook hook) {
  if (is_sparse(t))
    // The hook is stored with the history of the values, so it must not hold them.
    return add_tensor_hook(carrier_of(t), [whole = detach(t), hook](const Tensor& grad) {
      const Tensor made = hook(with_values(whole, grad));
      return made.defined() ? values_for(whole, made) : made;
    });
  user_check(t.has(kRecording), ErrorKind::Runtime,
             "a hook needs a tensor that requires a gradient.\nhint: Set stop_gradient to False.");
  const uint64_t id = g_hook_id.fetch_add(1);
  History& h = history_of(t);
  if (h.node)
    h.node->extras().tensor_hooks.push_back({id, h.index, std::move(hook)});
  else
    h.leaf_hooks.push_back({id, 0, std::move(hook)});
  return id;
}

bool remove_tensor_hook(const Tensor& t, uint64_t id) {
  History& h = history_of(carrier_of(t));
  const auto matches = [id](const Node::Hook& hook) { return hook.id == id; };
  size_t removed = std::erase_if(h.leaf_hooks, matches);
  if (h.node) removed += std::erase_if(h.node->extras().tensor_hooks, matches);
  return removed > 0;
}

void Node::keep_grad(uint32_t index, TensorImpl* tensor) {
  extras().retained.push_back({g_hook_id.fetch_add(1), index, tensor});
}

void retain_grad(const Tensor& whole) {
  const Tensor& t = carrier_of(whole);
  History& h = history_of(t);
  if (!h.node || h.retains) return;
  h.retains = t.impl();
  h.retaining = h.node;
  h.node->keep_grad(h.index, t.impl());
}

bool grad_enabled() { return (t_layers.off & kRecording) == 0; }

}  // namespace oar
