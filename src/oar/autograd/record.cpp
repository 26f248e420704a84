#include "oar/autograd/record.h"

#include <algorithm>

#include "oar/autograd/engine.h"
#include "oar/autograd/transform.h"
#include "oar/base/scope_guard.h"
#include "oar/ops/core/last_use.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/strided.h"
#include "oar/tensor/strides.h"

namespace oar {
namespace {

Tensor bare(const Tensor& t) {
  return t.defined() ? Tensor::meta(t.dims(), t.dtype(), t.device()) : Tensor();
}

// A saved alias as a tensor with its place in the graph, for higher derivatives.
Tensor with_edge(const Tensor& alias, const Edge& edge) {
  if (edge.leaf.defined()) return edge.leaf;
  if (!edge.node) return alias;
  Tensor t(alias->alias());
  set_history(t, edge.node, edge.index);
  return t;
}

// A saved tensor's content with its place in the graph, where the leaf itself may have other content.
Tensor on_edge(const Tensor& content, const Edge& edge) {
  if (!edge.leaf.defined()) return with_edge(content, edge);
  return custom_function(
      {&edge.leaf, 1}, [&](TensorList) { return std::vector{content}; },
      [](TensorList grads) { return std::vector{grads[0]}; }, "saved")[0];
}

// Does the call itself write the tensor's memory? An operand may be the one that is written, as in
// multiply_(y, y), or share memory with it.
bool overwritten(const Op& op, Args args, size_t parameter, const Tensor& t) {
  if (op.schema().parameters[parameter].written) return true;
  bool found = false;
  if (op.has(Trait::Inplace) && t->storage)
    for (size_t i = 0; i < args.size(); ++i)
      if (op.schema().parameters[i].written)
        for_each_tensor(args.subspan(i, 1),
                        [&](const Tensor& w) { found |= w->storage == t->storage; });
  return found;
}

// A bit per parameter with a tensor that requires a gradient.
uint32_t recorded_parameters(Args args) {
  uint32_t mask = 0;
  for (size_t i = 0; i < args.size(); ++i)
    for_each_tensor(args.subspan(i, 1),
                    [&](const Tensor& t) { mask |= uint32_t{t.has(kRecording)} << i; });
  return mask;
}

}  // namespace

OpNode::OpNode(const Op& op, Args args) : op_(op), recorded_(recorded_parameters(args)) {
  for (size_t i = 0; i < args.size(); ++i) {
    const Value& v = args[i];
    const Parameter& p = op.schema().parameters[i];
    if (!p.is_tensor()) {
      args_.push(v);
      continue;
    }
    if (v.is_tensors()) {
      for (const Tensor& t : v.as_tensors()) edges.push_back(t.defined() ? edge_of(t) : Edge{});
    } else {
      edges.push_back(v.is_tensor() ? edge_of(v.as_tensor()) : Edge{});
    }
    save_argument(i, args);
  }
}

// Lets the thread's hook, if there is one, take over a tensor that is about to be saved.
bool OpNode::pack(const Tensor& t, int16_t place, size_t element) {
  UnpackHook unpack = packed(t);
  if (!unpack) return false;
  if (!packed_) packed_ = std::make_unique<std::vector<Packed>>();
  packed_->push_back({std::move(unpack), place, element});
  return true;
}

Tensor OpNode::saved(const Tensor& t) {
  // An alias: the tensor itself may later be written in place, and its history would then lead to this node.
  return Tensor(t->alias());
}

void OpNode::save_argument(size_t i, Args args) {
  const Value& v = args[i];
  const Op& rules = op_.inplace_of() ? *op_.inplace_of() : op_;
  const bool named = rules.saved_inputs() >> i & 1, shape = rules.saved_shapes() >> i & 1;
  const uint32_t readers = rules.saved_for(i);
  const bool whole = named && (readers == 0 || (readers & recorded_) != 0);
  const auto keep = [&](const Tensor& t, size_t element = 0) -> Tensor {
    if (!t.defined() || (!named && !shape)) return {};
    if (!whole) return bare(t);
    const bool written = overwritten(op_, args, i, t);
    if (written) copied_ |= 1u << i;
    Tensor copy;
    if (written) {
      const GradMode off(false);
      copy = assign(t);
    }
    if (t_pack_hook && pack(written ? copy : t, static_cast<int16_t>(i), element)) [[unlikely]]
      return bare(t);
    if (written) return copy;
    Tensor alias = saved(t);
    if (t->storage)
      versions_.push_back({alias.impl(), t->storage->version(), static_cast<int16_t>(i)});
    return alias;
  };
  if (v.is_tensors()) {
    std::vector<Tensor> list;
    for (const Tensor& t : v.as_tensors()) list.push_back(keep(t, list.size()));
    args_.push(Value());
    args_.set_tensors(i, std::move(list));
    return;
  }
  args_.push(Value());
  if (v.is_tensor())
    if (Tensor t = keep(v.as_tensor()); t.defined()) args_.set_tensor(i, std::move(t));
}

void OpNode::save_outputs(const Outputs& outputs) {
  const Op& rules = op_.inplace_of() ? *op_.inplace_of() : op_;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = outputs[i];
    results.emplace_back(t.shape(), t.dtype(), t.device());
    const size_t result = op_.schema().returns_list() ? 0 : std::min<size_t>(i, 31);
    if (!(rules.saved_outputs() >> result & 1)) {
      outputs_.push_back(Tensor());
      continue;
    }
    if (t_pack_hook && pack(t, static_cast<int16_t>(-1 - static_cast<int>(i)), 0)) [[unlikely]] {
      outputs_.push_back(bare(t));
      continue;
    }
    outputs_.push_back(saved(t));
    if (t->storage)
      versions_.push_back({outputs_.back().impl(), t->storage->version(),
                           static_cast<int16_t>(-1 - static_cast<int>(result))});
  }
}

