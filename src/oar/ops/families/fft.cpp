// Discrete Fourier transforms along axes: complex to complex, real to complex, complex to real. Each has a gradient that is the
// transform in the other direction with the same factor, so derivatives of any order are transforms again.
#include "oar/ops/gen/fft.h"

#include <algorithm>
#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/gen/complex.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

using Axes = SmallVector<int64_t, 6>;

// The transform of real numbers halves the last of the axes, so it needs one.
Axes transformed_axes(Ints axes, int rank, bool needs_one) {
  user_check(
      !axes.empty() || !needs_one, ErrorKind::InvalidArgument,
      "axes is empty; the transform needs at least one axis.\nhint: Pass axes=[-1] for the last "
      "axis.");
  Axes made;  // in the given order: the last is halved
  for (const int64_t axis : axes) {
    made.push_back(normalise_axis(axis, rank, "axes"));
    user_check(std::count(made.begin(), made.end(), made.back()) == 1, ErrorKind::InvalidArgument,
               "axes {} names an axis twice.", to_string(axes));
  }
  return made;
}

void check_normalization(std::string_view normalization) {
  user_check(normalization == "backward" || normalization == "forward" || normalization == "ortho",
             ErrorKind::InvalidArgument,
             "norm is '{}'.\nhint: It can be 'backward' (the inverse divides by n), 'forward' (the "
             "forward transform does) or 'ortho' (both divide by the square root).",
             normalization);
}

// The norm with which a transform in the other direction has the same factor.
std::string_view same_factor(std::string_view normalization) {
  return normalization == "backward"  ? "forward"
         : normalization == "forward" ? "backward"
                                      : normalization;
}

// How many coefficients determine the transform of n real numbers.
Dim half_of(Dim n) { return floor_div(n, 2) + 1; }

// `inside` for the coefficients that stand for two of the whole spectrum, themselves and their mirror image, else 1; shaped to
// multiply x, whose axis holds the coefficients of n real numbers.
Tensor mirror_weights(const Tensor& x, int64_t axis, Dim n, double inside, DType dtype) {
  const Dim twice = max_of(floor_div(n - 1, 2), 0), rest = x.dim(axis) - 1 - twice;
  const Tensor line = pad_constant(full({twice}, inside, dtype), {1, rest.word()}, 1.0);
  Shape shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = x.dim(axis);
  return reshape(line, shape);
}
Tensor times_real(const Tensor& complex_x, const Tensor& weights) {
  return complex_x * cast(weights, complex_x.dtype());
}

template <class Transform>
Made after_batch(const BatchCall& c, Transform&& transform) {
  const Tensor& x = c.args[0].as_tensor();
  const Ints axes = c.args[1].as_ints();
  Axes shifted;
  for (int64_t axis : axes) shifted.push_back(behind_batch(axis, x.rank() - 1, "axes"));
  return transform(x, shifted);
}

void plan_transform(const PlanCall& c) {
  const Axes axes = transformed_axes(c.args[1].as_ints(), c.args[0].as_tensor().rank(), false);
  sharding::keep_axes(c.plan, Ints(axes.data(), axes.size()));
}

// 5 n log2(n) for each line; half of it for real numbers.
Cost transform_cost(const Tensor& whole, double numbers, Ints axes, double share) {
  double flops = 0;
  for (int64_t axis : transformed_axes(axes, whole.rank(), false))
    flops += 5 * numbers * std::log2(std::max(2.0, extent(whole, static_cast<int>(axis)))) * share;
  return {.flops = flops};
}

