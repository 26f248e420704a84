// The tape: nodes record how tensors were computed, edges lead to their operands.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "oar/autograd/gradient.h"
#include "oar/autograd/origin.h"
#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

class Node;

// Where a gradient is passed on to: a result of another node, or a leaf that stores it.
struct Edge {
  Intrusive<Node> node;
  uint32_t index = 0;
  Tensor leaf;
  bool valid() const { return node || leaf.defined(); }
};

// Sees a gradient and may replace it; an undefined result keeps it.
using TensorHook = std::function<Tensor(const Tensor& grad)>;
// Sees the gradients that a node got and computed, and may replace the latter.
using NodeHook = std::function<void(TensorList given, Grads& made)>;

class Node : public RefCounted {
 public:
  Node();
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Does it need to know which results have no gradient? Else those get zeros.
  virtual bool takes_missing_cotangents() const { return false; }
  // Gradients of the inputs from those of the results; one per edge.
  virtual Grads apply(TensorList cotangents, std::span<const bool> needed) = 0;
  virtual std::string name() const = 0;
  // Frees saved tensors; a later apply is an error.
  virtual void free_saved() {}

  uint64_t sequence() const { return sequence_; }
  // Iterative: a chain of a million nodes does not overflow the stack.
  void release() const;

  struct ResultMeta {
    Shape shape;
    DType dtype;
    Device device;
  };
  struct Hook {
    uint64_t id;
    uint32_t index;
    TensorHook function;
  };
  SmallVector<Edge, 2> edges;
  SmallVector<ResultMeta, 1> results;
  // A result that retains its gradient, as the earlier hooks left it.
  struct Retained {
    uint64_t id;  // numbered together with the hooks
    uint32_t index;
    TensorImpl* tensor;
  };
  // Rare, so stored separately.
  struct Extras {
    std::vector<Hook> tensor_hooks;
    std::vector<std::pair<uint64_t, NodeHook>> node_hooks;
    std::vector<Retained> retained;
    std::unique_ptr<const Origin> origin;  // if origins were kept when the node was created
  };
  Extras& extras() {
    if (!extras_) extras_ = std::make_unique<Extras>();
    return *extras_;
  }
  Extras* maybe_extras() const { return extras_.get(); }
  void keep_grad(uint32_t index, TensorImpl* tensor);

 private:
  uint64_t sequence_;
  std::unique_ptr<Extras> extras_;
};

// Autograd data of a tensor.
class History : public AutogradMeta, public FreeListed<History> {
 public:
  ~History() override;
  void forget_retained();

  Intrusive<Node> node;  // none for a leaf
  uint32_t index = 0;
  uint32_t epoch = 0;       // of a base: counts writes through views
  uint32_t seen_epoch = 0;  // of a view: the base's epoch when its node was created
  TensorImpl* retains = nullptr;
  Intrusive<Node> retaining;  // the node that hands the retained gradient over
  Gradient grad;
  std::vector<Node::Hook> leaf_hooks;
  std::string name;
};

History& history_of(const Tensor& t);  // creates one if there is none
History* maybe_history(const Tensor& t);
// Where the tensor's gradient is passed to; invalid if it requires none.
Edge edge_of(const Tensor& t);
// Makes t the result `index` of the node.
void set_history(const Tensor& t, Intrusive<Node> node, uint32_t index);

bool stop_gradient(const Tensor& t);
void set_stop_gradient(const Tensor& t, bool stop);
// As set_stop_gradient(t, false), for an integer tensor too. Its gradient is of its dtype, as in Paddle, and flows through
// integer results; those of floats have none.
void request_gradient(const Tensor& t);
bool is_leaf(const Tensor& t);
// The same content without history.
Tensor detach(const Tensor& t);

uint64_t add_tensor_hook(const Tensor& t, TensorHook hook);
bool remove_tensor_hook(const Tensor& t, uint64_t id);
void retain_grad(const Tensor& t);

bool grad_enabled();
// While alive, calls are recorded on the tape (or not). For the library's own steps; tangents are not affected.
class GradMode {
 public:
  explicit GradMode(bool enabled) : outer_(t_layers.off) {
    t_layers.off = enabled ? outer_ & ~uint32_t{kRecording} : outer_ | kRecording;
  }
  ~GradMode() { t_layers.off = (t_layers.off & ~uint32_t{kRecording}) | (outer_ & kRecording); }
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  uint32_t outer_;
};

// Whether derivatives are computed on this thread: on the tape, and by running jvps.
struct GradState {
  bool recording;
  int tangents_cut_until;  // see transform.h
};
GradState grad_state();
void set_grad_state(GradState state);
// The user's switch: on means both, off means neither. Returns the previous state.
GradState switch_grad(bool on);

// While alive, no derivative passes through what is computed.
class NoGrad {
 public:
  NoGrad() : before_(switch_grad(false)) {}
  ~NoGrad() { set_grad_state(before_); }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  GradState before_;
};

}  // namespace oar
