// Resizing, padding, sampling, and pixels as channels.
#include <cmath>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

struct Target {
  Tensor x;
  List size;
  std::vector<double> scales;  // none: from the sizes
};

// A form of these ops has sizes and scales as lists, the other one size and a scale for each axis.
Target target_of(const Call& c) {
  Target t;
  t.x = c.tensor(c.takes("input") ? "input" : "self");
  const auto axes = static_cast<size_t>(t.x.rank() - 2);
  if (c.takes("scale_factors")) {
    t.scales = c.numbers("scale_factors");
  } else {
    for (const char* name : {"scales", "scales_d", "scales_h", "scales_w"})
      if (c.takes(name) && c.has(name)) t.scales.push_back(c.number(name));
    if (t.scales.size() != axes) t.scales.clear();
  }
  if (c.has("output_size")) {
    t.size = c.list("output_size", axes);
  } else {
    if (t.scales.size() != axes) c.refuse("it has neither a size nor a scale for each axis");
    for (size_t i = 0; i < axes; ++i)
      t.size.push_back(static_cast<int64_t>(std::floor(
          static_cast<double>(t.x.dim(static_cast<int64_t>(i) + 2).value()) * t.scales[i])));
  }
  return t;
}
std::optional<DoubleArgs> scales_of(const Target& t) {
  if (t.scales.empty()) return std::nullopt;
  return DoubleArgs(std::span(t.scales));
}

Value nearest(const Call& c) {
  const Target t = target_of(c);
  return resample_nearest(t.x, 2, DimArgs(t.size), scales_of(t));
}
// The element that has the centre of the new one in it.
Value nearest_exact(const Call& c) {
  const Target t = target_of(c);
  Tensor x = t.x;
  for (size_t i = 0; i < t.size.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2, from = x.dim(axis).value(), to = t.size[i];
    const float ratio = t.scales.empty() ? static_cast<float>(from) / static_cast<float>(to)
                                         : static_cast<float>(1.0 / t.scales[i]);
    List places;
    for (int64_t k = 0; k < to; ++k)
      places.push_back(std::min(
          from - 1, static_cast<int64_t>(std::floor((static_cast<float>(k) + 0.5F) * ratio))));
    x = index_select(x, Tensor::from_vector(places, Shape{to}, DType::Int64), axis);
  }
  return x;
}
Value smooth(const Call& c, const char* mode) {
  const Target t = target_of(c);
  const bool corners = c.flag("align_corners");
  return resample(t.x, 2, DimArgs(t.size), corners ? std::nullopt : scales_of(t), mode, corners, 0);
}
Value linear_between(const Call& c) { return smooth(c, "linear"); }
Value cubic_between(const Call& c) { return smooth(c, "cubic"); }

// ---- padding -----------------------------------------------------------------------------------

// Pairs from the last axis backwards.
List edges_of(const Call& c, const char* name, const Tensor& x) {
  const List given = c.list(name);
  const auto rank = static_cast<size_t>(x.rank());
  if (given.size() % 2 != 0 || given.size() > 2 * rank)
    c.refuse(format("'{}' does not fit the tensor", name));
  List edges(2 * rank, 0);
  for (size_t i = 0; i < given.size() / 2; ++i)
    for (size_t side = 0; side < 2; ++side) edges[2 * (rank - 1 - i) + side] = given[2 * i + side];
  return edges;
}
// Negative numbers cut off.
Tensor cut(const Tensor& x, List& edges) {
  Tensor made = x;
  for (size_t i = 0; i < static_cast<size_t>(x.rank()); ++i) {
    const int64_t before = std::min<int64_t>(edges[2 * i], 0),
                  behind = std::min<int64_t>(edges[2 * i + 1], 0);
    if (before == 0 && behind == 0) continue;
    const auto axis = static_cast<int64_t>(i);
    made = slice(made, {axis}, {-before}, {made.dim(axis).value() + behind});
    edges[2 * i] -= before;
    edges[2 * i + 1] -= behind;
  }
  return made;
}
Tensor with_edges(const Call& c, List edges, const std::string& mode, double value) {
  const Tensor x = cut(c.tensor("self"), edges);
  if (mode == "constant")
    return pad_constant(
        x, edges, is_floating(x.dtype()) ? Scalar(value) : Scalar(static_cast<int64_t>(value)));
  return pad_edges(x, edges, mode);
}
Value padded(const Call& c) {
  const Tensor& x = c.tensor("self");
  return with_edges(c, edges_of(c, "pad", x), c.text("mode"),
                    c.has("value") ? c.number("value") : 0);
}
Value padded_constant(const Call& c) {
  return with_edges(c, edges_of(c, "pad", c.tensor("self")), "constant", c.number("value"));
}
Value padded_reflecting(const Call& c) {
  return with_edges(c, edges_of(c, "padding", c.tensor("self")), "reflect", 0);
}
Value padded_replicating(const Call& c) {
  return with_edges(c, edges_of(c, "padding", c.tensor("self")), "replicate", 0);
}

