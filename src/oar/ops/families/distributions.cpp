// Random numbers from distributions other than the uniform and the normal one. As in random.cpp, an
// element's number depends on the stream and its place only.
#include "oar/ops/gen/distributions.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

constexpr Trait kRandom = Trait::Random | Trait::NoGrad;

Metas random_floats(Dims shape, std::optional<DType> dtype) {
  const DType type = dtype.value_or(default_dtype());
  user_check(is_floating(type), ErrorKind::InvalidType,
             "dtype is {}; random numbers of this kind are floats.", name_of(type));
  for (Dim d : shape)
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "the shape {} has a negative size.", to_string(shape));
  return TensorMeta{type, Shape(shape)};
}

const OpDef exponential_op = {
    .schema = "exponential(shape shape, float lam = 1.0, dtype? dtype = None) -> Tensor",
    .brief = "Numbers from the exponential distribution with rate lam.",
    .infer = [](const args::exponential& a) -> Metas {
      user_check(a.lam > 0, ErrorKind::InvalidArgument, "lam is {}; a rate is positive.", a.lam);
      return random_floats(a.shape, a.dtype);
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(IntVector{4, 7})
              .add(IntVector{}, 2.0, DType::Float64)
              .add(IntVector{0, 2}, 1.0, DType::Float16);
        },
};

const OpDef truncated_normal_op = {
    .schema =
        "truncated_normal(shape shape, float mean = 0.0, float std = 1.0, float a = -2.0, float b = "
        "2.0, dtype? dtype = None) -> Tensor",
    .brief =
        "Numbers from a normal distribution, cut off at a and b standard deviations from the mean.",
    .infer = [](const args::truncated_normal& a) -> Metas {
      user_check(a.std_ >= 0, ErrorKind::InvalidArgument,
                 "std is {}; a standard deviation is not negative.", a.std_);
      user_check(a.a < a.b, ErrorKind::InvalidArgument, "a is {} and b {}; a must be below b.", a.a,
                 a.b);
      return random_floats(a.shape, a.dtype);
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(IntVector{4, 7})
              .add(IntVector{}, 1.0, 2.0, -1.0, 3.0, DType::Float64)
              .add(IntVector{0, 2}, 0.0, 1.0, -2.0, 2.0, DType::BFloat16);
        },
};

const OpDef standard_gamma_op = {
    .schema = "standard_gamma(Tensor x) -> Tensor",
    .brief = "Numbers from gamma distributions with the shapes that x holds and scale 1.",
    .infer = infer::same_as_first,
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .dtypes = "float",
    .samples =
        [] { return Samples().add(positive({4, 7})).add(uniform_in(2, 9, {3})).add(positive({})); },
    .python = "oar",
};

const OpDef dirichlet_op = {
    .schema = "dirichlet(Tensor alpha) -> Tensor",
    .brief = "Points of the simplex, from Dirichlet distributions along the last axis of alpha.",
    .decompose = [](const args::dirichlet& a) -> Made {
      user_check(a.alpha.rank() > 0, ErrorKind::InvalidArgument,
                 "alpha is 0-d; it needs an axis of concentrations.");
      const Tensor drawn = standard_gamma(widened(a.alpha));
      return narrowed(drawn / sum(drawn, IntArgs{-1}, std::nullopt, true), a.alpha.dtype());
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .dtypes = "float",
    .samples = [] { return Samples().add(positive({4, 3})).add(positive({5})); },
};

const OpDef binomial_op = {
    .schema = "binomial(Tensor count, Tensor prob) -> Tensor",
    .brief =
        "The number of successes in `count` trials, each of which succeeds with probability prob.",
    .infer = [](const args::binomial& a) -> Metas {
      user_check(is_floating(a.prob.dtype()), ErrorKind::InvalidType,
                 "prob has dtype {}; it must be a float.", name_of(a.prob.dtype()));
      return TensorMeta{DType::Int64, a.count.shape()};
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom | Trait::Broadcast,
    .dtypes = "int float",
    .samples =
        [] {
          return Samples()
              .add(ints(1, 9, {4, 7}), uniform_in(0, 1, {4, 7}))
              .add(ints(50, 90, {3, 1}), uniform_in(0.2, 0.8, {4}))
              .add(ints(1, 9, {}), uniform_in(0, 1, {}));
        },
    .python = "oar",
};

}  // namespace

OAR_FAMILY(distributions, &exponential_op, &truncated_normal_op, &standard_gamma_op, &dirichlet_op,
           &binomial_op)

}  // namespace oar
