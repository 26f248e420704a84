// Rectifiers: activations that pass positive elements and damp or drop the others.
#include "oar/ops/gen/relu.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/random.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

const OpDef relu_op = {
    .schema = "relu(Tensor x) -> Tensor",
    .brief = "max(x, 0).",
    .infer = infer::same_as_first,
    .scalar = "max(x, 0)",
    .vjp = [](const vjp::relu& v) -> Grads { return relu_grad(v.out, v.grad); },
    .saves = "out",
    .shard = "... -> ...",
    .canonical = canonical::idempotent,
    .epilogue = {.gradient = "relu_grad"},
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.maximum(x, 0)",
    .samples = samples::unary,
    .python = "oar.nn.functional",
    .onnx = "Relu",
};

// The mask is constant almost everywhere, so the op is linear in the gradient.
const OpDef relu_grad_op = {
    .schema = "relu_grad(Tensor out, Tensor grad) -> Tensor",
    .brief = "grad where out > 0, else 0: the derivative of relu.",
    .infer = infer::same_as_first,
    .scalar = "out > 0 ? grad : 0",
    .vjp = [](const vjp::relu_grad& v) -> Grads { return {Tensor(), relu_grad(v.out, v.grad)}; },
    .saves = "out",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "int float",
    .numpy = "np.where(out > 0, grad, np.zeros_like(grad))",
    .samples = samples::binary,
};

const OpDef relu6_op = {
    .schema = "relu6(Tensor x) -> Tensor",
    .brief = "min(max(x, 0), 6).",
    .infer = infer::same_as_first,
    .decompose = [](const args::relu6& a) -> Made { return clip(a.x, Scalar(0), Scalar(6)); },
    .scalar = "min(max(x, 0), 6)",
    .vjp = [](const vjp::relu6& v) -> Grads {
      return clip_grad(v.out, v.grad, Scalar(0), Scalar(6), false);
    },
    .saves = "out",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "int float",
    .numpy = "np.clip(x, 0, 6)",
    .samples = [] { return samples::unary().add(uniform_in(-3, 12, {9})); },
    .python = "oar.nn.functional",
};

const OpDef leaky_relu_op = {
    .schema = "leaky_relu(Tensor x, float negative_slope = 0.01) -> Tensor",
    .brief = "x where x >= 0, else negative_slope * x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::leaky_relu& a) -> Made {
      return where(greater_equal(a.x, literal(0)), a.x, a.x * a.negative_slope);
    },
    .scalar = "x >= 0 ? x : x * negative_slope",
    .vjp = [](const vjp::leaky_relu& v) -> Grads {
      return leaky_relu_grad(v.x, v.grad, v.negative_slope);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "np.where(x >= 0, x, negative_slope * x)",
    .samples = [] { return samples::unary().add(t({5}), 0.2).add(t({5}), 1.5); },
    .python = "oar.nn.functional",
    .onnx = "LeakyRelu",
};

const OpDef leaky_relu_grad_op = {
    .schema = "leaky_relu_grad(Tensor x, Tensor grad, float negative_slope) -> Tensor",
    .brief = "grad where x >= 0, else negative_slope * grad: the derivative of leaky_relu.",
    .infer = infer::same_as_first,
    .decompose = [](const args::leaky_relu_grad& a) -> Made {
      return where(greater_equal(a.x, literal(0)), a.grad, a.grad * a.negative_slope);
    },
    .scalar = "x >= 0 ? grad : grad * negative_slope",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(x >= 0, grad, negative_slope * grad)",
    .samples = [] { return Samples().add(t({4, 7}), t({4, 7}), 0.2).add(t({}), t({}), 1.5); },
};

const OpDef sloped_op = {
    .schema = "sloped(Tensor x, Tensor slope) -> Tensor",
    .brief = "x where x > 0, else slope * x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::sloped& a) -> Made {
      return where(greater_than(a.x, literal(0)), a.x, a.slope * a.x);
    },
    .scalar = "x > 0 ? x : slope * x",
    .vjp = [](const vjp::sloped& v) -> Grads {
      return {v.needs(0) ? sloped_grad(v.x, v.grad, v.slope) : Tensor(),
              v.needs(1) ? v.grad * minimum(v.x, literal(0)) : Tensor()};
    },
    .saves = "x slope",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Promote,
    .dtypes = "float",
    .numpy = "np.where(x > 0, x, slope * x)",
    .samples = samples::binary,
};

