// Convolution with deformable windows: each tap reads the image at a position moved by an offset.
#include "oar/ops/gen/deform_conv.h"

#include <array>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/conv_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/conv.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/rounding.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

// The public forms of the arguments, resolved.
struct Bending {
  SmallVector<int64_t, 6> stride, margin, dilation;
  Shape padding;
  int64_t groups, deformable_groups;
  bool channels_last = false;

  template <class A>
  explicit Bending(const A& a)
      : stride(expand_ints(a.stride, 2, "stride")),
        margin(expand_ints(a.padding, 2, "padding")),
        dilation(expand_ints(a.dilation, 2, "dilation")),
        padding{margin[0], margin[0], margin[1], margin[1]},
        groups(a.groups),
        deformable_groups(a.deformable_groups) {}
};

void check_per_tap(const Tensor& given, const char* argument, const char* channels,
                   const Shape& wanted) {
  const auto fits = [&](size_t i) { return assume_same(given.dims()[i], wanted[i]); };
  user_check(given.rank() == 4 && fits(0) && fits(1) && fits(2) && fits(3),
             ErrorKind::InvalidArgument,
             "{} has shape {}; with these x, weight, stride, padding and dilation it must be "
             "{}.\nhint: {} is [batch, {}, out_height, out_width].",
             argument, to_string(given.dims()), wanted.str(), argument, channels);
}

Shape deformed_shape(const args::deform_conv2d& a) {
  user_check(a.x.rank() == 4 && a.weight.rank() == 4, ErrorKind::InvalidArgument,
             "x and weight must have 4 axes, but their shapes are {} and {}.\nhint: x is NCHW; "
             "unsqueeze(0) adds a batch to a single image.",
             to_string(a.x.dims()), to_string(a.weight.dims()));
  const Bending b(a);
  const Shape weight = a.weight.shape();
  const Shape out = conv_result(a.x.shape(), weight, Sliding(b));
  check_bias(a.bias, weight);
  user_check(
      b.deformable_groups >= 1 && same(floor_mod(a.x.dim(1), Dim(b.deformable_groups)), Dim(0)),
      ErrorKind::InvalidArgument,
      "the {} channels of x do not fall into {} deformable groups.\nhint: deformable_groups must "
      "divide the channels of x.",
      a.x.dim(1).str(), b.deformable_groups);
  const Dim taps = weight[2] * weight[3] * Dim(b.deformable_groups);
  check_per_tap(a.offset, "offset", "2 * deformable_groups * kernel_height * kernel_width",
                {out[0], taps * Dim(2), out[2], out[3]});
  if (a.mask.defined())
    check_per_tap(a.mask, "mask", "deformable_groups * kernel_height * kernel_width",
                  {out[0], taps, out[2], out[3]});
  return {out[0], out[1], a.offset.dim(2), a.offset.dim(3)};
}

// 0, step, 2 * step, … as a tensor followed by `behind` axes of size 1.
Tensor steps(Dim count, int64_t step, DType dtype, size_t behind) {
  const Tensor numbers = count.is_known()
                             ? range(Scalar(0), Scalar(count.value()), Scalar(1), dtype)
                             : cumsum(ones({count}, dtype), 0) - 1;
  Shape column{count};
  for (size_t i = 0; i < behind; ++i) column.push_back(1);
  return reshape(numbers * literal(static_cast<double>(step)), column);
}

// The coordinate, along height or width, that each tap reads in each window, in pixels: [batch,
// deformable groups, kernel height, kernel width, out height, out width].
Tensor coordinates(const Tensor& offset, const Bending& b, Dims weight, size_t axis) {
  const Tensor by_tap = reshape(offset, {offset.dim(0), b.deformable_groups, weight[2], weight[3],
                                         2, offset.dim(2), offset.dim(3)});
  const Tensor moved =
      slice_view(by_tap, SliceIndex().skip(4).at(static_cast<int64_t>(axis)).rest());
  const size_t behind = 1 - axis;
  const Tensor tap = steps(weight[2 + axis], b.dilation[axis], offset.dtype(), behind + 2);
  const Tensor window =
      steps(offset.dim(2 + static_cast<int64_t>(axis)), b.stride[axis], offset.dtype(), behind);
  return moved + (tap + window - literal(static_cast<double>(b.margin[axis])));
}

// The pixel below or above a coordinate: its index, whether there is one, and how much it counts.
struct Neighbour {
  Tensor index, exists, weight;
};

// A coordinate of -1 or less is outside, so that the derivative there is 0, as at the other end.
std::array<Neighbour, 2> neighbours(const Tensor& at, const Tensor& size) {
  const Tensor below = floor(at), part = at - below;
  const auto make = [](const Tensor& exists, const Tensor& index, const Tensor& weight) {
    return Neighbour{cast(zero_unless(exists, index), DType::Int64), exists,
                     zero_unless(exists, weight)};
  };
  const Tensor here = logical_and(greater_equal(at, literal(0)), less_than(at, size));
  const Tensor next = logical_and(greater_than(at, literal(-1)), less_than(at, size - 1));
  return {make(here, below, 1 - part), make(next, below + 1, part)};
}

