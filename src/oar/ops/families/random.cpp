// Random numbers. An element's number depends on the seed, the position in the stream and its
// index in the tensor, never on the number of threads. A seed other than 0 is a separate stream.
// `_part` makes the result a part of a larger tensor, with the same numbers as there.
#include "oar/ops/gen/random.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/random_rules.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

const OpDef uniform_op = {
    .schema =
        "uniform(shape shape, dtype? dtype = None, float min = -1.0, float max = 1.0, int "
        "seed = 0, shape? _part = None) -> Tensor",
    .brief = "Numbers spread evenly over [min, max).",
    .infer = [](const args::uniform& a) -> Metas {
      user_check(a.min <= a.max, ErrorKind::InvalidArgument,
                 "min is {} and max {}; min must not be larger.", a.min, a.max);
      return random_floats(a.shape, a.dtype);
    },
    .plan = sharding::made_axes,
    .localise = random_piece,
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(IntVector{4, 7})
              .add(IntVector{}, DType::Float64, 0.0, 3.0)
              .add(IntVector{0, 2}, DType::Float16)
              .add(IntVector{5}, DType::BFloat16, -1.0, 1.0, 7);
        },
    .python = "oar",
};

const OpDef gaussian_op = {
    .schema =
        "gaussian(shape shape, float mean = 0.0, float std = 1.0, int seed = 0, dtype? "
        "dtype = None, shape? _part = None) -> Tensor",
    .brief = "Numbers from a normal distribution.",
    .infer = [](const args::gaussian& a) -> Metas {
      user_check(a.std_ >= 0, ErrorKind::InvalidArgument,
                 "std is {}; a standard deviation is not negative.", a.std_);
      return random_floats(a.shape, a.dtype);
    },
    .plan = sharding::made_axes,
    .localise = random_piece,
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(IntVector{4, 7})
              .add(IntVector{3}, 1.0, 2.0, 5, DType::Float64)
              .add(IntVector{})
              .add(IntVector{0, 2}, 0.0, 1.0, 0, DType::Float16);
        },
};

const OpDef rand_op = {
    .schema = "rand(shape shape, dtype? dtype = None) -> Tensor",
    .brief = "Numbers spread evenly over [0, 1).",
    .decompose = [](const args::rand& a) -> Made { return uniform(a.shape, a.dtype, 0.0, 1.0); },
    .traits = kRandom,
    .samples = [] { return Samples().add(IntVector{4, 7}).add(IntVector{}, DType::Float64); },
    .python = "oar",
};

const OpDef randn_op = {
    .schema = "randn(shape shape, dtype? dtype = None) -> Tensor",
    .brief = "Numbers from the standard normal distribution.",
    .decompose = [](const args::randn& a) -> Made {
      return gaussian(a.shape, 0.0, 1.0, 0, a.dtype);
    },
    .traits = kRandom,
    .samples = [] { return Samples().add(IntVector{4, 7}).add(IntVector{}, DType::Float64); },
    .python = "oar",
};

const OpDef standard_normal_op = {
    .schema = "standard_normal(shape shape, dtype? dtype = None) -> Tensor",
    .brief = "Numbers from the standard normal distribution: randn under its other name.",
    .decompose = [](const args::standard_normal& a) -> Made { return randn(a.shape, a.dtype); },
    .traits = kRandom,
    .samples = [] { return Samples().add(IntVector{4, 7}); },
    .python = "oar",
};

const OpDef randint_op = {
    .schema =
        "randint(int low = 0, int? high = None, shape shape = [1], dtype? dtype = None, shape? _part "
        "= None) -> Tensor",
    .brief = "Integers spread evenly over [low, high), or [0, low) without high.",
    .infer = [](const args::randint& a) -> Metas {
      check_shape(a.shape);
      const int64_t low = a.high ? a.low : 0, high = a.high.value_or(a.low);
      user_check(
          low < high, ErrorKind::InvalidArgument,
          "there is no integer from {} up to, but excluding, {}.\nhint: Pass low < high (low "
          "> 0 "
          "without high).",
          low, high);
      return TensorMeta{a.dtype.value_or(DType::Int64), Shape(a.shape)};
    },
    .plan = sharding::made_axes,
    .localise = random_piece,
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(3, 9, IntVector{4, 7})
              .add(5, std::nullopt, IntVector{6}, DType::Int32)
              .add(-5, 5, IntVector{})
              .add(0, 10, IntVector{3}, DType::Float32);
        },
    .python = "oar",
};

const OpDef randint_like_op = {
    .schema =
        "randint_like(Tensor x, int low = 0, int? high = None, dtype? dtype = None) -> "
        "Tensor",
    .brief =
        "Integers spread evenly over [low, high) in the shape of x (and its dtype, unless "
        "one is given).",
    .decompose = [](const args::randint_like& a) -> Made {
      return randint(a.low, a.high, a.x.dims(), a.dtype.value_or(a.x.dtype()));
    },
    .traits = kRandom,
    .samples =
        [] { return Samples().add(t({4, 7}), 2, 5).add(t({2}), 4, std::nullopt, DType::Int64); },
    .python = "oar",
};

const OpDef randperm_op = {
    .schema = "randperm(int n, dtype dtype = int64) -> Tensor",
    .brief = "The integers from 0 to n - 1 in random order.",
    .infer = [](const args::randperm& a) -> Metas {
      user_check(a.n >= 0, ErrorKind::InvalidArgument, "n is {}; it must not be negative.", a.n);
      return TensorMeta{a.dtype, Shape{a.n}};
    },
    .shard = "whole: a permutation is drawn as one",
    .traits = kRandom,
    .samples = [] { return Samples().add(9).add(0).add(5, DType::Float32); },
    .python = "oar",
};