const OpDef sloped_grad_op = {
    .schema = "sloped_grad(Tensor x, Tensor grad, Tensor slope) -> Tensor",
    .brief = "grad where x > 0, else slope * grad: the derivative of sloped.",
    .infer = infer::same_as_first,
    .decompose = [](const args::sloped_grad& a) -> Made {
      return where(greater_than(a.x, literal(0)), a.grad, a.slope * a.grad);
    },
    .scalar = "x > 0 ? grad : slope * grad",
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Promote,
    .dtypes = "float",
    .numpy = "np.where(x > 0, grad, slope * grad)",
    .samples =
        [] {
          return Samples().add(t({4, 7}), t({4, 7}), t({4, 7})).add(t({2, 3}), t({2, 3}), t({}));
        },
};

// The axis of the channels in a data format such as NCHW or NLC.
int64_t channel_axis(std::string_view data_format, int rank) {
  const bool first = data_format == "NC" || data_format == "NCL" || data_format == "NCHW" ||
                     data_format == "NCDHW";
  const bool last = data_format == "NLC" || data_format == "NHWC" || data_format == "NDHWC";
  user_check(first || last, ErrorKind::InvalidArgument,
             "data_format is '{}'; it can be 'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC' or "
             "'NDHWC'.",
             data_format);
  return first ? 1 : rank - 1;
}

const OpDef prelu_op = {
    .schema = "prelu(Tensor x, Tensor weight, str data_format = 'NCHW') -> Tensor",
    .brief = "x where x > 0, else weight * x. The weight is one number, or one for each channel.",
    .infer = [](const args::prelu& a) -> Metas {
      const int64_t axis = channel_axis(a.data_format, a.x.rank());
      check_parameter(a.x, a.weight, "weight");
      user_check(a.weight.rank() == 1, ErrorKind::InvalidArgument,
                 "weight has shape {}; it must have one axis.", to_string(a.weight.dims()));
      const Dim many = a.weight.dim(0);
      user_check(
          many.is_symbolic() || many == Dim(1) || (a.x.rank() > 1 && same(a.x.dim(axis), many)),
          ErrorKind::InvalidArgument,
          "weight holds {} numbers and x has shape {}; with data_format '{}' it must hold "
          "one for each channel, or one for all.",
          many.str(), to_string(a.x.dims()), a.data_format);
      return infer::like(a.x);
    },
    .decompose = [](const args::prelu& a) -> Made {
      if (same(a.weight.dim(0), 1)) return sloped(a.x, reshape(a.weight, Dims()));
      Shape along(static_cast<size_t>(a.x.rank()), 1);
      along[static_cast<size_t>(channel_axis(a.data_format, a.x.rank()))] = a.weight.dim(0);
      return sloped(a.x, reshape(a.weight, along));
    },
    .dtypes = "float",
    .numpy =
        "np.where(x > 0, x, x * weight.reshape([-1 if i == (1 if data_format[1] == 'C' else x.ndim "
        "- 1) and weight.size > 1 else 1 for i in range(x.ndim)]))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}), t({3}))
              .add(t({2, 3, 4}), t({4}), "NLC")
              .add(t({2, 3}), t({1}))
              .add(t({}), t({1}))
              .add(t({0, 3}), t({3}), "NC");
        },
    .python = "oar.nn.functional",
    .onnx = "PRelu",
};

void check_slopes(double lower, double upper) {
  user_check(lower >= 0 && lower <= 1, ErrorKind::InvalidArgument,
             "lower is {}; it must be between 0 and 1.", lower);
  user_check(upper >= lower && upper <= 1, ErrorKind::InvalidArgument,
             "upper is {}; it must be between lower, which is {}, and 1.", upper, lower);
}

