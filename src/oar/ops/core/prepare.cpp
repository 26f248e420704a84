// Broadcast and type promotion, once, before every rule: they become explicit calls of cast and
// broadcast_to, so that no vjp, sharding rule or kernel has to handle them.
#include <algorithm>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/transfer.h"
#include "oar/tensor/element.h"

namespace oar {
namespace {

bool is_weak(const Tensor& t) { return t.has(kWeakScalar); }

int kind_of(DType t) { return is_bool(t) ? 0 : is_integral(t) ? 1 : is_floating(t) ? 2 : 3; }

// The common dtype of tensors with axes and 0-d tensors. In arithmetic a 0-d tensor does not widen larger ones of its
// kind; in maximum, where and all other ops it does, as in Paddle.
std::optional<DType> strong_dtype(const Op& op, std::optional<DType> wide,
                                  std::optional<DType> scalar) {
  if (!wide || !scalar) return wide ? wide : scalar;
  if (kind_of(*wide) == kind_of(*scalar) && op.has(Trait::Arithmetic)) return wide;
  return promote(*wide, *scalar);
}

// The common dtype of the promoted operands. A literal only decides between kinds of numbers: an
// integer tensor with the literal 0.5 becomes float, a float16 tensor with it stays float16.
DType common_dtype(const Op& op, Args args) {
  std::optional<DType> wide, scalar, weak;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!(op.promotes() >> i & 1)) continue;
    for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) {
      std::optional<DType>& slot = is_weak(t) ? weak : t.rank() == 0 ? scalar : wide;
      slot = slot ? promote(*slot, t.dtype()) : t.dtype();
    });
  }
  const std::optional<DType> strong = strong_dtype(op, wide, scalar);
  // A literal holds its number in full precision; for promotion its dtype is the default one.
  if (weak && is_floating(*weak)) weak = default_dtype();
  if (weak && is_complex(*weak)) weak = complex_type_of(strong.value_or(default_dtype()));
  DType dtype = strong.value_or(weak.value_or(default_dtype()));
  if (strong && weak && kind_of(*weak) > kind_of(*strong)) dtype = *weak;
  if (op.has(Trait::FloatMath) && !is_differentiable(dtype)) dtype = default_dtype();
  return dtype;
}

Tensor converted(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype) return t;
  if (is_weak(t) && t.is_dense()) {  // a literal: created again, so that nothing is recorded
    Tensor made = Tensor::empty(Dims{}, dtype);
    if (is_integral(t.dtype())) {
      const int64_t number = load_integer(t->data, t.dtype());
      store_integer(made->data, dtype, number);
      user_check(!is_integral(dtype) || load_integer(made->data, dtype) == number,
                 ErrorKind::InvalidArgument,
                 "the number {} does not fit into {}.\nhint: Cast the tensor to int64 first.",
                 number, name_of(dtype));
    } else {
      store_element(made->data, dtype, load_element(t->data, t.dtype()));
    }
    made->flags |= kWeakScalar;
    return made;
  }
  return cast(t, dtype);
}

// A 0-d CPU tensor is accepted with tensors of any device, but only as a scalar: before it is
// broadcast it is copied to their device.
Tensor beside(const Tensor& t, const Op& op, Args args) {
  if (t.rank() != 0 || !t.device().is_cpu()) return t;
  const Device device = device_of(op, args);
  return device.is_cpu() ? t : copy_to_device(t, devices::to_string(device));
}

Tensor stretched(const Tensor& t, const Shape& shape) {
  // A literal in a plain call: nothing records it, so no op is needed.
  if (is_weak(t) && t.is_dense() && !(t_layers.on & ~t_layers.off) && shape.is_known()) {
    const SmallVector<int64_t, 6> none(static_cast<size_t>(shape.rank()), 0);
    return Tensor::view_of(t->storage, shape, {none.data(), none.size()}, t->data, t.dtype());
  }
  return broadcast_to(t, shape);
}

bool same_dims(const Tensor& a, const Tensor& b) {
  return a.rank() == b.rank() && std::equal(a->shape, a->shape + a->ndim, b->shape);
}

// An error that names the operand of a kind which the op does not take, before promotion gives that
// kind to all of them.
void refuse_operand(const Op& op, Args args, DType dtype) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor() || kind_of(args[i].as_tensor().dtype()) != kind_of(dtype)) continue;
    Frame alone(args);
    for (size_t other = 0; other < args.size(); ++other)
      if (other != i) alone.set(other, Value());
    check_dtypes(op, alone.args());
  }
}

}  // namespace

bool prepare(const Op& op, Args args, Frame& frame) {
  const Tensor* first = nullptr;
  bool mixed_dtypes = false, mixed_shapes = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    const Tensor& t = args[i].as_tensor();
    if (!first) {
      first = &t;
      mixed_dtypes = is_weak(t) || (op.has(Trait::FloatMath) && !is_differentiable(t.dtype()));
      continue;
    }
    mixed_shapes |= !same_dims(t, *first);
    mixed_dtypes |= t.dtype() != first->dtype();
  }
  const bool casts = mixed_dtypes && (op.has(Trait::Promote) || op.has(Trait::FloatMath));
  const bool broadcasts = mixed_shapes && op.has(Trait::Broadcast);
  if (!casts && !broadcasts) return false;

  OpScope scope(op.name().c_str());
  const DType dtype = casts ? common_dtype(op, args) : DType::Float32;
  if (casts && !op.accepts(dtype)) refuse_operand(op, args, dtype);
  Shape shape;
  if (broadcasts) {
    shape = first->shape();
    for (const Value& v : args)
      if (v.is_tensor()) shape = broadcast_shapes(shape, v.as_tensor().shape());
    if (op.has(Trait::Inplace)) shape = args[0].as_tensor().shape();
  }
  bool changed = false;
  frame = Frame(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    const Tensor& t = args[i].as_tensor();
    Tensor ready = t;
    // A tensor written in place keeps its dtype; the result is cast to it.
    const bool written = op.schema().parameters[i].written;
    if (casts && !written && (op.promotes() >> i & 1)) ready = converted(ready, dtype);
    if (broadcasts && !(ready.shape() == shape)) ready = stretched(beside(ready, op, args), shape);
    if (ready.is_same(t)) continue;
    frame.set_tensor(i, ready);
    changed = true;
  }
  return changed;
}

}  // namespace oar
