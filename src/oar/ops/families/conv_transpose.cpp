// Transposed convolution: the image whose convolution has the shape of x, which is conv_input_grad.
#include "oar/ops/gen/conv_transpose.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/conv_rules.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/window.h"
#include "oar/ops/gen/conv.h"
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// Elements beyond the smallest result along axis i, by output_padding or output_size.
template <class A>
Dim added_size(const A& a, const Resolved& r, size_t i, Dim least) {
  const Dim step(r.stride[i]);
  if (a.output_size && !a.output_size->empty()) {
    user_check(a.output_size->size() == r.axes.spatial, ErrorKind::InvalidArgument,
               "output_size {} must have {} numbers.", to_string(*a.output_size), r.axes.spatial);
    const Dim added = (*a.output_size)[i] - least;
    user_check(added.is_symbolic() || (added.word() >= 0 && added.word() < step.word()),
               ErrorKind::InvalidArgument,
               "output_size {} is not possible: along spatial axis {} x, stride and padding allow "
               "sizes from {} to {}.",
               to_string(*a.output_size), i, least.str(), (least + step - Dim(1)).str());
    return added;
  }
  const int64_t added = expand_ints(a.output_padding, r.axes.spatial, "output_padding")[i];
  const int64_t limit = std::max(r.stride[i], r.dilation[i]);
  user_check(added >= 0 && added < limit, ErrorKind::InvalidArgument,
             "output_padding {} must be between 0 and {}: less than stride or dilation.",
             to_string(a.output_padding), limit - 1);
  return Dim(added);
}

Tensor with_zeros_behind(const Tensor& image, const ImageAxes& axes, Ints zeros) {
  if (std::all_of(zeros.begin(), zeros.end(), [](int64_t n) { return n == 0; })) return image;
  IntVector paddings(2 * static_cast<size_t>(image.rank()), 0);
  for (size_t i = 0; i < zeros.size(); ++i) paddings[2 * (axes.first() + i) + 1] = zeros[i];
  return pad_constant(image, paddings);
}

Tensor with_bias(const Tensor& image, const Tensor& bias, const ImageAxes& axes) {
  const Dim channels = image.dim(static_cast<int64_t>(axes.channel()));
  user_check(bias.rank() == 1 && same(bias.dim(0), channels), ErrorKind::InvalidArgument,
             "bias of shape {} must have one number for each of the {} output channels.",
             to_string(bias.dims()), channels.str());
  if (axes.channels_last) return image + bias;
  Shape column(axes.spatial + 1, Dim(1));
  column[0] = channels;
  return image + reshape(bias, column);
}

template <class A>
Made convolve_transposed(const A& a, size_t spatial) {
  Resolved r(a, spatial);
  user_check(a.groups >= 1, ErrorKind::InvalidArgument, "groups must be at least 1, not {}.",
             a.groups);
  const Dim channels = a.x.dim(static_cast<int64_t>(r.axes.channel()));
  user_check(
      same(channels, a.weight.dim(0)), ErrorKind::InvalidArgument,
      "weight of shape {} takes {} input channels, but x of shape {} has {}.\nhint: The "
      "weight of a transposed convolution is [in_channels, out_channels / groups, spatial…].",
      to_string(a.weight.dims()), a.weight.dim(0).str(), to_string(a.x.dims()), channels.str());
  Shape sizes;
  SmallVector<int64_t, 6> zeros;
  for (size_t i = 0; i < spatial; ++i) {
    const Dim kernel = a.weight.dim(static_cast<int64_t>(2 + i));
    const Dim least = (r.axes.size(a.x.dims(), i) - Dim(1)) * Dim(r.stride[i]) +
                      (kernel - Dim(1)) * Dim(r.dilation[i]) + Dim(1) - r.padding[2 * i] -
                      r.padding[2 * i + 1];
    Dim added = added_size(a, r, i, least);
    Dim rest(0);
    if (added.is_known() && added.word() >= r.stride[i]) {
      // More than the stride hides: these elements come after the last position of the window. They appear
      // instead of padding, and are zero if no padding is left.
      const Dim shown = min_of(added, r.padding[2 * i + 1]);
      r.padding[2 * i + 1] = r.padding[2 * i + 1] - shown;
      rest = added - shown;
      added = shown;
    }
    user_check((least + added).is_symbolic() || (least + added).word() >= 0,
               ErrorKind::InvalidArgument,
               "padding {} is larger than the result: spatial axis {} would have size {}.",
               to_string(r.padding), i, (least + added).str());
    sizes.push_back(least + added);
    zeros.push_back(rest.value());
  }
  const Shape image = r.axes.image(a.x.dim(0), a.weight.dim(1) * Dim(a.groups), sizes);
  Tensor out = conv_input_grad(a.weight, a.x, image, r.stride, r.padding, r.dilation, a.groups,
                               r.axes.channels_last);
  out = with_zeros_behind(out, r.axes, Ints(zeros));
  return a.bias.defined() ? with_bias(out, a.bias, r.axes) : out;
}

