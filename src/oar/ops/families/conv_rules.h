// What convolutions of every kind check, and the shape of their result.
#pragma once

#include "oar/ops/core/registry.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/window.h"

namespace oar {

// The attributes that convolutions share, in the form that the primitives take.
struct Sliding {
  Ints stride;
  Dims padding;
  Ints dilation;
  int64_t groups;
  bool channels_last;

  template <class A>
  explicit Sliding(const A& a)
      : stride(a.stride),
        padding(a.padding),
        dilation(a.dilation),
        groups(a.groups),
        channels_last(a.channels_last) {}
  ImageAxes axes() const { return {stride.size(), channels_last}; }
};

// The result's shape, from the shapes of the input and the weight; all checks are here.
inline Shape conv_result(const Shape& x, const Shape& weight, const Sliding& s) {
  user_check(
      x.rank() >= 3 && x.rank() <= 5 && weight.rank() == x.rank(), ErrorKind::InvalidArgument,
      "x has shape {} and weight {}; both must have 3, 4 or 5 axes.\nhint: x is [batch, channels, "
      "spatial…], weight [out_channels, in_channels / groups, spatial…].",
      x.str(), weight.str());
  const ImageAxes axes = axes_of_rank(x.rank(), s.channels_last);
  check_windows(s.stride, axes.spatial, "stride");
  check_windows(s.dilation, axes.spatial, "dilation");
  check_padding(s.padding, axes.spatial);
  user_check(s.groups >= 1, ErrorKind::InvalidArgument, "groups must be at least 1, not {}.",
             s.groups);
  const Dim channels = x[axes.channel()], taken = weight[1] * Dim(s.groups);
  user_check(
      same(channels, taken), ErrorKind::InvalidArgument,
      "weight of shape {} with groups {} takes {} input channels, but x of shape {} has {}.\nhint: "
      "Give weight {} // groups input channels, or change groups or data_format.",
      weight.str(), s.groups, taken.str(), x.str(), channels.str(), channels.str());
  user_check(same(floor_mod(weight[0], Dim(s.groups)), Dim(0)), ErrorKind::InvalidArgument,
             "the {} output channels of weight are not divisible by groups {}.", weight[0].str(),
             s.groups);
  Shape sizes;
  for (size_t i = 0; i < axes.spatial; ++i)
    sizes.push_back(window_count(axes.size(x, i), weight[2 + i], s.stride[i],
                                 s.padding[2 * i] + s.padding[2 * i + 1], s.dilation[i], false, i,
                                 axes.spatial));
  return axes.image(x[0], weight[0], sizes);
}

inline void check_bias(const Tensor& bias, const Shape& weight) {
  user_check(!bias.defined() || (bias.rank() == 1 && same(bias.dim(0), weight[0])),
             ErrorKind::InvalidArgument,
             "bias of shape {} must have one number for each of the {} output channels.",
             to_string(bias.dims()), weight[0].str());
}

// The public forms of the arguments, resolved.
struct Resolved {
  ImageAxes axes;
  SmallVector<int64_t, 6> stride, dilation;
  Shape padding;

  template <class A>
  Resolved(const A& a, size_t spatial) : axes(axes_of(a.data_format, spatial)) {
    check_parameter(a.x, a.weight, "weight");
    check_parameter(a.x, a.bias, "bias");
    const auto rank = static_cast<int>(spatial) + 2;
    user_check(a.x.rank() == rank && a.weight.rank() == rank, ErrorKind::InvalidArgument,
               "x and weight must have {} axes, but their shapes are {} and {}.\nhint: x is {}; "
               "unsqueeze(0) adds a batch to a single image.",
               rank, to_string(a.x.dims()), to_string(a.weight.dims()), a.data_format);
    stride = expand_ints(a.stride, spatial, "stride");
    dilation = expand_ints(a.dilation, spatial, "dilation");
    check_windows(Ints(stride), spatial, "stride");
    check_windows(Ints(dilation), spatial, "dilation");
    padding = resolve_padding(a.padding_algorithm, a.padding, axes.sizes(a.x.dims()),
                              Shape(a.weight.dims().subspan(2)), Ints(stride));
    check_padding(padding, spatial);
    if (a.padding_algorithm == "SAME") std::fill(dilation.begin(), dilation.end(), 1);  // as Paddle
  }
};

// A piece that is cut by groups has fewer of them.
inline void localise_groups(const PieceCall& piece, const PlanTensor& weight) {
  const auto index = static_cast<size_t>(piece.op.schema().index_of("groups"));
  if (piece.frame[index].as_int() > 1 && weight.axes[0].factor == static_cast<int>(piece.factor))
    piece.frame.set(index, piece.size.value());
}

inline void local_groups(const PieceCall& piece) { localise_groups(piece, piece.plan.operands[1]); }

}  // namespace oar