const OpDef fft_c2c_op = {
    .schema = "fft_c2c(Tensor x, int[] axes, str normalization, bool forward) -> Tensor",
    .brief = "The discrete Fourier transform of complex numbers along axes, or its inverse.",
    .infer = [](const args::fft_c2c& a) -> Metas {
      check_normalization(a.normalization);
      static_cast<void>(transformed_axes(a.axes, a.x.rank(), false));
      return infer::like(a.x);
    },
    .cost =
        [](const CostCall& c) {
          return transform_cost(c.args[0].as_tensor(), elements(c.args[0].as_tensor()),
                                c.args[1].as_ints(), 1);
        },
    .vjp = [](const vjp::fft_c2c& v) -> Grads {
      return fft_c2c(v.grad, v.axes, same_factor(v.normalization), !v.forward);
    },
    .batch = [](const BatchCall& c) -> Made {
      return after_batch(c, [&](const Tensor& x, Ints axes) {
        const args::fft_c2c a(c.args);
        return fft_c2c(x, axes, a.normalization, a.forward);
      });
    },
    .plan = plan_transform,
    .traits = Trait::Linear,
    .dtypes = "complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f, n: x.copy() if not axes else np.zeros_like(x) if x.size == 0 else f(x, axes=axes, norm=n))(np.fft.fftn if "
        "forward else np.fft.ifftn, normalization).astype(x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({8}), IntVector{0}, "backward", true)
              .add(t({2, 5}), IntVector{-1}, "backward", false)
              .add(t({3, 4}), IntVector{0, 1}, "ortho", true)
              .add(t({2, 3, 6}), IntVector{1}, "forward", true)
              .add(t({2, 7, 2}), IntVector{0, -2}, "forward", false)
              .add(t({1}), IntVector{0}, "ortho", false)
              .add(t({2, 3}), IntVector{}, "backward", true)
              .add(t({0, 3}), IntVector{1}, "backward", true);
        },
};

// The coefficients of half the spectrum, in their place of the whole.
Dim coefficients(const args::fft_r2c& a, int64_t last) {
  return a.onesided ? half_of(a.x.dim(last)) : a.x.dim(last);
}