void OpNode::free_saved() {
  args_ = Frame();
  outputs_.clear();
  versions_.clear();
  packed_.reset();
  freed_ = true;
}

void OpNode::check_versions() const {
  for (const Version& v : versions_) {
    if (v.tensor->storage->version() == v.version) continue;
    const std::string what =
        v.parameter >= 0
            ? "operand " + op_.schema().parameters[static_cast<size_t>(v.parameter)].name
            : "result " + op_.schema().results[static_cast<size_t>(-1 - v.parameter)].name;
    fail(
        ErrorKind::Runtime,
        "the gradient of {} needs its {} ({}), which has been changed in place since (received "
        "tensor_version:{} != wrapper_version_snapshot:{}).\nhint: Use the out-of-place op, or clone() "
        "the tensor before changing it. autograd.set_detect_anomaly(True) shows the forward call.",
        op_.name(), what, Tensor::share(const_cast<TensorImpl*>(v.tensor)).describe(),
        v.tensor->storage->version(), v.version);
  }
}

// The saved arguments, with those that hooks took over.
Frame OpNode::unpacked_args() const {
  Frame frame(args_.args());
  for (const Packed& p : *packed_) {
    if (p.place < 0) continue;
    const auto i = static_cast<size_t>(p.place);
    if (!frame[i].is_tensors()) {
      frame.set_tensor(i, unpacked(p.unpack, frame[i].as_tensor(), op_.name()));
      continue;
    }
    const TensorList before = frame[i].as_tensors();
    std::vector<Tensor> list(before.begin(), before.end());
    list[p.element] = unpacked(p.unpack, list[p.element], op_.name());
    frame.set_tensors(i, std::move(list));
  }
  return frame;
}

// A saved argument with its place in the graph.
Tensor OpNode::restored(const Tensor& saved, const Edge& edge, int16_t parameter) const {
  if (!packed_ || !edge.leaf.defined()) return with_edge(saved, edge);
  const bool taken = std::any_of(packed_->begin(), packed_->end(),
                                 [&](const Packed& p) { return p.place == parameter; });
  return taken ? on_edge(saved, edge) : with_edge(saved, edge);
}