constexpr const char* kTransposedReference =
    "(lambda n, last: (lambda x, k, s, d: (lambda q, w, g: (lambda least: (lambda more: (lambda z: ([z.__setitem__(e, "
    "z[e] + np.einsum('goc,ngo...->ngc...', w[(..., *tap)], g).reshape(z.shape[0], z.shape[1], *g.shape[3:])) for tap "
    "in np.ndindex(*k) for e in [(..., *[slice(t * e, t * e + (m - 1) * f + 1, f) for t, e, m, f in zip(tap, d, "
    "g.shape[3:], s)])]], (lambda o: np.moveaxis(o, 1, -1) if last else o)(z[(..., *[slice(b, b + l + m) for (b, _), l, m in "
    "zip(q, least, more)])] + (0 if bias is None else bias.reshape(-1, *[1] * n))))[1])(np.zeros((x.shape[0], groups * "
    "weight.shape[1], *[l + m + sum(e) for l, m, e in zip(least, more, q)]), x.dtype)))([m - l for m, l in zip(output_size, "
    "least)] if output_size else (list(output_padding) * n)[:n]))([(m - 1) * e + (f - 1) * h + 1 - sum(p) for m, e, f, h, p in "
    "zip(x.shape[2:], s, k, d, q)]))([(0, 0)] * n if padding_algorithm == 'VALID' else [(e // 2, e - e // 2) for m, f, g in "
    "zip(x.shape[2:], k, s) for e in [max((-(-m // g) - 1) * g + f - m, 0)]] if padding_algorithm == 'SAME' else list(zip("
    "padding[::2], padding[1::2])) if len(padding) == 2 * n else [(e, e) for e in (list(padding) * n)[:n]], "
    "weight.reshape(groups, -1, *weight.shape[1:]), x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])))("
    "np.moveaxis(x, -1, 1) if last else x, weight.shape[2:], (list(stride) * n)[:n], [1] * n if padding_algorithm == "
    "'SAME' else (list(dilation) * n)[:n]))(x.ndim - 2, data_format[-1] == 'C')";

const OpDef conv1d_transpose_op = {
    .schema =
        "conv1d_transpose(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] output_padding = 0, int groups = 1, int[] dilation = 1, shape? output_size = None, str data_format = 'NCL', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The transposed convolution of sequences with a weight of shape [in_channels, out_channels / groups, "
        "length].",
    .decompose = [](const args::conv1d_transpose& a) -> Made { return convolve_transposed(a, 1); },
    .localise = local_groups,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = kTransposedReference,
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}), t({3, 2, 3}), t({2}))
              .add(t({1, 4, 5}), t({4, 1, 3}), t({2}), IntVector{2}, IntVector{1}, IntVector{1}, 2)
              .add(t({1, 2, 4}), t({2, 2, 3}), std::nullopt, IntVector{1}, IntVector{0, 1},
                   IntVector{2}, 1, IntVector{3})
              .add(t({1, 4, 2}), t({2, 3, 3}), t({3}), IntVector{3}, IntVector{1}, IntVector{0}, 1,
                   IntVector{1}, IntVector{12}, "NLC")
              .add(t({1, 2, 5}), t({2, 3, 4}), t({3}), IntVector{1}, IntVector{0}, IntVector{0}, 1,
                   IntVector{1}, std::nullopt, "NCL", "SAME");
        },
    .onnx = "ConvTranspose",
};

const OpDef conv2d_transpose_op = {
    .schema =
        "conv2d_transpose(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] output_padding = 0, int[] dilation = 1, int groups = 1, shape? output_size = None, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The transposed convolution of images with a weight of shape [in_channels, out_channels / groups, "
        "height, width].",
    .decompose = [](const args::conv2d_transpose& a) -> Made { return convolve_transposed(a, 2); },
    .localise = local_groups,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = kTransposedReference,
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 3, 4}), t({3, 2, 3, 2}), t({2}))
              .add(t({1, 4, 3, 2}), t({4, 1, 3, 3}), t({2}), IntVector{2, 1}, IntVector{1, 0},
                   IntVector{1, 0}, IntVector{1, 2}, 2)
              .add(t({1, 2, 3, 3}), t({2, 2, 2, 2}), std::nullopt, IntVector{1},
                   IntVector{1, 0, 0, 1})
              .add(t({1, 3, 2, 2}), t({2, 3, 2, 3}), t({3}), IntVector{2}, IntVector{0},
                   IntVector{0}, IntVector{1}, 1, IntVector{7, 5}, "NHWC")
              .add(t({1, 2, 3, 2}), t({2, 3, 3, 2}), t({3}), IntVector{2, 1}, IntVector{0},
                   IntVector{0}, IntVector{1}, 1, std::nullopt, "NCHW", "VALID");
        },
    .onnx = "ConvTranspose",
};

const OpDef conv3d_transpose_op = {
    .schema =
        "conv3d_transpose(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] output_padding = 0, int groups = 1, int[] dilation = 1, shape? output_size = None, str data_format = 'NCDHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The transposed convolution of volumes with a weight of shape [in_channels, out_channels / groups, "
        "depth, height, width].",
    .decompose = [](const args::conv3d_transpose& a) -> Made { return convolve_transposed(a, 3); },
    .localise = local_groups,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = kTransposedReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 2, 3, 2}), t({2, 2, 2, 2, 2}), t({2}))
              .add(t({1, 2, 2, 2, 3}), t({2, 1, 2, 3, 2}), t({2}), IntVector{2, 1, 1},
                   IntVector{0, 1, 1}, IntVector{1, 0, 0}, 2, IntVector{1, 1, 2})
              .add(t({1, 2, 2, 2, 2}), t({2, 1, 2, 2, 1}), std::nullopt, IntVector{2}, IntVector{0},
                   IntVector{0}, 1, IntVector{1}, IntVector{5, 4, 4}, "NDHWC");
        },
    .onnx = "ConvTranspose",
};

}  // namespace

OAR_FAMILY(conv_transpose, &conv1d_transpose_op, &conv2d_transpose_op, &conv3d_transpose_op)

}  // namespace oar
