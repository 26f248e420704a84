// Pooling as users call it: one number for both axes, strides that default to the window, padding by
// name, channels first or last.
#include "oar/ops/gen/pooling.h"

#include "oar/ops/gen/pool.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/infer.h"
#include "oar/ops/operators.h"
#include "oar/ops/registry.h"
#include "oar/ops/window.h"

namespace oar {
namespace {

struct Resolved {
  Tensor image;  // channels first
  bool channels_last;
  SmallVector<int64_t, 6> window, stride;
  Shape padding;

  Tensor restore(const Tensor& out) const {
    return channels_last ? transpose(out, {0, 2, 3, 1}) : out;
  }
};

Tensor channels_first(const Tensor& x, bool channels_last) {
  user_check(x.rank() == 4, ErrorKind::InvalidArgument, "x must have 4 axes, but its shape is {}.",
             to_string(x.dims()));
  return channels_last ? transpose(x, {0, 3, 1, 2}) : x;
}

Resolved resolve(const Tensor& x, Ints kernel_size, std::optional<Ints> stride, Ints padding,
                 bool ceil_mode, std::string_view data_format, std::string_view padding_algorithm) {
  Resolved r;
  r.channels_last = axes_of(data_format, 2).channels_last;
  r.image = channels_first(x, r.channels_last);
  r.window = expand_ints(kernel_size, 2, "kernel_size");
  r.stride = stride && !stride->empty() ? expand_ints(*stride, 2, "stride") : r.window;
  check_windows(Ints(r.window), 2, "kernel_size");
  check_windows(Ints(r.stride), 2, "stride");
  user_check(padding_algorithm != "VALID" || !ceil_mode, ErrorKind::InvalidArgument,
             "ceil_mode adds windows at the edge, which padding 'VALID' excludes.\nhint: Pass "
             "ceil_mode=False, or padding as numbers.");
  r.padding = resolve_padding(padding_algorithm, padding, {r.image.dim(2), r.image.dim(3)},
                              Shape(Ints(r.window)), Ints(r.stride));
  return r;
}

const OpDef max_pool2d_op = {
    .schema =
        "max_pool2d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The largest element of each window.",
    .decompose = [](const args::max_pool2d& a) -> Made {
      const Resolved r = resolve(a.x, a.kernel_size, a.stride, a.padding, a.ceil_mode,
                                 a.data_format, a.padding_algorithm);
      return r.restore(
          std::get<0>(max_pool2d_with_index(r.image, r.window, r.stride, r.padding, a.ceil_mode)));
    },
    .dtypes = "int float",
    .numpy =
        "(lambda x: (lambda o: o if data_format == 'NCHW' else o.transpose(0, 2, 3, 1))(np.lib.stride_tricks."
        "sliding_window_view(x, (kernel_size[0], kernel_size[-1]), axis=(2, 3))[:, :, ::(stride or "
        "kernel_size)[0], ::(stride or kernel_size)[-1]].max((-1, -2))))(x if data_format == 'NCHW' else "
        "x.transpose(0, 3, 1, 2))",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 6}), IntVector{2})
              .add(distinct({1, 2, 5, 4}), IntVector{3, 2}, IntVector{1})
              .add(distinct({1, 5, 4, 2}), IntVector{2}, IntVector{2}, IntVector{0}, false, "NHWC")
              .add(distinct({1, 2, 5, 4}), IntVector{2}, IntVector{1, 2}, IntVector{0}, false,
                   "NCHW", "VALID");
        },
    .onnx = "MaxPool",
};

const OpDef max_pool2d_with_mask_op = {
    .schema =
        "max_pool2d_with_mask(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> (Tensor out, Tensor mask)",
    .brief = "The largest element of each window and its place in the image, row * width + column.",
    .decompose = [](const args::max_pool2d_with_mask& a) -> Made {
      const Resolved r = resolve(a.x, a.kernel_size, a.stride, a.padding, a.ceil_mode,
                                 a.data_format, a.padding_algorithm);
      const auto [out, mask] =
          max_pool2d_with_index(r.image, r.window, r.stride, r.padding, a.ceil_mode);
      return {r.restore(out), r.restore(mask)};
    },
    .dtypes = "int float",
    .numpy =
        "(lambda w: (w.max(-1), (lambda a: ((np.arange(w.shape[2]) * kernel_size[0])[:, None] + a // "
        "kernel_size[0]) * x.shape[3] + np.arange(w.shape[3]) * kernel_size[0] + a % kernel_size[0])(w.argmax(-1))"
        ".astype('int32')))(np.lib.stride_tricks.sliding_window_view(x, kernel_size * 2, axis=(2, 3))[:, :, "
        "::kernel_size[0], ::kernel_size[0]].reshape(*x.shape[:2], x.shape[2] // kernel_size[0], x.shape[3] // "
        "kernel_size[0], kernel_size[0] ** 2))",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 6}), IntVector{2})
              .add(distinct({2, 1, 3, 4}), IntVector{3});
        },
};