Frame OpNode::restored_args(Args saved) const {
  Frame frame(saved);
  size_t slot = 0;
  for (size_t i = 0; i < frame.size(); ++i) {
    if (!op_.schema().parameters[i].is_tensor()) continue;
    const auto parameter = static_cast<int16_t>(i);
    const Value v = saved[i];
    if (v.is_tensors()) {
      std::vector<Tensor> list;
      for (const Tensor& t : v.as_tensors()) {
        list.push_back(t.defined() && t.kind() != Kind::Meta ? restored(t, edges[slot], parameter)
                                                             : t);
        ++slot;
      }
      frame.set_tensors(i, std::move(list));
      continue;
    }
    // After an in-place op the tensor no longer has the value that its edge leads to, but the saved
    // copy does; it keeps the edge of the old value.
    if (v.is_tensor() && v.as_tensor().kind() != Kind::Meta) {
      const bool copied = (copied_ >> i & 1) && edges[slot].leaf.defined();
      if (!copied) frame.set_tensor(i, restored(v.as_tensor(), edges[slot], parameter));
    }
    ++slot;
  }
  return frame;
}

std::vector<Tensor> OpNode::restored_outputs() {
  std::vector<Tensor> outputs(outputs_.begin(), outputs_.end());
  if (packed_)
    for (const Packed& p : *packed_)
      if (p.place < 0) {
        Tensor& t = outputs[static_cast<size_t>(-1 - p.place)];
        t = unpacked(p.unpack, t, op_.name());
      }
  if (!grad_enabled()) return outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    Tensor t(outputs[i]->alias());
    set_history(t, Intrusive<Node>(static_cast<Node*>(this)), static_cast<uint32_t>(i));
    outputs[i] = std::move(t);
  }
  return outputs;
}

void fail_freed(std::string_view name) {
  fail(
      ErrorKind::Runtime,
      "the graph of {} has been freed by an earlier backward.\nhint: Pass retain_graph=True to that "
      "backward to run it again.",
      name);
}

Grads OpNode::apply(TensorList cotangents, std::span<const bool> needed) {
  if (freed_) fail_freed(op_.name());
  check_versions();
  const std::vector<Tensor> outputs = restored_outputs();
  VjpCall call{{}, outputs, cotangents, needed};
  const Frame found = packed_ ? unpacked_args() : Frame();
  const Args saved = packed_ ? found.args() : args_.args();
  const LastUse last(!grad_enabled() && !keeps_graph() && !packed_);
  if (!grad_enabled()) {
    call.args = saved;
    return fitting(rules().vjp(call));
  }
  const Frame args = restored_args(saved);
  call.args = args.args();
  return fitting(rules().vjp(call));
}

// Gradients from a user's rule are checked before they are passed on; our own rules are tested.
Grads OpNode::fitting(Grads grads) const {
  if (op_.is_built_in()) [[likely]]
    return grads;
  user_check(grads.size() == edges.size(), ErrorKind::InvalidArgument,
             "the vjp of {} returned {} gradients for {} tensor inputs.", op_.name(), grads.size(),
             edges.size());
  for (size_t i = 0; i < grads.size(); ++i)
    grads[i] = fitting_gradient(std::move(grads[i]), edges[i], format("the vjp of {}", op_.name()));
  return grads;
}

bool OpNode::add_to(const Tensor& sum, const Tensor& cotangent) const {
  if (freed_ || packed_ || !is_view() || edges.size() != 1) return false;
  Frame args(args_.args());
  args.set_tensor(0, sum);
  const Outputs views = dispatch(op_, args.args());
  const Tensor& part = views[0];
  const Ints shape(part->shape, static_cast<size_t>(part.rank()));
  if (part->storage != sum->storage || part.dtype() != cotangent.dtype() ||
      !meets_each_once(shape, part.strides()))
    return false;
  add_(part, cotangent);
  return true;
}

Grads call_vjp(const Op& op, Args args, TensorList outputs, TensorList cotangents,
               std::span<const bool> needed) {
  const LastUse not_last(false);  // these are not a node's own
  return rules_of(op).def().vjp(VjpCall{args, outputs, cotangents, needed});
}