const OpDef bernoulli_op = {
    .schema = "bernoulli(Tensor x, shape? _part = None) -> Tensor",
    .brief = "1 with the probability that x holds, else 0.",
    .infer = infer::same_as_first,
    .shard = "... -> ...",
    .localise = random_piece,
    .traits = kRandom,
    .dtypes = "float",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(0, 1, {4, 7}))
              .add(uniform_in(0, 1, {}))
              .add(uniform_in(0, 1, {0, 2}));
        },
    .python = "oar",
};

const OpDef poisson_op = {
    .schema = "poisson(Tensor x, shape? _part = None) -> Tensor",
    .brief =
        "Counts from Poisson distributions with the means that x holds; 0 for a negative mean. The "
        "gradient is 0.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::poisson& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .localise = random_piece,
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] {
          return Samples().add(positive({4, 7})).add(uniform_in(20, 50, {3})).add(positive({}));
        },
    .python = "oar",
};

const OpDef multinomial_op = {
    .schema =
        "multinomial(Tensor x, int num_samples = 1, bool replacement = False, shape? _part = None) -> "
        "Tensor",
    .brief = "Places in the last axis of x, drawn in proportion to its elements.",
    .infer = [](const args::multinomial& a) -> Metas {
      user_check(a.x.rank() == 1 || a.x.rank() == 2, ErrorKind::InvalidArgument,
                 "x has shape {}; it must be a vector or a matrix of weights.",
                 to_string(a.x.dims()));
      const Dim size = a.x.dim(-1);
      user_check(a.num_samples >= 1 &&
                     (a.replacement || size.is_symbolic() || a.num_samples <= size.word()),
                 ErrorKind::InvalidArgument,
                 "num_samples is {}; of {} elements without replacement it can be 1 to {}.\nhint: "
                 "Pass replacement=True to draw an element more than once.",
                 a.num_samples, size.str(), size.str());
      Shape shape = a.x.shape();
      shape.back() = a.num_samples;
      return TensorMeta{DType::Int64, shape};
    },
    .plan =
        [](const PlanCall& c) {
          const auto last = static_cast<int64_t>(c.plan.operands[0].axes.size()) - 1;
          sharding::keep_axes(c.plan, Ints(&last, 1));  // a row's numbers are drawn as one
        },
    .localise = random_piece,
    .traits = kRandom,
    .dtypes = "float",
    .samples =
        [] {
          return Samples()
              .add(positive({5}))
              .add(positive({3, 4}), 2)
              .add(positive({3, 4}), 6, true);
        },
    .python = "oar Tensor",
};

const OpDef exponential_op = {
    .schema =
        "exponential(shape shape, float lam = 1.0, dtype? dtype = None, shape? _part = None) -> Tensor",
    .brief = "Numbers from the exponential distribution with rate lam.",
    .infer = [](const args::exponential& a) -> Metas {
      user_check(a.lam > 0, ErrorKind::InvalidArgument, "lam is {}; a rate is positive.", a.lam);
      return random_floats(a.shape, a.dtype);
    },
    .plan = sharding::made_axes,
    .localise = random_piece,
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
        "2.0, dtype? dtype = None, shape? _part = None) -> Tensor",
    .brief =
        "Numbers from a normal distribution, cut off at a and b standard deviations from the mean.",
    .infer = [](const args::truncated_normal& a) -> Metas {
      user_check(a.std_ >= 0, ErrorKind::InvalidArgument,
                 "std is {}; a standard deviation is not negative.", a.std_);
      user_check(a.a < a.b, ErrorKind::InvalidArgument, "a is {} and b {}; a must be below b.", a.a,
                 a.b);
      return random_floats(a.shape, a.dtype);
    },
    .plan = sharding::made_axes,
    .localise = random_piece,
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
    .schema = "standard_gamma(Tensor x, shape? _part = None) -> Tensor",
    .brief = "Numbers from gamma distributions with the shapes that x holds and scale 1.",
    .infer = infer::same_as_first,
    .shard = "... -> ...",
    .localise = random_piece,
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
    .traits = kRandom,
    .dtypes = "float",
    .samples = [] { return Samples().add(positive({4, 3})).add(positive({5})); },
};

const OpDef binomial_op = {
    .schema = "binomial(Tensor count, Tensor prob, shape? _part = None) -> Tensor",
    .brief =
        "The number of successes in `count` trials, each of which succeeds with probability prob.",
    .infer = [](const args::binomial& a) -> Metas {
      user_check(is_floating(a.prob.dtype()), ErrorKind::InvalidType,
                 "prob has dtype {}; it must be a float.", name_of(a.prob.dtype()));
      return TensorMeta{DType::Int64, a.count.shape()};
    },
    .shard = "..., ... -> ...",
    .localise = random_piece,
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

OAR_FAMILY(random, &uniform_op, &gaussian_op, &rand_op, &randn_op, &standard_normal_op, &randint_op,
           &randint_like_op, &randperm_op, &bernoulli_op, &poisson_op, &multinomial_op,
           &exponential_op, &truncated_normal_op, &standard_gamma_op, &dirichlet_op, &binomial_op)

}  // namespace oar
