// Rearranges channels and pixels.
#include "oar/ops/gen/pixel_shuffle.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/window.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

Dim divided(Dim size, int64_t by, const char* what, const char* argument) {
  user_check(same(floor_mod(size, by), 0), ErrorKind::InvalidArgument,
             "{} is {}, which {} {} does not divide.", what, size.str(), argument, by);
  return floor_div(size, by);
}

void check_image(const Tensor& x) {
  user_check(x.rank() == 4, ErrorKind::InvalidArgument,
             "x must have 4 axes (batch, channels, height, width), but its shape is {}.",
             to_string(x.dims()));
}

// An image whatever its data_format: sizes by name.
struct Image {
  bool last;  // channels
  Dim n, c, h, w;
  Image(const Tensor& x, std::string_view data_format)
      : last(axes_of(data_format, 2).channels_last) {
    check_image(x);
    n = x.dim(0);
    c = x.dim(last ? 3 : 1);
    h = x.dim(last ? 1 : 2);
    w = x.dim(last ? 2 : 3);
  }
};

const OpDef pixel_shuffle_op = {
    .schema = "pixel_shuffle(Tensor x, int upscale_factor, str data_format = 'NCHW') -> Tensor",
    .brief =
        "Images f times larger, whose blocks of f x f pixels were f * f channels of one pixel.",
    .decompose = [](const args::pixel_shuffle& a) -> Made {
      const Image x(a.x, a.data_format);
      check_positive(a.upscale_factor, "upscale_factor");
      const int64_t f = a.upscale_factor;
      const Dim c = divided(x.c, (Dim(f) * Dim(f)).value(), "the number of channels",
                            "the square of upscale_factor:");
      if (x.last)
        return reshape(transpose(reshape(a.x, {x.n, x.h, x.w, c, f, f}), {0, 1, 4, 2, 5, 3}),
                       {x.n, x.h * f, x.w * f, c});
      return reshape(transpose(reshape(a.x, {x.n, c, f, f, x.h, x.w}), {0, 1, 4, 2, 5, 3}),
                     {x.n, c, x.h * f, x.w * f});
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda f: x.reshape(x.shape[0], x.shape[1] // f ** 2, f, f, *x.shape[2:]).transpose(0, 1, 4, 2, 5, 3)"
        ".reshape(x.shape[0], x.shape[1] // f ** 2, x.shape[2] * f, x.shape[3] * f) if data_format == 'NCHW' else "
        "x.reshape(*x.shape[:3], x.shape[3] // f ** 2, f, f).transpose(0, 1, 4, 2, 5, 3).reshape(x.shape[0], "
        "x.shape[1] * f, x.shape[2] * f, x.shape[3] // f ** 2))(upscale_factor)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 8, 2, 3}), 2)
              .add(t({1, 2, 3, 9}), 3, "NHWC")
              .add(t({0, 4, 2, 2}), 2);
        },
    .python = "oar.nn.functional",
    .onnx = "DepthToSpace",
};

const OpDef pixel_unshuffle_op = {
    .schema = "pixel_unshuffle(Tensor x, int downscale_factor, str data_format = 'NCHW') -> Tensor",
    .brief =
        "The reverse of pixel_shuffle: blocks of f x f pixels become f * f channels of one pixel.",
    .decompose = [](const args::pixel_unshuffle& a) -> Made {
      const Image x(a.x, a.data_format);
      check_positive(a.downscale_factor, "downscale_factor");
      const int64_t f = a.downscale_factor;
      const Dim h = divided(x.h, f, "the height", "downscale_factor"),
                w = divided(x.w, f, "the width", "downscale_factor");
      if (x.last)
        return reshape(transpose(reshape(a.x, {x.n, h, f, w, f, x.c}), {0, 1, 3, 5, 2, 4}),
                       {x.n, h, w, x.c * (f * f)});
      return reshape(transpose(reshape(a.x, {x.n, x.c, h, f, w, f}), {0, 1, 3, 5, 2, 4}),
                     {x.n, x.c * (f * f), h, w});
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda f, n, a, b, c: x.reshape(n, a, b // f, f, c // f, f).transpose(0, 1, 3, 5, 2, 4).reshape(n, a * f ** "
        "2, b // f, c // f) if data_format == 'NCHW' else x.reshape(n, a // f, f, b // f, f, c).transpose(0, 1, 3, 5, "
        "2, 4).reshape(n, a // f, b // f, c * f ** 2))(downscale_factor, *x.shape)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 4, 6}), 2)
              .add(t({1, 6, 3, 2}), 3, "NHWC")
              .add(t({0, 1, 2, 2}), 2);
        },
    .python = "oar.nn.functional",
    .onnx = "SpaceToDepth",
};

const OpDef channel_shuffle_op = {
    .schema = "channel_shuffle(Tensor x, int groups, str data_format = 'NCHW') -> Tensor",
    .brief = "The channels, laid out as `groups` rows, read column by column.",
    .decompose = [](const args::channel_shuffle& a) -> Made {
      const Image x(a.x, a.data_format);
      check_positive(a.groups, "groups");
      const Dim c = divided(x.c, a.groups, "the number of channels", "groups");
      const Tensor apart = x.last ? reshape(a.x, {x.n, x.h, x.w, a.groups, c})
                                  : reshape(a.x, {x.n, a.groups, c, x.h, x.w});
      return reshape(x.last ? transpose(apart, {0, 1, 2, 4, 3}) : transpose(apart, {0, 2, 1, 3, 4}),
                     a.x.dims());
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda n, a, b, c: x.reshape(n, groups, a // groups, b, c).swapaxes(1, 2).reshape(x.shape) if data_format == "
        "'NCHW' else x.reshape(n, a, b, groups, c // groups).swapaxes(3, 4).reshape(x.shape))(*x.shape)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 6, 2, 3}), 3)
              .add(t({1, 2, 3, 4}), 2, "NHWC")
              .add(t({0, 4, 2, 2}), 2);
        },
    .python = "oar.nn.functional",
};

const OpDef temporal_shift_op = {
    .schema =
        "temporal_shift(Tensor x, int seg_num, float shift_ratio = 0.25, str data_format = 'NCHW') -> Tensor",
    .brief =
        "Images [n * seg_num, …] as sequences of seg_num: a first part of the channels comes from the image before, a "
        "second from the next one (zeros if there is none), the rest stay.",
    .decompose = [](const args::temporal_shift& a) -> Made {
      const Image x(a.x, a.data_format);
      check_positive(a.seg_num, "seg_num");
      user_check(a.shift_ratio >= 0 && a.shift_ratio <= 0.5, ErrorKind::InvalidArgument,
                 "shift_ratio must be between 0 and 0.5, but is {}.", a.shift_ratio);
      const Dim n = divided(x.n, a.seg_num, "the number of images", "seg_num");
      const int64_t channels = specialised(x.c), axis = x.last ? 4 : 2;
      const auto first = static_cast<int64_t>(static_cast<double>(channels) * a.shift_ratio),
                 second = static_cast<int64_t>(static_cast<double>(channels) * 2 * a.shift_ratio);
      const Tensor sequences = reshape(a.x, {n, a.seg_num, a.x.dim(1), a.x.dim(2), a.x.dim(3)});
      const auto part = [&](int64_t from, int64_t to) {
        return slice_view(sequences, SliceIndex().skip(axis).range(from, to));
      };
      std::vector<Tensor> parts;
      if (first > 0) parts.push_back(pad_constant(part(0, first), {0, 0, 1, -1, 0, 0, 0, 0, 0, 0}));
      if (second > first)
        parts.push_back(pad_constant(part(first, second), {0, 0, -1, 1, 0, 0, 0, 0, 0, 0}));
      parts.push_back(part(second, channels));
      return reshape(concat(parts, axis), a.x.dims());
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda y, c: np.concatenate([np.pad(y[:, :-1, :int(c * shift_ratio)], ((0, 0), (1, 0), (0, 0), (0, 0), (0, "
        "0))), np.pad(y[:, 1:, int(c * shift_ratio):int(c * 2 * shift_ratio)], ((0, 0), (0, 1), (0, 0), (0, 0), (0, "
        "0))), y[:, :, int(c * 2 * shift_ratio):]], 2).reshape(-1 if x.size else 0, c, *y.shape[3:]).transpose((0, 1, 2, "
        "3) if data_format == 'NCHW' else (0, 2, 3, 1)))((lambda z: z.reshape(z.shape[0] // seg_num, seg_num, "
        "*z.shape[1:]))(x if data_format == 'NCHW' else x.transpose(0, 3, 1, 2)), x.shape[1 if data_format == 'NCHW' "
        "else 3])",
    .samples =
        [] {
          return Samples()
              .add(t({6, 4, 2, 1}), 3)
              .add(t({4, 2, 1, 5}), 2, 0.4, "NHWC")
              .add(t({2, 3, 2, 2}), 2, 0.1)
              .add(t({0, 4, 2, 2}), 2);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(pixel_shuffle, &pixel_shuffle_op, &pixel_unshuffle_op, &channel_shuffle_op,
           &temporal_shift_op)

}  // namespace oar