namespace {

// dL/dbase and dL/dvalue of a write of `value` into a view of base.
class ViewWriteNode final : public Node {
 public:
  ViewWriteNode(const Tensor& view, Edge base, Edge value)
      : shape_(view.shape()),
        strides_(view.strides().begin(), view.strides().end()),
        offset_((static_cast<char*>(view->data) - static_cast<char*>(view->view_base->data)) /
                static_cast<int64_t>(size_of(view.dtype()))) {
    edges.push_back(std::move(base));
    edges.push_back(std::move(value));
    const Tensor whole = Tensor::share(view->view_base.get());
    results.push_back({whole.shape(), whole.dtype(), whole.device()});
  }
  Grads apply(TensorList cotangents, std::span<const bool>) override {
    const Tensor& g = cotangents[0];
    const Tensor part = as_strided(g, shape_, strides_, offset_);
    // The written part gets no gradient: g minus its part under the view.
    const Tensor rest = g - as_strided_grad(part, g.dims(), strides_, offset_);
    return {rest, part};
  }
  std::string name() const override { return "write_to_view"; }

 private:
  Shape shape_;
  std::vector<int64_t> strides_;
  int64_t offset_;
};

Intrusive<Node> view_node(const Tensor& view) {
  const Tensor base = Tensor::share(view->view_base.get());
  static const Op& op = get_op("as_strided");
  const Shape shape = view.shape();
  const int64_t offset = (static_cast<char*>(view->data) - static_cast<char*>(base->data)) /
                         static_cast<int64_t>(size_of(view.dtype()));
  const Value values[] = {Value(base), Value(Dims(shape)), Value(view.strides()), Value(offset)};
  auto node = make_intrusive<OpNode>(op, Args(values, 4));
  Outputs outputs;
  outputs.push_back(view);
  node->save_outputs(outputs);
  return node;
}

void check_leaf_write(const Tensor& x) {
  const bool view_of_leaf = x->view_base && [&] {
    const Tensor base = Tensor::share(x->view_base.get());
    return base.has(kRecording) && is_leaf(base);
  }();
  user_check(!(x.has(kRecording) && is_leaf(x)) && !view_of_leaf, ErrorKind::InvalidArgument,
             "a leaf that requires a gradient cannot be written in place.\nhint: Write under "
             "no_grad(), or to a copy: y = x.clone().");
}

// After an in-place call: the written tensor's history is the new node; if it is a view, so is the
// history of its base, and other views will refresh theirs.
void rebase(const Tensor& x, const Intrusive<Node>& node, uint32_t index) {
  user_check(
      !x->view_base || x.kind() != Kind::Distributed, ErrorKind::Unsupported,
      "a write through a view of a sharded tensor cannot be recorded.\nhint: Compute the whole tensor anew, "
      "for example with where() or concat(), or write under no_grad().");
  if (!x->view_base || !x.is_dense()) {
    set_history(x, node, index);
    if (History* h = maybe_history(x)) ++h->epoch;
    return;
  }
  const Tensor base = Tensor::share(x->view_base.get());
  user_check(base.is_contiguous(), ErrorKind::Unsupported,
             "a write through a view of a tensor with permuted memory cannot be recorded.\nhint: "
             "Call contiguous() on the tensor first.");
  auto write = make_intrusive<ViewWriteNode>(x, edge_of(base), Edge{node, index, {}});
  set_history(base, write, 0);
  ++history_of(base).epoch;
  set_history(x, view_node(x), 0);
}

// An op without a vjp of its own is expanded, so that its parts are recorded.
Outputs record_expanded(const Op& op, Args args) {
  const OpDef& rules = rules_of(op).def();
  user_check(rules.decompose || rules.vjp, ErrorKind::Unsupported, "{} has no derivative: {}.",
             op.name(), rules.vjp.is_unsupported() ? rules.vjp.why() : "its record has none");
  OpScope scope(op.name().c_str());
  check_arguments(op, args);
  if (!op.inplace_of()) return rules.decompose(args);
  const Tensor& x = args[0].as_tensor();
  check_leaf_write(x);
  // The parts may save what is about to be overwritten, so they get a copy of it.
  Frame frame(args);
  frame.set_tensor(0, assign(x));
  const Outputs made = dispatch(*op.inplace_of(), frame.args());
  user_check(made[0].shape() == x.shape(), ErrorKind::InvalidArgument,
             "the result has shape {} and cannot be written to a tensor of shape {}."
             "\nhint: Use {} without the underscore.",
             made[0].shape().str(), to_string(x.dims()), op.inplace_of()->name());
  Outputs outputs;
  outputs.push_back(
      copy_into(x, made[0].dtype() == x.dtype() ? made[0] : cast(made[0], x.dtype())));
  return outputs;
}

// Whether the result of an in-place op is cast before it is written, so that the cast has to be
// recorded too.
bool writes_another_dtype(const Op& op, Args args) {
  if (!op.inplace_of()) return false;
  const DType dtype = args[0].as_tensor().dtype();
  bool mixed = is_complex(dtype) && op.has(Trait::Elementwise) &&
               infer_results(*op.inplace_of(), args)[0].dtype != dtype;
  for_each_tensor(
      args, [&](const Tensor& t) { mixed |= is_differentiable(t.dtype()) && t.dtype() != dtype; });
  return mixed;
}

// Does this result have a gradient? An integer one does if it comes from integers whose gradient was requested.
bool has_gradient(const Tensor& result, Args args) {
  if (!result.defined()) return false;
  if (is_differentiable(result.dtype())) return true;
  bool requested = false;
  if (is_integral(result.dtype()))
    for_each_tensor(
        args, [&](const Tensor& t) { requested |= t.has(kRecording) && is_integral(t.dtype()); });
  return requested;
}

// Within a transform the inner tensors have their own tapes, so recording stays on for them.
uint32_t recording_below(Args args) {
  return dispatch_key(args) & kWrapped ? uint32_t{0} : uint32_t{kRecording};
}

}  // namespace

