// Quantised tensors: elements with scales, and the ops that accept them.
#include "oar/ops/families/quantisation.h"

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/quantisation.h"
#include "oar/ops/gen/shape.h"
#include "oar/tensor/scales.h"

namespace oar {
namespace {

void check_blocks(const Tensor& x, const Tensor& scale, const char* name) {
  user_check(
      scale.rank() == x.rank(), ErrorKind::InvalidArgument,
      "{} has shape {}, but x of shape {} has {} axes.\nhint: Give {} a size for each axis of x: "
      "1 for one value along the whole axis.",
      name, to_string(scale.dims()), to_string(x.dims()), x.rank(), name);
  for (int i = 0; i < x.rank(); ++i)
    user_check(
        same(scale.dim(i), 1) || same(scale.dim(i), x.dim(i)) ||
            (scale.dim(i).hint() > 0 && same(floor_mod(x.dim(i), scale.dim(i)), 0)),
        ErrorKind::InvalidArgument,
        "{} has {} values along axis {}, which do not divide its {} elements into equal blocks.",
        name, scale.dim(i).str(), i, x.dim(i).str());
}

// x as [parts, block] along each axis, and the scale as [parts, 1].
struct Blocks {
  Shape parts, ones;
  bool plain = true;  // a scale that broadcasts as it is

  Blocks(const Tensor& x, const Tensor& scale) {
    for (int i = 0; i < x.rank(); ++i) {
      plain &= same(scale.dim(i), 1) || same(scale.dim(i), x.dim(i));
      parts.push_back(scale.dim(i));
      parts.push_back(same(scale.dim(i), x.dim(i)) ? Dim(1) : floor_div(x.dim(i), scale.dim(i)));
      ones.push_back(scale.dim(i));
      ones.push_back(1);
    }
  }
};

// Whole scales are as good as floats.
DType computed_in(const Tensor& scale) {
  return is_floating(scale.dtype()) ? scale.dtype() : default_dtype();
}

const OpDef dequantize_op = {
    .schema =
        "dequantize(Tensor x, Tensor scale, Tensor? zero_point = None, dtype? dtype = None) -> Tensor",
    .brief =
        "(x - zero_point) * scale. Each size of scale divides that of x: one scale for a whole axis, for "
        "each element of it, or for each block of neighbours.",
    .infer = [](const args::dequantize& a) -> Metas {
      check_blocks(a.x, a.scale, "scale");
      if (a.zero_point.defined()) check_blocks(a.x, a.zero_point, "zero_point");
      return TensorMeta{a.dtype.value_or(computed_in(a.scale)), a.x.shape()};
    },
    .decompose = [](const args::dequantize& a) -> Made {
      const DType wide = computed_in(a.scale);
      const auto shifted = [&](Tensor x, Tensor zero) { return zero.defined() ? x - zero : x; };
      const Tensor zero = a.zero_point.defined() ? cast(a.zero_point, wide) : Tensor();
      Tensor x = cast(a.x, wide);
      const Tensor scale = cast(a.scale, wide);
      const Blocks blocks(a.x, a.scale);
      if (blocks.plain) {
        x = shifted(x, zero) * scale;
      } else {
        const Tensor zeros = zero.defined() ? reshape(zero, blocks.ones) : Tensor();
        x = shifted(reshape(x, blocks.parts), zeros) * reshape(scale, blocks.ones);
        x = reshape(x, a.x.dims());
      }
      return a.dtype && *a.dtype != wide ? cast(x, *a.dtype) : x;
    },
    .traits = Trait::Packed,
    .dtypes = "int float",
    .numpy =
        "(lambda w, spread: ((x.astype(w) - (0 if zero_point is None else spread(zero_point).astype(w))) * "
        "spread(scale).astype(w)).astype(dtype or w))(scale.dtype if scale.dtype.kind == 'f' else np.float32, "
        "lambda v: np.kron(v, np.ones([n // m for n, m in zip(x.shape, v.shape)], v.dtype)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 6}), positive({4, 1}))
              .add(t({4, 6}), positive({2, 3}), positive({2, 3}))
              .add(t({2, 8}), positive({1, 2}))
              .add(t({3}), positive({1}))
              .add(t({}), positive({}));
        },
};

[[noreturn, gnu::cold]] void refuse_quantised(const Op& op, Args args) {
  const OpScope scope(op.name().c_str());
  for (size_t i = 0; i < args.size(); ++i)
    for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) {
      if (!t.has(kQuantised)) return;
      const std::string& name = op.schema().parameters[i].name;
      if (t->scales)
        fail(ErrorKind::Unsupported,
             "{} is {} with scales, which {} would ignore.\nhint: Cast it to a float first, "
             "{}.astype('float32'): that applies them.",
             name, t.describe(), op.name(), name);
      fail(
          ErrorKind::InvalidType,
          "{} has dtype {}, which is for storage only: {} does not accept elements that share bytes.\nhint: "
          "Cast it first, for example {}.astype('{}').",
          name, name_of(t.dtype()), op.name(), name,
          t.dtype() == DType::Float4E2M1FN ? "float32" : "int8");
    });
  fail(ErrorKind::Internal, "{} has no quantised operand", op.name());
}

// A tensor with scales can be copied together with them, or cast to its values.
Outputs call_with_scales(const Op& op, Args args) {
  static const Op &cast_op = get_op("cast"), &assign_op = get_op("assign");
  if (&op != &cast_op && &op != &assign_op) refuse_quantised(op, args);
  const Tensor& x = args[0].as_tensor();
  const Scales& scales = *scales_of(x);
  Outputs outputs;
  if (&op == &assign_op)
    outputs.push_back(
        with_scales(assign(without_scales(x)), scales.scale_tensor(), scales.zero_point_tensor()));
  else if (is_floating(args[1].as_dtype()))
    outputs.push_back(dequantize(without_scales(x), scales.scale_tensor(),
                                 scales.zero_point_tensor(), args[1].as_dtype()));
  else
    refuse_quantised(op, args);
  return outputs;
}

Outputs quantised_layer(const Op& op, Args args) {
  bool scaled = false;
  for_each_tensor(args, [&](const Tensor& t) { scaled |= t->scales != nullptr; });
  if (scaled) return call_with_scales(op, args);
  if (!op.has(Trait::Packed) && !op.has(Trait::View)) refuse_quantised(op, args);
  return proceed(op, args, below(kQuantised));
}

}  // namespace

void install_quantised_layer() { install_layer(kQuantised, quantised_layer); }

OAR_FAMILY(quantisation, &dequantize_op)

}  // namespace oar