// What the taps read, between pixels by bilinear weights: [batch, channels * kernel height * kernel
// width, out height, out width]. After the last pixel of each channel comes a zero, which positions
// outside the image read.
Tensor read_taps(const Tensor& image, const Tensor& offset, const Tensor& mask, const Bending& b,
                 Dims weight) {
  const Dim n = image.dim(0), groups(b.deformable_groups), each = floor_div(image.dim(1), groups);
  const Dims sizes = image.dims().subspan(2);
  const Tensor pixels = pad_constant(reshape(image, {n, groups, each, sizes[0] * sizes[1]}),
                                     {0, 0, 0, 0, 0, 0, 0, 1});
  const auto count = [](Dims of, DType dtype) { return cast(count_of(of, dtype), dtype); };
  const auto along = [&](size_t axis) {
    return neighbours(coordinates(offset, b, weight, axis),
                      count(sizes.subspan(axis, 1), offset.dtype()));
  };
  const auto rows = along(0), columns = along(1);
  const Tensor width = count(sizes.subspan(1), DType::Int64), outside = count(sizes, DType::Int64);
  const Dim places = weight[2] * weight[3] * offset.dim(2) * offset.dim(3);
  const Shape flat{n, groups, 1, places};
  Tensor sum;
  for (const Neighbour& row : rows)
    for (const Neighbour& column : columns) {
      const Tensor exists = logical_and(row.exists, column.exists);
      const Tensor index = where(exists, row.index * width + column.index, outside);
      const Tensor seen =
          take_along(pixels, broadcast_to(reshape(index, flat), {n, groups, each, places}), 3);
      Tensor share = reshape(row.weight * column.weight, flat);
      if (mask.defined()) share = share * reshape(mask, flat);
      sum = sum.defined() ? sum + seen * share : seen * share;
    }
  return reshape(sum, {n, image.dim(1) * weight[2] * weight[3], offset.dim(2), offset.dim(3)});
}

const OpDef deform_conv2d_op = {
    .schema =
        "deform_conv2d(Tensor x, Tensor offset, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = "
        "0, int[] dilation = 1, int deformable_groups = 1, int groups = 1, Tensor? mask = None) -> Tensor",
    .brief =
        "The convolution of images [n, c, h, w] with weight, whose taps read where offset moves them: (y, x) for each "
        "deformable group, tap and window, between pixels bilinearly, zeros outside; mask weighs what each tap reads.",
    .infer = [](const args::deform_conv2d& a) -> Metas {
      return TensorMeta{a.x.dtype(), deformed_shape(a)};
    },
    .decompose = [](const args::deform_conv2d& a) -> Made {
      const Tensor read = narrowed(
          read_taps(widened(a.x), widened(a.offset), a.mask.defined() ? widened(a.mask) : Tensor(),
                    Bending(a), a.weight.dims()),
          a.x.dtype());
      const Dim taken = a.weight.dim(1) * a.weight.dim(2) * a.weight.dim(3);
      return conv(read, reshape(a.weight, {a.weight.dim(0), taken, 1, 1}), a.bias, {1, 1},
                  {0, 0, 0, 0}, {1, 1}, a.groups, false);
    },
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy =
        "(lambda read, n, c, k, o, s, p, d: np.einsum('ngctyx,gfct->ngfyx', np.array([[[read(x[i, j], [np.arange("
        "o[0])[:, None] * s[0] - p[0] + t // k[1] * d[0] + offset[i, 2 * (j * deformable_groups // c * k[0] * k[1] + t)], "
        "np.arange(o[1]) * s[1] - p[1] + t % k[1] * d[1] + offset[i, 2 * (j * deformable_groups // c * k[0] * k[1] + t) "
        "+ 1]]) * (1 if mask is None else mask[i, j * deformable_groups // c * k[0] * k[1] + t]) for t in range(k[0] * "
        "k[1])] for j in range(c)] for i in range(n)]).reshape(n, groups, c // groups, k[0] * k[1], *o), weight.reshape("
        "groups, weight.shape[0] // groups, c // groups, k[0] * k[1])).reshape(n, weight.shape[0], *o) + (0 if bias is "
        "None else bias[:, None, None]))(lambda image, places: __import__('scipy.ndimage', fromlist=['x'])."
        "map_coordinates(image, places, order=1, mode='grid-constant'), *x.shape[:2], weight.shape[2:], offset.shape[2:], "
        "[*stride, *stride], [*padding, *padding], [*dilation, *dilation])",
    .samples =
        [] {
          // Offsets between the pixels, where there is a derivative.
          return Samples()
              .add(t({2, 2, 4, 3}), uniform_in(0.1, 0.9, {2, 8, 3, 2}), t({3, 2, 2, 2}))
              .add(t({1, 4, 5, 4}), uniform_in(-1.9, -1.1, {1, 24, 2, 5}), t({2, 2, 3, 2}), t({2}),
                   IntVector{3, 1}, IntVector{1, 1}, IntVector{1, 1}, 2, 2,
                   uniform_in(0, 1, {1, 12, 2, 5}))
              .add(t({1, 2, 5, 5}), uniform_in(1.1, 1.9, {1, 8, 5, 4}), t({2, 2, 2, 2}), t({2}), 1,
                   IntVector{1, 0}, IntVector{2, 1}, 1, 1)
              .add(t({1, 2, 2, 2}), uniform_in(-3.9, -3.1, {1, 4, 2, 2}), t({2, 1, 1, 1}),
                   std::nullopt, 1, 0, 1, 2, 2, uniform_in(0, 1, {1, 2, 2, 2}))
              .add(t({0, 2, 3, 3}), t({0, 8, 2, 2}), t({2, 2, 2, 2}));
        },
    .python = "oar.vision.ops",
};

}  // namespace

OAR_FAMILY(deform_conv, &deform_conv2d_op)

}  // namespace oar