Outputs autograd_layer(const Op& op, Args args) {
  const OpDef& rules = rules_of(op).def();
  if (op.has(Trait::NoGrad) || (op.has(Trait::Random) && !rules.vjp && !rules.decompose)) {
    LayersOff off(recording_below(args));
    return proceed(op, args, below(kRecording));
  }
  if (!rules.vjp || writes_another_dtype(op, args)) return record_expanded(op, args);

  const bool writes = op.has(Trait::Inplace);
  if (writes) check_leaf_write(args[0].as_tensor());
  OpScope scope(op.name().c_str());
  // Before this call gets its number: a view's new node must come before what is computed from the view.
  for_each_tensor(args, refresh_view_history);
  auto node = make_intrusive<OpNode>(op, args);
  const Outputs outputs = [&] {
    LayersOff off(recording_below(args));
    return proceed(op, args, below(kRecording));
  }();
  node->save_outputs(outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!has_gradient(outputs[i], args)) continue;
    if (writes) {
      rebase(outputs[i], node, static_cast<uint32_t>(i));
      continue;
    }
    set_history(outputs[i], node, static_cast<uint32_t>(i));
    if (op.has(Trait::View) && outputs[i].is_dense() && !outputs[i]->view_base) {
      const Tensor& base = args[0].as_tensor();
      if (base.is_dense() && base->storage == outputs[i]->storage)
        outputs[i]->view_base =
            base->view_base ? base->view_base : Intrusive<TensorImpl>(base.impl());
    }
  }
  return outputs;
}

void refresh_view_history(const Tensor& t) {
  if (!t->view_base || (!t.is_dense() && t.kind() != Kind::Distributed)) return;
  const auto* base = static_cast<History*>(t->view_base->autograd.get());
  const History* own = maybe_history(t);
  if (!base || !own || base->epoch == own->seen_epoch) return;
  user_check(
      t.is_dense(), ErrorKind::Unsupported,
      "a view of a sharded tensor is used, which has been written since.\nhint: Take the view again after the write.");
  set_history(t, view_node(t), 0);
}

