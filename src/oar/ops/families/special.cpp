// The error function, the gamma function and related functions, Bessel functions.
#include "oar/ops/gen/special.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

const OpDef erf_op = {
    .schema = "erf(Tensor x) -> Tensor",
    .brief = "The error function: 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    .infer = infer::same_as_first,
    .scalar = "erf(x)",
    .vjp = [](const vjp::erf& v) -> Grads { return erf_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "sp.erf(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Erf",
};

const OpDef erf_grad_op = {
    .schema = "erf_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "grad * exp(-x²) * 2 / sqrt(pi): the derivative of erf.",
    .infer = infer::same_as_first,
    .decompose = [](const args::erf_grad& a) -> Made {
      return a.grad * exp(-(a.x * a.x)) * (2 * std::numbers::inv_sqrtpi);
    },
    .scalar = "grad * exp(-(x * x)) * (2 / sqrt(pi))",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "grad * np.exp(-x * x) * 2 / np.sqrt(np.pi)",
    .samples = samples::binary,
};

const OpDef erfinv_op = {
    .schema = "erfinv(Tensor x) -> Tensor",
    .brief = "The inverse of erf: infinite at -1 and 1, NaN beyond.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::erfinv& v) -> Grads {
      return v.grad * (exp(v.out * v.out) * (std::sqrt(std::numbers::pi) / 2));
    },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.erfinv(x)",
    .samples = [] { return samples::unary_in(-0.7, 0.7).add(uniform_in(0.9, 0.99, {3})); },
    .python = "oar Tensor",
};

// On both sides of 0, away from the poles at the integers below it.
Samples around_poles() {
  return samples::unary_in(1.2, 4.0)
      .add(uniform_in(-0.8, -0.2, {3}))
      .add(uniform_in(-5.8, -5.2, {2, 2}))
      .add(uniform_in(20, 40, {3}));
}

const OpDef lgamma_op = {
    .schema = "lgamma(Tensor x) -> Tensor",
    .brief = "The logarithm of the absolute value of the gamma function.",
    .infer = infer::same_as_first,
    .scalar = "lgamma(x)",
    .vjp = [](const vjp::lgamma& v) -> Grads { return v.grad * digamma(v.x); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.gammaln(x)",
    .samples = around_poles,
    .python = "oar Tensor",
};

const OpDef gammaln_op = {
    .schema = "gammaln(Tensor x) -> Tensor",
    .brief =
        "The logarithm of the absolute value of the gamma function: lgamma under its other name.",
    .decompose = [](const args::gammaln& a) -> Made { return lgamma(a.x); },
    .scalar = "lgamma(x)",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.gammaln(x)",
    .samples = around_poles,
    .python = "oar Tensor",
};

const OpDef digamma_op = {
    .schema = "digamma(Tensor x) -> Tensor",
    .brief = "The derivative of lgamma. NaN at the negative integers.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::digamma& v) -> Grads { return v.grad * polygamma(v.x, 1); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.digamma(x)",
    .samples = around_poles,
    .python = "oar Tensor",
};

const OpDef polygamma_op = {
    .schema = "polygamma(Tensor x, int n) -> Tensor",
    .brief = "The n-th derivative of digamma; n = 0 is digamma itself.",
    .infer = [](const args::polygamma& a) -> Metas {
      constexpr int64_t kLargest = int64_t{1}
                                   << 53;  // up to here a double represents every integer
      user_check(a.n >= 0 && a.n <= kLargest, ErrorKind::InvalidArgument,
                 "n is {}; it must not be negative, nor larger than {}.", a.n, kLargest);
      return infer::like(a.x);
    },
    .vjp = [](const vjp::polygamma& v) -> Grads { return v.grad * polygamma(v.x, v.n + 1); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.polygamma(n, x).astype(x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(1.2, 4.0, {4, 7}), 1)
              .add(uniform_in(1.2, 4.0, {3}), 0)
              .add(uniform_in(-0.8, -0.2, {3}), 1)
              .add(uniform_in(-2.7, -2.3, {3}), 2)
              .add(uniform_in(5, 40, {2, 2}), 3)
              .add(positive({}), 2)
              .add(positive({0, 3}), 1);
        },
    .python = "oar Tensor",
};

const OpDef multigammaln_op = {
    .schema = "multigammaln(Tensor x, int p) -> Tensor",
    .brief = "The logarithm of the multivariate gamma function of dimension p.",
    .infer = [](const args::multigammaln& a) -> Metas {
      constexpr int64_t kMostDimensions = 1 << 16;  // one term of the sum for each
      user_check(a.p >= 1 && a.p <= kMostDimensions, ErrorKind::InvalidArgument,
                 "p is {}; it must be from 1 to {}.", a.p, kMostDimensions);
      return infer::like(a.x);
    },
    .decompose = [](const args::multigammaln& a) -> Made {
      constexpr int64_t kAtOnce = 64;
      const auto p = static_cast<double>(a.p);
      Tensor total = lgamma(a.x);
      for (int64_t i = 1; i < std::min(a.p, kAtOnce); ++i)
        total = total + lgamma(a.x - 0.5 * static_cast<double>(i));
      // For more terms, many at a time: one call per term would be a program of as many calls.
      for (int64_t i = kAtOnce; i < a.p; i += kAtOnce) {
        const Tensor steps =
            range(0.5 * static_cast<double>(i),
                  0.5 * static_cast<double>(std::min(a.p, i + kAtOnce)), 0.5, a.x.dtype());
        total = total + sum(lgamma(unsqueeze(a.x, IntVector{-1}) - steps), IntVector{-1});
      }
      return total + p * (p - 1) / 4 * std::log(std::numbers::pi);
    },
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "sum((sp.gammaln(x - i / 2) for i in range(p)), np.zeros_like(x)) + x.dtype.type(p * (p - 1) / 4 "
        "* np.log(np.pi))",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(2, 4, {4, 3}), 1)
              .add(uniform_in(2, 4, {5}), 3)
              .add(uniform_in(2, 4, {}), 2)
              .add(uniform_in(2, 4, {0, 3}), 2);
        },
    .python = "oar Tensor",
};