// ---- sampling ----------------------------------------------------------------------------------

Value sampled(const Call& c) {
  constexpr const char* modes[] = {"bilinear", "nearest"};
  constexpr const char* edges[] = {"zeros", "border", "reflection"};
  const int64_t mode = c.integer("interpolation_mode"), edge = c.integer("padding_mode");
  if (mode < 0 || mode > 1) c.refuse("its interpolation is bicubic");
  if (edge < 0 || edge > 2) c.refuse("its padding is unknown");
  return grid_sample(c.tensor("input"), c.tensor("grid"), modes[mode], edges[edge],
                     c.flag("align_corners"));
}
Value grid_of(const Call& c) {
  const List size = c.list("size");
  return affine_grid(c.tensor("theta"), DimArgs(size), c.flag("align_corners"));
}
Value shuffled(const Call& c) {
  return pixel_shuffle(c.tensor("self"), c.integer("upscale_factor"));
}
Value unshuffled(const Call& c) {
  return pixel_unshuffle(c.tensor("self"), c.integer("downscale_factor"));
}
Value channels_shuffled(const Call& c) {
  return channel_shuffle(c.tensor("self"), c.integer("groups"));
}
// The same before and behind, axis by axis.
List both_sides(const Call& c) {
  const List padding = c.list("padding", 2);
  return {padding[0], padding[1], padding[0], padding[1]};
}
Value columns(const Call& c) {
  return im2col(c.tensor("self"), c.list("kernel_size", 2), c.list("stride", 2), both_sides(c),
                c.list("dilation", 2));
}
Value columns_back(const Call& c) {
  const List size = c.list("output_size", 2);
  return col2im(c.tensor("self"), DimArgs(size), c.list("kernel_size", 2), c.list("stride", 2),
                both_sides(c), c.list("dilation", 2));
}

constexpr Converter kConverters[] = {
    {"upsample_nearest1d(self, output_size, scales:number=None)", nearest},
    {"upsample_nearest1d(input, output_size, scale_factors)", nearest},
    {"upsample_nearest2d(self, output_size, scales_h:number=None, scales_w:number=None)", nearest},
    {"upsample_nearest2d(input, output_size, scale_factors)", nearest},
    {"upsample_nearest3d(self, output_size, scales_d:number=None, scales_h:number=None, scales_w:number=None)",
     nearest},
    {"upsample_nearest3d(input, output_size, scale_factors)", nearest},
    {"_upsample_nearest_exact1d(self, output_size, scales:number=None)", nearest_exact},
    {"_upsample_nearest_exact1d(input, output_size, scale_factors)", nearest_exact},
    {"_upsample_nearest_exact2d(self, output_size, scales_h:number=None, scales_w:number=None)",
     nearest_exact},
    {"_upsample_nearest_exact2d(input, output_size, scale_factors)", nearest_exact},
    {"upsample_linear1d(self, output_size, align_corners, scales:number=None)", linear_between},
    {"upsample_linear1d(input, output_size, align_corners, scale_factors)", linear_between},
    {"upsample_bilinear2d(self, output_size, align_corners, scales_h:number=None, scales_w:number=None)",
     linear_between},
    {"upsample_bilinear2d(input, output_size, align_corners, scale_factors)", linear_between},
    {"upsample_trilinear3d(self, output_size, align_corners, scales_d:number=None, scales_h:number=None, scales_w:number=None)",
     linear_between},
    {"upsample_trilinear3d(input, output_size, align_corners, scale_factors)", linear_between},
    {"upsample_bicubic2d(self, output_size, align_corners, scales_h:number=None, scales_w:number=None)",
     cubic_between},
    {"upsample_bicubic2d(input, output_size, align_corners, scale_factors)", cubic_between},
    {"pad(self, pad, mode='constant', value=None)", padded},
    {"constant_pad_nd(self, pad, value=0)", padded_constant},
    {"reflection_pad1d(self, padding)", padded_reflecting},
    {"reflection_pad2d(self, padding)", padded_reflecting},
    {"reflection_pad3d(self, padding)", padded_reflecting},
    {"replication_pad1d(self, padding)", padded_replicating},
    {"replication_pad2d(self, padding)", padded_replicating},
    {"replication_pad3d(self, padding)", padded_replicating},
    {"grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)", sampled},
    {"grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)", sampled},
    {"affine_grid_generator(theta, size, align_corners)", grid_of},
    {"pixel_shuffle(self, upscale_factor)", shuffled},
    {"pixel_unshuffle(self, downscale_factor)", unshuffled},
    {"channel_shuffle(self, groups)", channels_shuffled},
    {"native_channel_shuffle(self, groups)", channels_shuffled},
    {"im2col(self, kernel_size, dilation, padding, stride)", columns},
    {"col2im(self, output_size, kernel_size, dilation, padding, stride)", columns_back},
};

}  // namespace

std::span<const Converter> resize_converters() { return kConverters; }

}  // namespace oar::pytorch