namespace {

class CustomNode;
thread_local CustomNode* t_running = nullptr;

class CustomNode final : public Node {
 public:
  CustomNode(std::string name, CustomBackward backward, Missing missing, Frees frees)
      : name_(std::move(name)), backward_(std::move(backward)), missing_(missing), frees_(frees) {}
  bool takes_missing_cotangents() const override { return missing_ == Missing::Undefined; }
  Grads apply(TensorList cotangents, std::span<const bool>) override {
    if (!backward_) fail_freed(name_);
    Grads grads;
    {
      CustomNode* const outer = std::exchange(t_running, this);
      const ScopeGuard back([outer] { t_running = outer; });
      for (Tensor& t : backward_(cotangents)) grads.push_back(std::move(t));
    }
    user_check(grads.size() == edges.size(), ErrorKind::InvalidArgument,
               "the backward of {} returned {} gradients for {} tensor inputs.", name_,
               grads.size(), edges.size());
    for (size_t i = 0; i < grads.size(); ++i)
      grads[i] =
          fitting_gradient(std::move(grads[i]), edges[i], format("the backward of {}", name_));
    return grads;
  }
  std::string name() const override { return name_; }
  void free_saved() override {
    if (frees_ == Frees::Node) backward_ = nullptr;
  }

 private:
  std::string name_;
  CustomBackward backward_;
  Missing missing_;
  Frees frees_;
};

}  // namespace

Tensor result_of_custom(const Tensor& alias, uint32_t index) {
  if (!t_running || !grad_enabled()) return alias;
  Tensor t(alias->alias());
  set_history(t, Intrusive<Node>(static_cast<Node*>(t_running)), index);
  return t;
}

Tensor input_of_custom(const Tensor& content, uint32_t index) {
  if (!t_running || !grad_enabled() || !t_running->edges[index].valid()) return content;
  return on_edge(content, t_running->edges[index]);
}

Tensor fitting_gradient(Tensor gradient, const Shape& shape, std::string_view source) {
  if (!gradient.defined() || gradient.shape() == shape) return gradient;
  // Paddle's scalars once had shape [1], and programs still return such gradients.
  if (shape.empty() && gradient.rank() == 1 && gradient.dim(0) == Dim(1))
    return reshape(gradient, {});
  user_check(
      same(gradient.shape(), shape), ErrorKind::InvalidArgument,
      "{} returned a gradient of shape {} for a tensor of shape {}.\nhint: A gradient has the "
      "shape of its tensor; sum over axes that were broadcast.",
      source, to_string(gradient.dims()), shape.str());
  return gradient;
}

Tensor fitting_gradient(Tensor gradient, const Edge& edge, std::string_view source) {
  if (!gradient.defined() || !edge.valid()) return gradient;
  if (edge.node)
    return fitting_gradient(std::move(gradient), edge.node->results[edge.index].shape, source);
  return fitting_gradient(std::move(gradient), edge.leaf.shape(), source);
}

std::vector<Tensor> custom_function(TensorList inputs, const CustomForward& forward,
                                    CustomBackward backward, std::string name, Missing missing,
                                    Frees frees) {
  if (const int level = dual_level(inputs, name); level > 0)
    return custom_dual(inputs, forward, backward, name, level);
  bool recorded = false;
  for (const Tensor& t : inputs) recorded |= t.defined() && t.has(kRecording);
  recorded &= grad_enabled();
  std::vector<Tensor> outputs;
  {
    const GradMode off(false);
    outputs = forward(inputs);
  }
  if (!recorded) return outputs;
  for (const Tensor& t : inputs)
    if (t.defined()) refresh_view_history(t);
  auto node = make_intrusive<CustomNode>(std::move(name), std::move(backward), missing, frees);
  for (const Tensor& t : inputs) node->edges.push_back(t.defined() ? edge_of(t) : Edge{});
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& t = outputs[i];
    node->results.push_back(t.defined() ? Node::ResultMeta{t.shape(), t.dtype(), t.device()}
                                        : Node::ResultMeta{});
    if (!t.defined() || !is_differentiable(t.dtype())) continue;
    // An input that is returned becomes a separate result, with its own history.
    for (const Tensor& input : inputs)
      if (t.is_same(input)) {
        t = Tensor(t->alias());
        break;
      }
    set_history(t, node, static_cast<uint32_t>(i));
  }
  return outputs;
}

}  // namespace oar
