// Complex numbers: their parts, and complex tensors from parts. Gradients follow Paddle and PyTorch: the
// gradient of a real loss by z = a + ib is dL/da + i dL/db, so a vjp multiplies by the conjugate of
// the derivative.
#include "oar/ops/gen/complex.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

// Linear over the reals, which is enough for tangents and partial sums.
constexpr Trait kPart = Trait::Elementwise | Trait::Linear;

// Rules for real tensors call conj as well; for them it must cost nothing and not be recorded.
const OpDef conj_op = {
    .schema = "conj(Tensor x) -> Tensor",
    .brief = "The complex conjugate; a real tensor is its own.",
    .infer = infer::same_as_first,
    .decompose = [](const args::conj& a) -> Made {
      return is_complex(a.x.dtype()) ? complex_conj(a.x) : a.x;
    },
    .shard = "... -> ...",
    .canonical = canonical::involution,
    .traits = kPart,
    .numpy = "np.conj(x) if np.iscomplexobj(x) else x",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef complex_conj_op = {
    .schema = "complex_conj(Tensor x) -> Tensor",
    .brief = "The conjugate of a complex tensor.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::complex_conj& v) -> Grads { return complex_conj(v.grad); },
    .shard = "... -> ...",
    .traits = kPart,
    .dtypes = "complex",
    .numpy = "np.conj(x)",
    .samples = samples::unary,
};

// A real gradient as that of a tensor of the given dtype, complex or not.
Tensor widened(const Tensor& grad, DType dtype) {
  return grad.dtype() == dtype ? grad : cast(grad, dtype);
}

const OpDef real_op = {
    .schema = "real(Tensor x) -> Tensor",
    .brief = "The real part of x.",
    .infer = infer::real_like_first,
    .vjp = [](const vjp::real& v) -> Grads { return widened(v.grad, v.x.dtype()); },
    .saves = "x:shape",
    .shard = "... -> ...",
    .traits = kPart,
    .dtypes = "int float complex",
    .numpy = "np.real(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef imag_op = {
    .schema = "imag(Tensor x) -> Tensor",
    .brief = "The imaginary part of x: 0 for a real x.",
    .infer = infer::real_like_first,
    .vjp = [](const vjp::imag& v) -> Grads {
      if (!is_complex(v.x.dtype())) return zeros_like(v.grad);
      return complex(zeros_like(v.grad), v.grad);
    },
    .saves = "x:shape",
    .shard = "... -> ...",
    .traits = kPart,
    .dtypes = "int float complex",
    .numpy = "np.imag(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

// The angle grows fastest across x, by 1 / |x|; at 0, where it has no direction, the gradient is 0.
const OpDef angle_op = {
    .schema = "angle(Tensor x) -> Tensor",
    .brief = "The angle of a complex number; of a real one 0, or pi where it is negative.",
    .infer = infer::real_like_first,
    .vjp = [](const vjp::angle& v) -> Grads {
      if (!is_complex(v.x.dtype())) return zeros_like(v.grad);
      const Tensor re = real(v.x), im = imag(v.x), square = re * re + im * im;
      const Tensor g = v.grad / where(equal(square, literal(0)), literal(1), square);
      return complex(-g * im, g * re);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::FloatMath,
    .numpy = "np.angle(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef isreal_op = {
    .schema = "isreal(Tensor x) -> Tensor",
    .brief = "Whether the imaginary part of x is 0; it is of every real x.",
    .decompose = [](const args::isreal& a) -> Made {
      if (!is_complex(a.x.dtype())) return ones_like(a.x, DType::Bool);
      return equal(imag(a.x), literal(0));
    },
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isreal(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef complex_op = {
    .schema = "complex(Tensor real, Tensor imag) -> Tensor",
    .brief = "real + i * imag.",
    .infer = [](const args::complex& a) -> Metas {
      return TensorMeta{complex_type_of(a.real.dtype()), a.real.shape()};
    },
    .vjp = [](const vjp::complex& v) -> Grads {
      return {v.needs(0) ? widened(real(v.grad), v.real.dtype()) : Tensor(),
              v.needs(1) ? widened(imag(v.grad), v.imag.dtype()) : Tensor()};
    },
    .saves = "real:shape imag:shape",
    .shard = "..., ... -> ...",
    .traits = kPart | Trait::Promote | Trait::FloatMath,
    .dtypes = "float",
    .numpy = "real + 1j * imag",
    .samples = samples::binary,
    .python = "oar",
};

const OpDef polar_op = {
    .schema = "polar(Tensor abs, Tensor angle) -> Tensor",
    .brief = "The complex numbers with these magnitudes and angles.",
    .decompose = [](const args::polar& a) -> Made {
      return complex(a.abs * cos(a.angle), a.abs * sin(a.angle));
    },
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath,
    .dtypes = "float",
    .numpy =
        "(abs * np.cos(angle) + 1j * abs * np.sin(angle)).astype('complex128' if abs.dtype == 'float64' else "
        "'complex64')",
    .samples =
        [] {
          const auto of = [](const TensorSpec& spec) { return of_dtype(spec, DType::Float64); };
          return Samples()
              .add(of(t({4, 7})), of(t({4, 7})))
              .add(of(t({2, 1})), of(t({3})))
              .add(of(t({})), of(t({})))
              .add(of(t({0, 3})), of(t({3})));
        },
    .python = "oar Tensor",
};

const OpDef as_complex_op = {
    .schema = "as_complex(Tensor x) -> Tensor",
    .brief = "Pairs along the last axis, of size 2, as complex numbers.",
    .infer = [](const args::as_complex& a) -> Metas {
      user_check(a.x.rank() >= 1 && same(a.x.dim(-1), Dim(2)), ErrorKind::InvalidArgument,
                 "x has shape {}; its last axis must have size 2, for the real and the imaginary "
                 "part.\nhint: To join two tensors use complex(real, imag).",
                 to_string(a.x.dims()));
      user_check(
          a.x.dtype() == DType::Float32 || a.x.dtype() == DType::Float64, ErrorKind::InvalidType,
          "x has dtype {}; a complex number is a pair of float32 or float64.\nhint: Cast x to "
          "float32 first.",
          name_of(a.x.dtype()));
      Shape shape = a.x.shape();
      shape.pop_back();
      return TensorMeta{complex_type_of(a.x.dtype()), shape};
    },
    .vjp = [](const vjp::as_complex& v) -> Grads { return as_real(v.grad); },
    .shard = "...a -> ... ; a whole # a number has two parts",
    .traits = Trait::Linear,
    .numpy = "x[..., 0] + 1j * x[..., 1]",
    .samples =
        [] {
          const auto pairs = [](const Shape& shape, DType dtype) {
            return of_dtype(t(shape), dtype);
          };
          return Samples()
              .add(pairs({4, 7, 2}, DType::Float64))
              .add(pairs({3, 2}, DType::Float32))
              .add(pairs({2}, DType::Float64))
              .add(pairs({0, 2}, DType::Float64));
        },
    .python = "oar Tensor",
};

const OpDef as_real_op = {
    .schema = "as_real(Tensor x) -> Tensor",
    .brief = "Complex numbers as pairs along a new last axis.",
    .infer = [](const args::as_real& a) -> Metas {
      Shape shape = a.x.shape();
      shape.push_back(2);
      return TensorMeta{real_type_of(a.x.dtype()), shape};
    },
    .vjp = [](const vjp::as_real& v) -> Grads { return as_complex(v.grad); },
    .shard = "... -> ...a ; a whole # a number has two parts",
    .traits = Trait::Linear,
    .dtypes = "complex",
    .numpy = "np.stack([x.real, x.imag], -1)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(complex, &conj_op, &complex_conj_op, &real_op, &imag_op, &angle_op, &isreal_op,
           &complex_op, &polar_op, &as_complex_op, &as_real_op)

}  // namespace oar