const OpDef avg_pool2d_op = {
    .schema =
        "avg_pool2d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, bool exclusive = True, float? divisor_override = None, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The mean of each window; padding counts only if exclusive is False.",
    .decompose = [](const args::avg_pool2d& a) -> Made {
      user_check(!a.divisor_override || *a.divisor_override != 0, ErrorKind::InvalidArgument,
                 "divisor_override must not be 0.");
      const Resolved r = resolve(a.x, a.kernel_size, a.stride, a.padding, a.ceil_mode,
                                 a.data_format, a.padding_algorithm);
      const Tensor mean =
          avg_pool2d_core(r.image, r.window, r.stride, r.padding, a.ceil_mode, a.exclusive);
      if (!a.divisor_override) return r.restore(mean);
      // As in Paddle, windows at the edge are means of what they see, scaled like whole ones.
      const auto area = static_cast<double>(r.window[0] * r.window[1]);
      return r.restore(mean * (area / *a.divisor_override));
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda x: (lambda o: o if data_format == 'NCHW' else o.transpose(0, 2, 3, 1))(np.lib.stride_tricks."
        "sliding_window_view(x, (kernel_size[0], kernel_size[-1]), axis=(2, 3))[:, :, ::(stride or "
        "kernel_size)[0], ::(stride or kernel_size)[-1]].sum((-1, -2)) / (divisor_override or kernel_size[0] * "
        "kernel_size[-1])))(x if data_format == 'NCHW' else x.transpose(0, 3, 1, 2))",
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 4, 6}), IntVector{2})
              .add(t({1, 2, 5, 4}), IntVector{3, 2}, IntVector{1})
              .add(t({1, 5, 4, 2}), IntVector{2}, IntVector{2}, IntVector{0}, false, true,
                   std::nullopt, "NHWC")
              .add(t({1, 2, 4, 4}), IntVector{2}, std::nullopt, IntVector{0}, false, true, 3.0)
              .add(t({1, 2, 5, 4}), IntVector{2}, IntVector{1, 2}, IntVector{0}, false, true,
                   std::nullopt, "NCHW", "VALID");
        },
    .onnx = "AveragePool",
};

// -1 keeps the size of the image.
Shape output_of(const Tensor& image, Ints output_size) {
  const auto sizes = expand_ints(output_size, 2, "output_size");
  Shape shape;
  for (size_t i = 0; i < 2; ++i)
    shape.push_back(sizes[i] == -1 ? image.dim(2 + static_cast<int64_t>(i)) : Dim(sizes[i]));
  return shape;
}

const OpDef adaptive_avg_pool2d_op = {
    .schema =
        "adaptive_avg_pool2d(Tensor x, int[] output_size, str data_format = 'NCHW') -> Tensor",
    .brief = "The means of windows that divide the image into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_avg_pool2d& a) -> Made {
      const bool last = axes_of(a.data_format, 2).channels_last;
      const Tensor image = channels_first(a.x, last);
      const Tensor out = adaptive_avg_pool2d_core(image, output_of(image, a.output_size));
      return last ? transpose(out, {0, 2, 3, 1}) : out;
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda x, z: (lambda h, w: (lambda o: o if data_format == 'NCHW' else o.transpose(0, 2, 3, 1))(np.array("
        "[x[:, :, a:b, c:d].mean((2, 3)) for a, b in h for c, d in w]).reshape(len(h), len(w), *x.shape[:2])"
        ".transpose(2, 3, 0, 1)))(*[[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in "
        "zip(x.shape[2:], [n if s == -1 else s for n, s in zip(x.shape[2:], z)])]))(x if data_format == 'NCHW' else "
        "x.transpose(0, 3, 1, 2), [output_size[0], output_size[-1]])",
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 5, 7}), IntVector{3})
              .add(t({1, 2, 4, 3}), IntVector{2, -1})
              .add(t({1, 5, 4, 2}), IntVector{1, 2}, "NHWC");
        },
    .python = "oar.nn.functional",
    .onnx = "GlobalAveragePool",
};

const OpDef adaptive_max_pool2d_op = {
    .schema = "adaptive_max_pool2d(Tensor x, int[] output_size) -> Tensor",
    .brief =
        "The largest elements of windows that divide the image into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_max_pool2d& a) -> Made {
      const Tensor image = channels_first(a.x, false);
      return std::get<0>(adaptive_max_pool2d_with_index(image, output_of(image, a.output_size)));
    },
    .dtypes = "int float",
    .numpy =
        "(lambda h, w: np.array([x[:, :, a:b, c:d].max((2, 3)) for a, b in h for c, d in w]).reshape(len(h), "
        "len(w), *x.shape[:2]).transpose(2, 3, 0, 1))(*[[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for "
        "n, m in zip(x.shape[2:], [n if s == -1 else s for n, s in zip(x.shape[2:], [output_size[0], "
        "output_size[-1]])])])",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 5, 7}), IntVector{3})
              .add(distinct({1, 2, 4, 3}), IntVector{2, -1});
        },
};

}  // namespace

OAR_FAMILY(pooling, &max_pool2d_op, &max_pool2d_with_mask_op, &avg_pool2d_op,
           &adaptive_avg_pool2d_op, &adaptive_max_pool2d_op)

}  // namespace oar
