// Copies, also in another dtype.
#include "oar/ops/gen/copy.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

const OpDef assign_op = {
    .schema = "assign(Tensor x) -> Tensor",
    .brief = "A contiguous copy of x.",
    .infer = infer::same_as_first,
    .scalar = "x",
    .vjp = [](const vjp::assign& v) -> Grads { return v.grad; },
    .shard = "... -> ...",
    // A copy is needed only for results of the program: the caller may write them.
    .canonical =
        [](const CanonicalCall& c) {
          if (!c.is_returned(c.result())) c.replace_by(c.operand("x"));
        },
    .traits = Trait::Elementwise | Trait::Linear | Trait::Packed,
    .numpy = "x.copy()",
    .samples = samples::unary,
};

const OpDef copy_into_op = {
    .schema = "copy_into(Tensor(a!) x, Tensor value) -> Tensor(a!)",
    .brief = "Writes the values of `value`, broadcast and cast, into x.",
    .infer = infer::same_as_first,
    .scalar = "value",
    .vjp = [](const vjp::copy_into& v) -> Grads { return {zeros_like(v.grad), v.grad}; },
    .shard = "..., ... -> ...",
    .traits = Trait::Broadcast | Trait::Packed,
    .numpy = "np.broadcast_to(value, x.shape).astype(x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({2, 3}))
              .add(t({2, 3}), t({3}))
              .add(t({}), t({}))
              .add(t({0, 3}), t({3}));
        },
};

const OpDef cast_op = {
    .schema = "cast(Tensor x, dtype dtype) -> Tensor",
    .brief = "The values of x in another dtype, as NumPy's astype converts them.",
    .infer = [](const args::cast& a) -> Metas { return TensorMeta{a.dtype, a.x.shape()}; },
    .scalar = "x",
    .vjp = [](const vjp::cast& v) -> Grads { return cast(v.grad, v.x.dtype()); },
    .saves = "x:shape",
    .shard = "... -> ...",
    .canonical = canonical::same_type,
    .traits = Trait::Elementwise | Trait::Linear | Trait::Packed,
    .numpy = "x.astype(dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), DType::Float64)
              .add(t({3}), DType::Int32)
              .add(t({}), DType::Bool)
              .add(t({0, 3}), DType::Float16)
              .add(t({2, 2}), DType::BFloat16);
        },
    .python = "oar Tensor",
    .onnx = "Cast",
};

const OpDef bitcast_op = {
    .schema = "bitcast(Tensor x, dtype dtype) -> Tensor",
    .brief =
        "The bytes of x read as another dtype. Where the elements' sizes differ, the last axis grows or shrinks.",
    .infer = [](const args::bitcast& a) -> Metas {
      const int64_t from = bits_of(a.x.dtype()), to = bits_of(a.dtype);
      Shape shape = a.x.shape();
      if (from == to) return TensorMeta{a.dtype, shape};
      user_check(a.x.rank() > 0, ErrorKind::InvalidArgument,
                 "x is 0-d, and {} is not as wide as {}.", name_of(a.dtype), name_of(a.x.dtype()));
      const Dim bits = shape.back() * from;
      user_check(
          same(floor_mod(bits, to), 0), ErrorKind::InvalidArgument,
          "the last axis of x, of size {}, has {} bytes, which are not whole elements of {}.",
          shape.back().str(), floor_div(bits, 8).str(), name_of(a.dtype));
      shape.back() = floor_div(bits, to);
      return TensorMeta{a.dtype, shape};
    },
    .plan =
        [](const PlanCall& c) {
          const auto last = static_cast<int64_t>(c.plan.operands[0].axes.size()) - 1;
          const bool resized =
              last >= 0 && !(c.plan.operands[0].shape.back() == c.plan.results[0].shape.back());
          sharding::keep_axes(c.plan, resized ? Ints(&last, 1) : Ints());
        },
    .traits = Trait::NoGrad | Trait::Packed,
    .numpy =
        "np.ascontiguousarray(x).view(dtype).reshape(x.shape[:-1] + (-1,) if x.size and x.ndim else x.shape[:-1] + "
        "tuple(n * x.dtype.itemsize // np.dtype(dtype).itemsize for n in x.shape[-1:]))",
    .samples =
        [] {
          return Samples()
              .add(of_dtype(t({2, 4}), DType::Float64), DType::Int64)
              .add(of_dtype(t({3, 2}), DType::Float64), DType::UInt8)
              .add(ints(0, 9, {2, 8}), DType::Int16)
              .add(of_dtype(t({}), DType::Float64), DType::Int64)
              .add(of_dtype(t({0, 4}), DType::Float64), DType::Int32);
        },
};

}  // namespace

OAR_FAMILY(copy, &assign_op, &copy_into_op, &cast_op, &bitcast_op)

}  // namespace oar