const OpDef rrelu_op = {
    .schema =
        "rrelu(Tensor x, float lower = 0.125, float upper = 0.3333333333333333, bool training "
        "= True) -> Tensor",
    .brief =
        "x where x >= 0, else x times a slope: in training a random one from [lower, upper) for "
        "each element, else their mean.",
    .decompose = [](const args::rrelu& a) -> Made {
      check_slopes(a.lower, a.upper);
      if (!a.training) return leaky_relu(a.x, (a.lower + a.upper) / 2);
      return sloped(a.x, uniform(a.x.dims(), a.x.dtype(), a.lower, a.upper));
    },
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] { return Samples().add(t({4, 7})).add(t({5}), 0.1, 0.3, false).add(t({}), 0.2, 0.2); },
    .python = "oar.nn.functional",
};

const OpDef thresholded_relu_op = {
    .schema = "thresholded_relu(Tensor x, float threshold = 1.0, float value = 0.0) -> Tensor",
    .brief = "x where x > threshold, else value.",
    .infer = infer::same_as_first,
    .decompose = [](const args::thresholded_relu& a) -> Made {
      return where(less_equal(a.x, literal(a.threshold)), literal(a.value), a.x);
    },
    .scalar = "x <= threshold ? value : x",
    .vjp = [](const vjp::thresholded_relu& v) -> Grads {
      return thresholded_relu_grad(v.x, v.grad, v.threshold);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "np.where(x <= threshold, np.array(value, x.dtype), x)",
    .samples = [] { return threshold_samples(0.2).add(t({5}), -0.4, 2.5); },
    .python = "oar.nn.functional",
    .onnx = "ThresholdedRelu",
};

const OpDef thresholded_relu_grad_op = {
    .schema = "thresholded_relu_grad(Tensor x, Tensor grad, float threshold) -> Tensor",
    .brief = "grad where x > threshold, else 0: the derivative of thresholded_relu.",
    .infer = infer::same_as_first,
    .decompose = [](const args::thresholded_relu_grad& a) -> Made {
      return zero_where(less_equal(a.x, literal(a.threshold)), a.grad);
    },
    .scalar = "x <= threshold ? 0 : grad",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(x <= threshold, 0, grad)",
    .samples = [] { return threshold_grad_samples(0.5); },
};

const OpDef elu_op = {
    .schema = "elu(Tensor x, float alpha = 1.0) -> Tensor",
    .brief = "x where x >= 0, else alpha * (exp(x) - 1).",
    .infer = infer::same_as_first,
    .decompose = [](const args::elu& a) -> Made {
      return where(less_than(a.x, literal(0)), expm1(a.x) * a.alpha, a.x);
    },
    .scalar = "x < 0 ? expm1(x) * alpha : x",
    .vjp = [](const vjp::elu& v) -> Grads { return elu_grad(v.x, v.grad, v.alpha); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "np.where(x < 0, alpha * np.expm1(x), x)",
    .samples = [] { return samples::unary().add(t({5}), 0.2).add(t({5}), -1.5); },
    .python = "oar.nn.functional",
    .onnx = "Elu",
};

const OpDef elu_grad_op = {
    .schema = "elu_grad(Tensor x, Tensor grad, float alpha) -> Tensor",
    .brief = "grad where x > 0, else grad * alpha * exp(x): the derivative of elu.",
    .infer = infer::same_as_first,
    .decompose = [](const args::elu_grad& a) -> Made {
      return where(greater_than(a.x, literal(0)), a.grad,
                   a.grad * exp(minimum(a.x, literal(0))) * a.alpha);
    },
    .scalar = "x > 0 ? grad : grad * exp(min(x, 0)) * alpha",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(x > 0, grad, grad * alpha * np.exp(x))",
    .samples = [] { return Samples().add(t({4, 7}), t({4, 7}), 0.2).add(t({}), t({}), -1.5); },
};

const OpDef celu_op = {
    .schema = "celu(Tensor x, float alpha = 1.0) -> Tensor",
    .brief = "x where x >= 0, else alpha * (exp(x / alpha) - 1).",
    .infer = [](const args::celu& a) -> Metas {
      user_check(a.alpha != 0, ErrorKind::InvalidArgument, "alpha is 0, and celu divides by it.");
      return infer::like(a.x);
    },
    .decompose = [](const args::celu& a) -> Made {
      return where(less_than(a.x, literal(0)), expm1(a.x / a.alpha) * a.alpha, a.x);
    },
    .scalar = "x < 0 ? expm1(x / alpha) * alpha : x",
    .vjp = [](const vjp::celu& v) -> Grads { return celu_grad(v.x, v.grad, v.alpha); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(x < 0, alpha * np.expm1(x / alpha), x)",
    .samples = [] { return samples::unary().add(t({5}), 0.4).add(t({5}), -1.5); },
    .python = "oar.nn.functional",
    .onnx = "Celu",
};

const OpDef celu_grad_op = {
    .schema = "celu_grad(Tensor x, Tensor grad, float alpha) -> Tensor",
    .brief = "grad where x > 0, else grad * exp(x / alpha): the derivative of celu.",
    .infer = infer::same_as_first,
    .decompose = [](const args::celu_grad& a) -> Made {
      return where(greater_than(a.x, literal(0)), a.grad,
                   a.grad * exp(minimum(a.x, literal(0)) / a.alpha));
    },
    .scalar = "x > 0 ? grad : grad * exp(min(x, 0) / alpha)",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(x > 0, grad, grad * np.exp(np.minimum(x, 0) / alpha))",
    .samples = [] { return Samples().add(t({4, 7}), t({4, 7}), 0.4).add(t({}), t({}), -1.5); },
};

const OpDef selu_op = {
    .schema =
        "selu(Tensor x, float scale = 1.0507009873554805, float alpha = 1.6732632423543772) "
        "-> Tensor",
    .brief = "scale * x where x > 0, else scale * alpha * (exp(x) - 1).",
    .infer = [](const args::selu& a) -> Metas {
      user_check(a.scale > 1, ErrorKind::InvalidArgument, "scale is {}; it must be larger than 1.",
                 a.scale);
      user_check(a.alpha >= 0, ErrorKind::InvalidArgument, "alpha is {}; it must not be negative.",
                 a.alpha);
      return infer::like(a.x);
    },
    .decompose = [](const args::selu& a) -> Made {
      return where(less_than(a.x, literal(0)), expm1(a.x) * (a.scale * a.alpha), a.x * a.scale);
    },
    .scalar = "x < 0 ? expm1(x) * (scale * alpha) : x * scale",
    .vjp = [](const vjp::selu& v) -> Grads { return selu_grad(v.out, v.grad, v.scale, v.alpha); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "scale * np.where(x < 0, alpha * np.expm1(x), x)",
    .samples = [] { return samples::unary().add(t({5}), 1.5, 0.4); },
    .python = "oar.nn.functional",
    .onnx = "Selu",
};

const OpDef selu_grad_op = {
    .schema = "selu_grad(Tensor out, Tensor grad, float scale, float alpha) -> Tensor",
    .brief =
        "The derivative of selu by its result: grad * (scale, or out + scale * alpha below 0).",
    .infer = infer::same_as_first,
    .decompose = [](const args::selu_grad& a) -> Made {
      const Tensor below = a.grad * (a.out + a.scale * a.alpha);
      return where(greater_than(a.out, literal(0)), a.grad * a.scale, below);
    },
    .scalar = "out > 0 ? grad * scale : grad * (out + scale * alpha)",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "grad * np.where(out > 0, scale, out + scale * alpha)",
    .samples =
        [] { return Samples().add(t({4, 7}), t({4, 7}), 1.05, 1.67).add(t({}), t({}), 1.5, 0.4); },
};

}  // namespace

OAR_FAMILY(relu, &relu_op, &relu_grad_op, &relu6_op, &leaky_relu_op, &leaky_relu_grad_op,
           &sloped_op, &sloped_grad_op, &prelu_op, &rrelu_op, &thresholded_relu_op,
           &thresholded_relu_grad_op, &elu_op, &elu_grad_op, &celu_op, &celu_grad_op, &selu_op,
           &selu_grad_op)

}  // namespace oar
