// Tensors that are created without an operand.
#include "oar/ops/gen/creation.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// As in Paddle, a whole number gives floats.
DType filled_dtype(const Scalar& value) {
  if (value.kind() == Scalar::Bool) return DType::Bool;
  return value.kind() == Scalar::Complex ? DType::Complex128 : default_dtype();
}

const OpDef full_op = {
    .schema = "full(shape shape, Scalar fill_value, dtype? dtype = None) -> Tensor",
    .brief = "A tensor of the given shape with every element set to one value.",
    .infer = [](const args::full& a) -> Metas {
      for (Dim d : a.shape)
        user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
                   "the shape {} has a negative size.", to_string(a.shape));
      return TensorMeta{a.dtype.value_or(filled_dtype(a.fill_value)), Shape(a.shape)};
    },
    .scalar = "fill_value",
    .plan = sharding::made_axes,
    .localise = sharding::result_shape("shape"),
    .fill = "fill_value",
    .traits = Trait::NoGrad,
    .numpy =
        "np.full(shape, fill_value, dtype or (None if isinstance(fill_value, (bool, complex)) else 'float32'))",
    .samples =
        [] {
          return Samples()
              .add(IntVector{2, 3}, 1.5)
              .add(IntVector{}, 2)
              .add(IntVector{0, 4}, 1.0)
              .add(IntVector{3}, 7, DType::Int32)
              .add(IntVector{2}, true, DType::Bool);
        },
    .python = "oar",
    .onnx = "ConstantOfShape",
};

const OpDef full_like_op = {
    .schema = "full_like(Tensor x, Scalar fill_value, dtype? dtype = None) -> Tensor",
    .brief = "A tensor with the shape of x (and its dtype, unless one is given) and one value.",
    .decompose = [](const args::full_like& a) -> Made {
      return full(a.x.dims(), a.fill_value, a.dtype.value_or(a.x.dtype()));
    },
    .plan = [](const PlanCall& c) { sharding::keep_axes(c.plan); },
    .traits = Trait::NoGrad,
    .numpy = "np.full_like(x, fill_value)",
    .samples = [] { return Samples().add(t({2, 3}), 2.0).add(t({}), 1.0).add(t({0, 2}), 1.0); },
    .python = "oar",
};

const OpDef zeros_op = {
    .schema = "zeros(shape shape, dtype? dtype = None) -> Tensor",
    .brief = "A tensor of zeros.",
    .decompose = [](const args::zeros& a) -> Made {
      return full(a.shape, Scalar(0.0), a.dtype.value_or(default_dtype()));
    },
    .plan = sharding::made_axes,
    .localise = sharding::result_shape("shape"),
    .traits = Trait::NoGrad,
    .numpy = "np.zeros(shape, dtype or 'float32')",
    .samples =
        [] {
          return Samples().add(IntVector{2, 3}).add(IntVector{}).add(IntVector{0}, DType::Int64);
        },
    .python = "oar",
};

const OpDef ones_op = {
    .schema = "ones(shape shape, dtype? dtype = None) -> Tensor",
    .brief = "A tensor of ones.",
    .decompose = [](const args::ones& a) -> Made {
      return full(a.shape, Scalar(1.0), a.dtype.value_or(default_dtype()));
    },
    .plan = sharding::made_axes,
    .localise = sharding::result_shape("shape"),
    .traits = Trait::NoGrad,
    .numpy = "np.ones(shape, dtype or 'float32')",
    .samples =
        [] {
          return Samples().add(IntVector{2, 3}).add(IntVector{}).add(IntVector{0}, DType::Int64);
        },
    .python = "oar",
};

const OpDef zeros_like_op = {
    .schema = "zeros_like(Tensor x, dtype? dtype = None) -> Tensor",
    .brief = "Zeros with the shape of x.",
    .decompose = [](const args::zeros_like& a) -> Made {
      return full_like(a.x, Scalar(0), a.dtype);
    },
    .plan = [](const PlanCall& c) { sharding::keep_axes(c.plan); },
    .traits = Trait::NoGrad,
    .numpy = "np.zeros_like(x)",
    .samples = samples::unary,
    .python = "oar",
};

const OpDef ones_like_op = {
    .schema = "ones_like(Tensor x, dtype? dtype = None) -> Tensor",
    .brief = "Ones with the shape of x.",
    .decompose = [](const args::ones_like& a) -> Made {
      return full_like(a.x, Scalar(1), a.dtype);
    },
    .plan = [](const PlanCall& c) { sharding::keep_axes(c.plan); },
    .traits = Trait::NoGrad,
    .numpy = "np.ones_like(x)",
    .samples = samples::unary,
    .python = "oar",
};

int64_t arange_length(double start, double end, double step) {
  user_check(step != 0 && std::isfinite(step), ErrorKind::InvalidArgument,
             "step must be a finite number other than 0, not {}.", step);
  user_check(std::isfinite(start) && std::isfinite(end), ErrorKind::InvalidArgument,
             "start and end must be finite, not {} and {}.", start, end);
  const double length = std::ceil((end - start) / step);
  constexpr double kMost = 0x1p48;  // more than any memory has
  user_check(
      length <= kMost, ErrorKind::InvalidArgument,
      "from {} to {} in steps of {} there are {} numbers, more than a tensor can hold.\nhint: "
      "Pass a smaller end or a larger step.",
      start, end, step, length);
  return std::max<int64_t>(0, static_cast<int64_t>(length));
}

// Python applies Paddle's defaults; here all three are given.
const OpDef range_op = {
    .schema = "range(Scalar start, Scalar end, Scalar step, dtype dtype) -> Tensor",
    .brief = "start, start + step, … up to but without end.",
    .infer = [](const args::range& a) -> Metas {
      return TensorMeta{a.dtype, Shape{arange_length(a.start.to_double(), a.end.to_double(),
                                                     a.step.to_double())}};
    },
    .plan = sharding::made_axes,
    .localise =
        [](const PieceCall& piece) {
          const args::range a(piece.frame.args());
          const bool whole_numbers = a.start.kind() == Scalar::Int && a.step.kind() == Scalar::Int;
          const int64_t skipped = piece.start.value(), count = piece.size.value();
          if (whole_numbers) {
            const int64_t first = a.start.to_int() + a.step.to_int() * skipped;
            piece.frame.set(0, first);
            piece.frame.set(1, first + a.step.to_int() * count);
          } else {
            const double step = a.step.to_double(),
                         first = a.start.to_double() + step * static_cast<double>(skipped);
            piece.frame.set(0, first);
            // Half a step before the end, which rounding cannot exceed.
            piece.frame.set(1, first + step * (static_cast<double>(count) - 0.5));
          }
        },
    .traits = Trait::NoGrad,
    .numpy = "np.arange(start, end, step).astype(dtype)",
    .samples =
        [] {
          return Samples()
              .add(0, 16, 1, DType::Int64)
              .add(5, -3, -2, DType::Int32)
              .add(0.0, 1.0, 0.25, DType::Float32)
              .add(3, 3, 1, DType::Int64);
        },
};

}  // namespace

OAR_FAMILY(creation, &full_op, &full_like_op, &zeros_op, &ones_op, &zeros_like_op, &ones_like_op,
           &range_op)

}  // namespace oar
