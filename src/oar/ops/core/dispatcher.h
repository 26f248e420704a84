// The one function that every op call passes through, and its layers.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"

namespace OAR_API oar {

// Layers of a thread. `on` forces layers into every call; `off` disables them.
struct ThreadLayers {
  uint32_t on = 0;
  uint32_t off = 0;
};
OAR_FAST_TLS inline thread_local ThreadLayers t_layers;

class LayersOff {
 public:
  explicit LayersOff(uint32_t layers) : outer_(t_layers.off) { t_layers.off |= layers; }
  ~LayersOff() { t_layers.off = outer_; }
  LayersOff(const LayersOff&) = delete;
  LayersOff& operator=(const LayersOff&) = delete;

 private:
  uint32_t outer_;
};

class LayersOn {
 public:
  explicit LayersOn(uint32_t layers) : outer_(t_layers.on) { t_layers.on |= layers; }
  ~LayersOn() { t_layers.on = outer_; }
  LayersOn(const LayersOn&) = delete;
  LayersOn& operator=(const LayersOn&) = delete;

 private:
  uint32_t outer_;
};

// A layer handles a call and goes on with `proceed`, giving the layers below it.
using LayerFunction = Outputs (*)(const Op& op, Args args);
// `flag` is the layer's TensorFlag. Layers act in the order of their bits, lowest first. Null removes the layer.
void install_layer(uint32_t flag, LayerFunction layer);
// Puts `outer` in the place of `inner`, which it calls.
void wrap_layer(uint32_t flag, LayerFunction inner, LayerFunction outer);
// The layers strictly below `flag`.
constexpr uint32_t below(uint32_t flag) { return kDispatchMask & ~(flag | (flag - 1)); }

// The call, through every active layer.
Outputs dispatch(const Op& op, Args args);
// … through those of `allowed` only.
Outputs proceed(const Op& op, Args args, uint32_t allowed);
// The bottom: inference, allocation, kernel (or view, or decomposition).
Outputs run_op(const Op& op, Args args);

// Shapes and dtypes of the results, without running: the op's rule, or its decomposition on meta
// tensors.
Metas infer_results(const Op& op, Args args);

// Bits of all tensors of the call, combined with the thread's `on` and `off`.
inline uint32_t dispatch_key(Args args) {
  uint32_t key = t_layers.on;
  for_each_tensor(args, [&](const Tensor& t) { key |= t->flags; });
  return key & kDispatchMask & ~t_layers.off;
}

// Casts and broadcasts the operands according to the op's traits, through public ops. Returns false,
// and does not touch `frame`, if there is nothing to do.
bool prepare(const Op& op, Args args, Frame& frame);

// OAR_TRACE=dispatch.
bool tracing_dispatch();

}  // namespace oar
