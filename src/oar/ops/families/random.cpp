// Random numbers. An element's number depends on the seed, the place in the stream and its own
// place in the tensor, never on the number of threads. A seed other than 0 is a stream of its own.
#include "oar/ops/gen/random.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/elementwise.h"

namespace oar {
namespace {

void check_shape(Dims shape) {
  for (Dim d : shape)
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "the shape {} has a negative size.", to_string(shape));
}

Metas random_floats(Dims shape, std::optional<DType> dtype) {
  check_shape(shape);
  const DType type = dtype.value_or(default_dtype());
  user_check(is_floating(type), ErrorKind::InvalidType,
             "dtype is {}; random numbers of this kind are floats.", name_of(type));
  return TensorMeta{type, Shape(shape)};
}

constexpr Trait kRandom = Trait::Random | Trait::NoGrad;

const OpDef uniform_op = {
    .schema =
        "uniform(shape shape, dtype? dtype = None, float min = -1.0, float max = 1.0, int "
        "seed = 0) -> Tensor",
    .brief = "Numbers spread evenly over [min, max).",
    .infer = [](const args::uniform& a) -> Metas {
      user_check(a.min <= a.max, ErrorKind::InvalidArgument,
                 "min is {} and max {}; min must not be larger.", a.min, a.max);
      return random_floats(a.shape, a.dtype);
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
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
        "dtype = None) -> Tensor",
    .brief = "Numbers from a normal distribution.",
    .infer = [](const args::gaussian& a) -> Metas {
      user_check(a.std_ >= 0, ErrorKind::InvalidArgument,
                 "std is {}; a standard deviation is not negative.", a.std_);
      return random_floats(a.shape, a.dtype);
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
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
    .shard = "whole: an element's number depends on its place in the whole tensor",
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
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .samples = [] { return Samples().add(IntVector{4, 7}).add(IntVector{}, DType::Float64); },
    .python = "oar",
};

const OpDef standard_normal_op = {
    .schema = "standard_normal(shape shape, dtype? dtype = None) -> Tensor",
    .brief = "Numbers from the standard normal distribution: randn under its other name.",
    .decompose = [](const args::standard_normal& a) -> Made { return randn(a.shape, a.dtype); },
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .samples = [] { return Samples().add(IntVector{4, 7}); },
    .python = "oar",
};

const OpDef randint_op = {
    .schema =
        "randint(int low = 0, int? high = None, shape shape = [1], dtype? dtype = None) -> "
        "Tensor",
    .brief = "Integers spread evenly over [low, high), or [0, low) where high is not given.",
    .infer = [](const args::randint& a) -> Metas {
      check_shape(a.shape);
      const int64_t low = a.high ? a.low : 0, high = a.high.value_or(a.low);
      user_check(low < high, ErrorKind::InvalidArgument,
                 "there is no integer from {} up to but without {}.\nhint: Pass low < high (low "
                 "> 0 "
                 "where high is left out).",
                 low, high);
      return TensorMeta{a.dtype.value_or(DType::Int64), Shape(a.shape)};
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
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
    .shard = "whole: an element's number depends on its place in the whole tensor",
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
    .schema = "bernoulli(Tensor x) -> Tensor",
    .brief = "1 with the probability that x holds, else 0.",
    .infer = infer::same_as_first,
    .shard = "whole: an element's number depends on its place in the whole tensor",
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
    .schema = "poisson(Tensor x) -> Tensor",
    .brief = "Counts from Poisson distributions with the means that x holds.",
    .infer = infer::same_as_first,
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .dtypes = "float",
    .samples =
        [] {
          return Samples().add(positive({4, 7})).add(uniform_in(20, 50, {3})).add(positive({}));
        },
    .python = "oar",
};

const OpDef multinomial_op = {
    .schema = "multinomial(Tensor x, int num_samples = 1, bool replacement = False) -> Tensor",
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
    .shard = "whole: an element's number depends on its place in the whole tensor",
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

// ---- dropout ----------------------------------------------------------------------------------

const OpDef dropout_mask_op = {
    .schema = "dropout_mask(shape shape, float p, float kept, dtype dtype) -> Tensor",
    .brief = "0 with probability p, else the value `kept`; as bool: False and True.",
    .infer = [](const args::dropout_mask& a) -> Metas {
      if (a.dtype != DType::Bool) return random_floats(a.shape, a.dtype);
      check_shape(a.shape);
      return TensorMeta{DType::Bool, Shape(a.shape)};
    },
    .shard = "whole: an element's number depends on its place in the whole tensor",
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(IntVector{4, 7}, 0.5, 2.0, DType::Float32)
              .add(IntVector{3, 5}, 0.5, 1.0, DType::Bool)
              .add(IntVector{}, 0.1, 1.0, DType::Float64);
        },
};

const OpDef dropout_op = {
    .schema =
        "dropout(Tensor x, float p = 0.5, int[]? axis = None, bool training = True, str "
        "mode = 'upscale_in_train') -> Tensor",
    .brief =
        "Sets elements to 0 with probability p in training; the others grow by 1 / (1 - p), "
        "or all shrink by it later where mode is 'downscale_in_infer'. With axis, whole slices "
        "are dropped.",
    .decompose = [](const args::dropout& a) -> Made {
      user_check(a.p >= 0 && a.p <= 1, ErrorKind::InvalidArgument,
                 "p is {}; a probability lies between 0 and 1.", a.p);
      const bool upscale = a.mode == "upscale_in_train";
      user_check(upscale || a.mode == "downscale_in_infer", ErrorKind::InvalidArgument,
                 "mode is '{}'; it can be 'upscale_in_train' or 'downscale_in_infer'.", a.mode);
      if (a.p == 0) return a.x;
      if (!a.training) return upscale ? Made(a.x) : Made(a.x * (1 - a.p));
      Shape shape = a.x.shape();
      if (a.axis && !a.axis->empty()) {
        shape = Shape(static_cast<size_t>(a.x.rank()), 1);
        for (int64_t axis : normalise_axes(a.axis, a.x.rank()))
          shape[static_cast<size_t>(axis)] = a.x.dim(axis);
      }
      const double kept = upscale && a.p < 1 ? 1 / (1 - a.p) : 1.0;
      return a.x * dropout_mask(shape, a.p, kept, a.x.dtype());
    },
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}))
              .add(t({4, 3}), 0.2, IntVector{1})
              .add(t({4}), 0.5, std::nullopt, false, "downscale_in_infer")
              .add(t({4}), 0.0);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(random, &uniform_op, &gaussian_op, &rand_op, &randn_op, &standard_normal_op, &randint_op,
           &randint_like_op, &randperm_op, &bernoulli_op, &poisson_op, &multinomial_op,
           &dropout_mask_op, &dropout_op)

}  // namespace oar