// The order-th derivative by a of the density x^(a - 1) exp(-x) / gamma(a), which is the slope of
// gammainc along x: the density times the complete Bell polynomial of the derivatives of its logarithm.
Tensor density_derivative(const Tensor& a, const Tensor& x, int64_t order) {
  std::vector<Tensor> bell = {Tensor()};  // an undefined one means 1
  for (int64_t m = 0; m < order; ++m) {
    Tensor next;
    double choose = 1;
    for (int64_t i = 0; i <= m; ++i) {
      const Tensor slope = i == 0 ? log(x) - digamma(a) : -polygamma(a, i);
      const Tensor& rest = bell[static_cast<size_t>(m - i)];
      const Tensor term = (rest.defined() ? rest * slope : slope) * choose;
      next = next.defined() ? next + term : term;
      choose = choose * static_cast<double>(m - i) / static_cast<double>(i + 1);
    }
    bell.push_back(next);
  }
  const Tensor density = exp((a - 1) * log(x) - x - lgamma(a));
  return bell.back().defined() ? density * bell.back() : density;
}

Samples gamma_samples() {
  return Samples()
      .add(uniform_in(0.6, 5, {4, 7}), uniform_in(0.6, 5, {4, 7}))
      .add(uniform_in(0.6, 5, {2, 1, 5}), uniform_in(3, 12, {3, 1}))
      .add(uniform_in(8, 30, {3}), uniform_in(8, 30, {}))
      .add(positive({}), positive({}))
      .add(positive({0, 3}), positive({3}));
}