const OpDef fft_r2c_op = {
    .schema =
        "fft_r2c(Tensor x, int[] axes, str normalization, bool forward, bool onesided) -> Tensor",
    .brief =
        "The discrete Fourier transform of real numbers along axes. If onesided, only half of the last of the axes is returned; "
        "the other half is its mirror image, conjugate.",
    .infer = [](const args::fft_r2c& a) -> Metas {
      check_normalization(a.normalization);
      const Axes axes = transformed_axes(a.axes, a.x.rank(), true);
      Shape shape = a.x.shape();
      shape[static_cast<size_t>(axes.back())] = coefficients(a, axes.back());
      return TensorMeta{complex_type_of(a.x.dtype()), shape};
    },
    .cost =
        [](const CostCall& c) {
          return transform_cost(c.args[0].as_tensor(), elements(c.args[0].as_tensor()),
                                c.args[1].as_ints(), 0.5);
        },
    .vjp = [](const vjp::fft_r2c& v) -> Grads {
      const std::string_view normalization = same_factor(v.normalization);
      Tensor grad;
      if (v.onesided) {
        const int64_t last = normalise_axis(v.axes.back(), v.x.rank(), "axes");
        const Dim n = v.x.dim(last);
        const Tensor weights = mirror_weights(v.grad, last, n, 0.5, real_type_of(v.grad.dtype()));
        grad = fft_c2r(times_real(v.grad, weights), v.axes, normalization, !v.forward, n.word());
      } else {
        grad = real(fft_c2c(v.grad, v.axes, normalization, !v.forward));
      }
      return grad.dtype() == v.x.dtype() ? grad : cast(grad, v.x.dtype());
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      return after_batch(c, [&](const Tensor& x, Ints axes) {
        const args::fft_r2c a(c.args);
        return fft_r2c(x, axes, a.normalization, a.forward, a.onesided);
      });
    },
    .plan = plan_transform,
    .traits = Trait::Linear,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda y, f, n: np.zeros([d // 2 + 1 if onesided and i == axes[-1] % x.ndim else d for i, d in enumerate(x.shape)]) "
        "if y.size == 0 and x.shape[axes[-1]] else (f(x.astype('float64'), axes=axes, norm=n) if forward else "
        "np.conj(f(x.astype('float64'), axes=axes, norm={'backward': 'forward', 'forward': 'backward'}.get(n, n)))))("
        "x, np.fft.rfftn if onesided else np.fft.fftn, normalization).astype('complex128' if x.dtype == 'float64' else "
        "'complex64')",
    .samples =
        [] {
          return Samples()
              .add(t({8}), IntVector{0}, "backward", true, true)
              .add(t({2, 5}), IntVector{-1}, "backward", false, true)
              .add(t({3, 4}), IntVector{0, 1}, "ortho", true, true)
              .add(t({2, 3, 6}), IntVector{1}, "forward", true, false)
              .add(t({2, 7, 2}), IntVector{-2, 0}, "forward", false, true)
              .add(t({3, 6}), IntVector{0, 1}, "backward", true, false)
              .add(t({1}), IntVector{0}, "ortho", false, true)
              .add(t({0, 3}), IntVector{1}, "backward", true, false);
        },
};

const OpDef fft_c2r_op = {
    .schema =
        "fft_c2r(Tensor x, int[] axes, str normalization, bool forward, int last_dim_size = 0) -> Tensor",
    .brief =
        "The real numbers whose transform has these coefficients: half of the spectrum along the last of the axes, which gets "
        "last_dim_size elements (0: the even number that fits).",
    .infer = [](const args::fft_c2r& a) -> Metas {
      check_normalization(a.normalization);
      const Axes axes = transformed_axes(a.axes, a.x.rank(), true);
      const Dim given = Dim::from_word(a.last_dim_size), half = a.x.dim(axes.back());
      user_check(given.is_symbolic() || given.word() >= 0, ErrorKind::InvalidArgument,
                 "last_dim_size is {}; it must not be negative.", a.last_dim_size);
      const Dim n = given == Dim(0) ? (half - 1) * 2 : given;
      user_check(n.is_symbolic() || n.word() >= 0, ErrorKind::InvalidArgument,
                 "x has shape {}, with nothing along axis {}; the result would have {} elements "
                 "there.\nhint: Pass coefficients, at least one.",
                 to_string(a.x.dims()), axes.back(), n.str());
      user_check(
          same(half_of(n), half), ErrorKind::InvalidArgument,
          "x has {} coefficients along axis {}, but {} real numbers have {}.\nhint: Cut or pad x "
          "first, as oar.fft.irfft does.",
          half.str(), axes.back(), n.str(), half_of(n).str());
      Shape shape = a.x.shape();
      shape[static_cast<size_t>(axes.back())] = n;
      return TensorMeta{real_type_of(a.x.dtype()), shape};
    },
    .cost =
        [](const CostCall& c) {
          return transform_cost(c.args[0].as_tensor(), elements(c.results[0]), c.args[1].as_ints(),
                                0.5);
        },
    .vjp = [](const vjp::fft_c2r& v) -> Grads {
      const int64_t last = normalise_axis(v.axes.back(), v.grad.rank(), "axes");
      const Tensor spectrum =
          fft_r2c(v.grad, v.axes, same_factor(v.normalization), !v.forward, true);
      return times_real(spectrum, mirror_weights(spectrum, last, v.grad.dim(last), 2.0,
                                                 real_type_of(spectrum.dtype())));
    },
    .batch = [](const BatchCall& c) -> Made {
      return after_batch(c, [&](const Tensor& x, Ints axes) {
        const args::fft_c2r a(c.args);
        return fft_c2r(x, axes, a.normalization, a.forward, a.last_dim_size);
      });
    },
    .plan = plan_transform,
    .traits = Trait::Linear,
    .dtypes = "complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda n: np.zeros([n if i == axes[-1] % x.ndim else d for i, d in enumerate(x.shape)]) if n == 0 or x.size == 0 else "
        "np.fft.irfftn(np.conj(x) if forward else x, s=[x.shape[a] for a in axes[:-1]] + [n], axes=axes, norm={'backward': "
        "'forward', 'forward': 'backward'}.get(normalization, normalization) if forward else normalization))(last_dim_size or 2 "
        "* (x.shape[axes[-1]] - 1)).astype('float64' if x.dtype == 'complex128' else 'float32')",
    .samples =
        [] {
          return Samples()
              .add(t({5}), IntVector{0}, "backward", false)
              .add(t({2, 3}), IntVector{-1}, "backward", true, 5)
              .add(t({3, 4}), IntVector{0, 1}, "ortho", false, 6)
              .add(t({2, 3, 2}), IntVector{1}, "forward", true)
              .add(t({2, 4, 2}), IntVector{-2, 0}, "forward", false, 3)
              .add(t({1}), IntVector{0}, "ortho", false, 1)
              .add(t({2, 1}), IntVector{1}, "backward", false)
              .add(t({0, 3}), IntVector{1}, "backward", false);
        },
};

}  // namespace

OAR_FAMILY(fft, &fft_c2c_op, &fft_r2c_op, &fft_c2r_op)

}  // namespace oar
