// Dropout of elements and of whole channels, and dropout that keeps the mean and variance of a SELU network.
#include "oar/ops/gen/dropout.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/random_rules.h"

namespace oar {
namespace {

const OpDef dropout_mask_op = {
    .schema =
        "dropout_mask(shape shape, float p, float kept, dtype dtype, shape? _part = None) -> Tensor",
    .brief = "0 with probability p, else the value `kept`; as bool: False and True.",
    .infer = [](const args::dropout_mask& a) -> Metas {
      if (a.dtype != DType::Bool) return random_floats(a.shape, a.dtype);
      check_shape(a.shape);
      return TensorMeta{DType::Bool, Shape(a.shape)};
    },
    .plan = sharding::made_axes,
    .localise = random_piece,
    .traits = kRandom,
    .samples =
        [] {
          return Samples()
              .add(IntVector{4, 7}, 0.5, 2.0, DType::Float32)
              .add(IntVector{3, 5}, 0.5, 1.0, DType::Bool)
              .add(IntVector{}, 0.1, 1.0, DType::Float64);
        },
};

// Which slices fall together is told by axes that count from the front.
void check_slices(const std::optional<Ints>& axis, int rank) {
  if (!axis) return;
  for (int64_t i : *axis)
    user_check(i >= 0 && i < rank, ErrorKind::InvalidArgument,
               "axis holds {}; for a tensor of rank {} it can be from 0 to {}.", i, rank, rank - 1);
}

const OpDef dropout_op = {
    .schema =
        "dropout(Tensor x, float p = 0.5, int[]? axis = None, bool training = True, str "
        "mode = 'upscale_in_train') -> Tensor",
    .brief =
        "Sets elements to 0 with probability p in training; the others grow by 1 / (1 - p), "
        "or all shrink by it later if mode is 'downscale_in_infer'. With axis, whole slices "
        "are dropped.",
    .decompose = [](const args::dropout& a) -> Made {
      user_check(a.p >= 0 && a.p <= 1, ErrorKind::InvalidArgument,
                 "p is {}; a probability lies between 0 and 1.", a.p);
      const bool upscale = a.mode == "upscale_in_train";
      user_check(upscale || a.mode == "downscale_in_infer", ErrorKind::InvalidArgument,
                 "mode is '{}'; it can be 'upscale_in_train' or 'downscale_in_infer'.", a.mode);
      check_slices(a.axis, a.x.rank());
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

// Drops whole channels of an input with `rank` axes.
Tensor drop_channels(const Tensor& x, double p, bool training, std::string_view data_format,
                     int rank, std::string_view first, std::string_view last) {
  user_check(data_format == first || data_format == last, ErrorKind::InvalidArgument,
             "data_format is '{}'; it can be '{}' or '{}'.", data_format, first, last);
  user_check(x.rank() == rank, ErrorKind::InvalidArgument,
             "x has shape {}; it must have {} axes, as in '{}'.", to_string(x.dims()), rank,
             data_format);
  const int64_t channels = data_format == first ? 1 : rank - 1;
  return dropout(x, p, IntVector{0, channels}, training);
}

const OpDef dropout2d_op = {
    .schema =
        "dropout2d(Tensor x, float p = 0.5, bool training = True, str data_format = 'NCHW') -> "
        "Tensor",
    .brief = "Sets whole channels of images to 0 with probability p in training; others grow.",
    .decompose = [](const args::dropout2d& a) -> Made {
      return drop_channels(a.x, a.p, a.training, a.data_format, 4, "NCHW", "NHWC");
    },
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 2, 2}))
              .add(t({2, 3, 2, 2}), 0.2, true, "NHWC")
              .add(t({1, 2, 2, 2}), 0.5, false);
        },
    .python = "oar.nn.functional",
};

const OpDef dropout3d_op = {
    .schema =
        "dropout3d(Tensor x, float p = 0.5, bool training = True, str data_format = 'NCDHW') -> "
        "Tensor",
    .brief = "Sets whole channels of volumes to 0 with probability p in training; others grow.",
    .decompose = [](const args::dropout3d& a) -> Made {
      return drop_channels(a.x, a.p, a.training, a.data_format, 5, "NCDHW", "NDHWC");
    },
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 2, 1, 2}))
              .add(t({2, 3, 2, 1, 2}), 0.2, true, "NDHWC")
              .add(t({1, 2, 2, 1, 2}), 0.5, false);
        },
    .python = "oar.nn.functional",
};

void check_probability(double p) {
  user_check(p >= 0 && p <= 1, ErrorKind::InvalidArgument,
             "p is {}; a probability lies between 0 and 1.", p);
}

// The limit of selu far below zero, times its scale: the value of dropped elements.
constexpr double kSeluFloor =
    -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717;

// Drops by a mask of the given shape, then restores mean 0 and variance 1.
Tensor alpha_dropped(const Tensor& x, double p, bool training, Dims mask_shape) {
  check_probability(p);
  if (!training || p == 0) return x;
  if (p == 1) return x * 0;
  const double scale = 1 / std::sqrt((1 - p) * (1 + p * kSeluFloor * kSeluFloor));
  const double shift = -scale * kSeluFloor * p;
  const Tensor kept = dropout_mask(mask_shape, p, 1.0, x.dtype());
  return x * (kept * scale) + ((1 - kept) * (scale * kSeluFloor) + shift);
}

const OpDef alpha_dropout_op = {
    .schema = "alpha_dropout(Tensor x, float p = 0.5, bool training = True) -> Tensor",
    .brief =
        "Sets elements to the limit of selu far below zero, with probability p in training, and "
        "keeps the mean and variance of a standard normal input.",
    .decompose = [](const args::alpha_dropout& a) -> Made {
      return alpha_dropped(a.x, a.p, a.training, a.x.dims());
    },
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] { return Samples().add(t({4, 7})).add(t({4}), 0.5, false).add(t({3}), 1.0).add(t({})); },
    .python = "oar.nn.functional",
};

const OpDef feature_alpha_dropout_op = {
    .schema = "feature_alpha_dropout(Tensor x, float p = 0.5, bool training = True) -> Tensor",
    .brief = "alpha_dropout of whole channels, which are axis 1.",
    .decompose = [](const args::feature_alpha_dropout& a) -> Made {
      user_check(a.x.rank() >= 2, ErrorKind::InvalidArgument,
                 "x has shape {}; it needs a batch and an axis of channels.",
                 to_string(a.x.dims()));
      Shape shape(static_cast<size_t>(a.x.rank()), 1);
      shape[0] = a.x.dim(0);
      shape[1] = a.x.dim(1);
      return alpha_dropped(a.x, a.p, a.training, shape);
    },
    .traits = Trait::Random,
    .dtypes = "float",
    .samples =
        [] { return Samples().add(t({4, 7})).add(t({2, 3, 4}), 0.2).add(t({2, 2}), 0.5, false); },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(dropout, &dropout_mask_op, &dropout_op, &dropout2d_op, &dropout3d_op, &alpha_dropout_op,
           &feature_alpha_dropout_op)

}  // namespace oar