const OpDef gammainc_op = {
    .schema = "gammainc(Tensor x, Tensor y) -> Tensor",
    .brief = "The regularised lower incomplete gamma function P(x, y): the integral up to y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::gammainc& v) -> Grads {
      return {v.needs(0) ? v.grad * gammainc_order(v.x, v.y, 1) : Tensor(),
              v.needs(1) ? v.grad * density_derivative(v.x, v.y, 0) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kMath | Trait::Promote | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.gammainc(x, y)",
    .samples = gamma_samples,
    .python = "oar Tensor",
};

const OpDef gammaincc_op = {
    .schema = "gammaincc(Tensor x, Tensor y) -> Tensor",
    .brief = "The regularised upper incomplete gamma function Q(x, y): the integral starts at y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::gammaincc& v) -> Grads {
      return {v.needs(0) ? -v.grad * gammainc_order(v.x, v.y, 1) : Tensor(),
              v.needs(1) ? -v.grad * density_derivative(v.x, v.y, 0) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kMath | Trait::Promote | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.gammaincc(x, y)",
    .samples = gamma_samples,
    .python = "oar Tensor",
};

const OpDef gammainc_order_op = {
    .schema = "gammainc_order(Tensor x, Tensor y, int order) -> Tensor",
    .brief = "The derivative of gammainc by its first operand, so many times.",
    .infer = [](const args::gammainc_order& a) -> Metas {
      constexpr int64_t kMostOrders = 64;  // the work grows with the square
      user_check(
          a.order >= 0 && a.order <= kMostOrders, ErrorKind::Unsupported,
          "order is {}; derivatives of gammainc by its first operand are available for orders "
          "from 0 to {}.",
          a.order, kMostOrders);
      return infer::like(a.x);
    },
    .vjp = [](const vjp::gammainc_order& v) -> Grads {
      return {v.needs(0) ? v.grad * gammainc_order(v.x, v.y, v.order + 1) : Tensor(),
              v.needs(1) ? v.grad * density_derivative(v.x, v.y, v.order) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kMath | Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Full,
    // By differences of the function itself: eight points, exact to the eighth order.
    .numpy =
        "sp.gammainc(x, y) if order == 0 else (lambda f, h: sum(c * (f(x + k * h) - f(x - k * h)) for k, c in "
        "[(1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280)]) / h)(lambda a: sp.gammainc(a, y), 1e-2)",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(1, 5, {4, 3}), uniform_in(0.6, 5, {4, 3}), 1)
              .add(uniform_in(1, 5, {3}), uniform_in(3, 12, {}), 0)
              .add(uniform_in(1, 5, {0, 3}), uniform_in(3, 12, {}), 1);
        },
};

const OpDef i0_op = {
    .schema = "i0(Tensor x) -> Tensor",
    .brief = "The modified Bessel function of the first kind, of order 0.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::i0& v) -> Grads { return v.grad * i1(v.x); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.i0(x)",
    .samples = [] { return samples::unary().add(uniform_in(3, 9, {5})); },
    .python = "oar Tensor",
};

Samples bessel_samples() {
  return samples::unary().add(uniform_in(3, 12, {5})).add(uniform_in(-40, -15, {2, 2}));
}

const OpDef i0e_op = {
    .schema = "i0e(Tensor x) -> Tensor",
    .brief = "i0(x) * exp(-|x|), without overflow.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::i0e& v) -> Grads { return v.grad * (i1e(v.x) - sign(v.x) * v.out); },
    .saves = "x out",
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.i0e(x)",
    .samples = bessel_samples,
    .python = "oar Tensor",
};

// i1(x) / x, 1/2 at 0.
Tensor i1_over_x(const Tensor& x, const Tensor& i1_of_x) {
  const Tensor zero = equal(x, literal(0));
  return where(zero, literal(0.5), i1_of_x / where(zero, literal(1), x));
}

const OpDef i1_op = {
    .schema = "i1(Tensor x) -> Tensor",
    .brief = "The modified Bessel function of the first kind, of order 1.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::i1& v) -> Grads { return v.grad * (i0(v.x) - i1_over_x(v.x, v.out)); },
    .saves = "x out",
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.i1(x)",
    .samples = [] { return samples::unary().add(uniform_in(3, 9, {5})); },
    .python = "oar Tensor",
};

const OpDef i1e_op = {
    .schema = "i1e(Tensor x) -> Tensor",
    .brief = "i1(x) * exp(-|x|), without overflow.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::i1e& v) -> Grads {
      return v.grad * (i0e(v.x) - i1_over_x(v.x, v.out) - sign(v.x) * v.out);
    },
    .saves = "x out",
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "sp.i1e(x)",
    .samples = bessel_samples,
    .python = "oar Tensor",
};

const OpDef sinc_op = {
    .schema = "sinc(Tensor x) -> Tensor",
    .brief = "sin(pi * x) / (pi * x), and 1 at 0.",
    .infer = infer::same_as_first,
    .scalar = "x == 0 ? 1 : sin(pi * x) / (pi * x)",
    .vjp = [](const vjp::sinc& v) -> Grads {
      const Tensor zero = equal(v.x, literal(0));
      const Tensor slope = (cos(v.x * std::numbers::pi) - sinc(v.x)) / where(zero, literal(1), v.x);
      return v.grad * zero_where(zero, slope);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "np.sinc(x)",
    .samples = [] { return samples::unary().add(uniform_in(0.2, 3, {5})); },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(special, &erf_op, &erf_grad_op, &erfinv_op, &lgamma_op, &gammaln_op, &digamma_op,
           &polygamma_op, &multigammaln_op, &gammainc_op, &gammaincc_op, &gammainc_order_op, &i0_op,
           &i0e_op, &i1_op, &i1e_op, &sinc_op)

}  // namespace oar
