// Convolutions, pooling, normalisations, resizing, padding, detection.
#include <cmath>

#include "oar/interop/paddle/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::paddle {
namespace {

using List = std::vector<int64_t>;

std::string layout(const Call& c, int64_t rank) {
  std::string given = c.text("data_format", rank == 5 ? "NCDHW" : "NCHW");
  if (given == "AnyLayout" || given.empty()) return rank == 5 ? "NCDHW" : "NCHW";
  return given;
}

// ---- convolutions --------------------------------------------------------------------------------

Values convolved(const Call& c) {
  const Tensor &x = c.tensor(0), &weight = c.tensor(1);
  const auto op = x.rank() == 5 ? conv3d : conv2d;
  return {op(x, weight, {}, c.list("strides"), c.list("paddings"), c.list("dilations"),
             c.integer("groups", 1), layout(c, x.rank()), c.text("padding_algorithm", "EXPLICIT"))};
}
Values convolved_transposed(const Call& c) {
  const Tensor &x = c.tensor(0), &weight = c.tensor(1);
  List extra = c.list("output_padding");
  if (extra.empty()) extra = {0};
  const std::vector<Dim> size = c.sizes(2, "output_size");
  const std::optional<DimArgs> wanted = size.empty() ? std::nullopt : std::optional(DimArgs(size));
  const std::string format = layout(c, x.rank()), padding = c.text("padding_algorithm", "EXPLICIT");
  if (x.rank() == 5)
    return {conv3d_transpose(x, weight, {}, c.list("strides"), c.list("paddings"), extra,
                             c.integer("groups", 1), c.list("dilations"), wanted, format, padding)};
  return {conv2d_transpose(x, weight, {}, c.list("strides"), c.list("paddings"), extra,
                           c.list("dilations"), c.integer("groups", 1), wanted, format, padding)};
}
Values convolved_deformed(const Call& c) {
  return {deform_conv2d(c.tensor(0), c.tensor(1), c.tensor(2), {}, c.list("strides"),
                        c.list("paddings"), c.list("dilations"), c.integer("deformable_groups", 1),
                        c.integer("groups", 1), c.maybe(3))};
}

// ---- pooling -------------------------------------------------------------------------------------

Values pooled(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::string format = layout(c, x.rank()), padding = c.text("padding_algorithm", "EXPLICIT");
  const bool last = format.back() == 'C', is_max = c.text("pooling_type", "max") == "max";
  const int64_t spatial = x.rank() - 2, first = last ? 1 : 2;
  List axes;
  for (int64_t i = 0; i < spatial; ++i) axes.push_back(first + i);
  List kernel = c.integers(1, "kernel_size");
  kernel.resize(static_cast<size_t>(spatial), kernel.empty() ? 1 : kernel[0]);
  const bool adaptive = c.flag("adaptive");
  if (c.flag("global_pooling") || (adaptive && kernel == List(kernel.size(), 1)))
    return {is_max ? max(x, IntArgs(axes), true) : mean(x, IntArgs(axes), true)};
  if (adaptive) {
    const std::vector<Dim> size(kernel.begin(), kernel.end());
    return {is_max ? std::get<0>(adaptive_max_pool(x, size, last))
                   : adaptive_avg_pool(x, size, last)};
  }
  const List stride = c.list("strides"), pads = c.list("paddings");
  const bool ceil = c.flag("ceil_mode"), exclusive = c.flag("exclusive", true);
  if (spatial == 3)
    return {is_max ? max_pool3d(x, kernel, IntArgs(stride), pads, ceil, format, padding)
                   : avg_pool3d(x, kernel, IntArgs(stride), pads, ceil, exclusive, std::nullopt,
                                format, padding)};
  return {is_max ? max_pool2d(x, kernel, IntArgs(stride), pads, ceil, format, padding)
                 : avg_pool2d(x, kernel, IntArgs(stride), pads, ceil, exclusive, std::nullopt,
                              format, padding)};
}
Values pooled_with_places(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List kernel = c.list("kernel_size");
  if (c.flag("global_pooling")) c.refuse("it pools whole planes");
  if (c.flag("adaptive")) {
    const auto [best, places] =
        adaptive_max_pool(x, std::vector<Dim>(kernel.begin(), kernel.end()));
    return {best, cast(places, DType::Int32)};
  }
  const auto [best, places] =
      max_pool_with_mask(x, kernel, IntArgs(c.list("strides")), c.list("paddings"),
                         c.flag("ceil_mode"), x.rank() == 5 ? "NCDHW" : "NCHW");
  return {best, cast(places, DType::Int32)};
}

// ---- normalisations ------------------------------------------------------------------------------

Values batch_normalised(const Call& c) {
  if (!c.flag("is_test", true) && !c.flag("use_global_stats")) c.refuse("it is in training mode");
  const Tensor& x = c.tensor(0);
  return {batch_norm(x, c.tensor(1), c.tensor(2), c.maybe(3), c.maybe(4), false,
                     c.number("momentum", 0.9), c.number("epsilon", 1e-5), layout(c, x.rank())),
          c.tensor(1), c.tensor(2)};
}
Values layer_normalised(const Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<Dim> shape;
  for (int64_t i = c.integer("begin_norm_axis", 1); i < x.rank(); ++i) shape.push_back(x.dim(i));
  const auto shaped = [&](size_t i) { return c.has(i) ? reshape(c.tensor(i), shape) : Tensor{}; };
  return {layer_norm(x, shape, shaped(1), shaped(2), c.number("epsilon", 1e-5))};
}
Values group_normalised(const Call& c) {
  const Tensor& x = c.tensor(0);
  return {group_norm(x, c.integer("groups", 1), c.number("epsilon", 1e-5), c.maybe(1), c.maybe(2),
                     layout(c, x.rank()))};
}
Values instance_normalised(const Call& c) {
  return {instance_norm(c.tensor(0), {}, {}, c.maybe(1), c.maybe(2), true, 0.9,
                        c.number("epsilon", 1e-5))};
}

// ---- resizing ------------------------------------------------------------------------------------

struct Target {
  std::vector<Dim> sizes;
  std::vector<double> scales;
};

// What `floor(size * scale)` is for a size that may be open.
Dim scaled_size(const Call& c, Dim size, double by) {
  if (!size.is_symbolic())
    return static_cast<int64_t>(static_cast<float>(size.value()) * static_cast<float>(by));
  if (by == std::floor(by)) return size * static_cast<int64_t>(by);
  const double inverse = 1 / by;
  if (inverse == std::floor(inverse)) return floor_div(size, static_cast<int64_t>(inverse));
  c.refuse("its size depends on the sizes of a run in a way that is not a whole multiple");
}

// Sizes as a list of tensors, scales, sizes as one tensor or sizes as attributes: in this order.
Target target_of(const Call& c, const Tensor& x, int64_t first) {
  const auto axes = static_cast<size_t>(x.rank() - 2);
  Target t;
  if (c.has(2)) {
    t.sizes = c.sizes(2, "");
  } else {
    if (c.has(3)) {
      if (!c.item(3).numbers) c.refuse("its scale is computed by the model");
      t.scales = *c.item(3).numbers;
    } else {
      t.scales = c.number_list("scale");
      if (t.scales == std::vector<double>{0}) t.scales.clear();  // version 1: none
    }
    if (t.scales.size() == 1) t.scales.resize(axes, t.scales[0]);
    for (size_t i = 0; i < t.scales.size() && i < axes; ++i)
      t.sizes.push_back(scaled_size(c, x.dim(first + static_cast<int64_t>(i)), t.scales[i]));
    if (c.has(1)) t.sizes = c.sizes(1, "");
  }
  if (t.sizes.empty()) {
    const std::vector<const char*> names =
        axes == 1   ? std::vector<const char*>{"out_w"}
        : axes == 2 ? std::vector<const char*>{"out_h", "out_w"}
                    : std::vector<const char*>{"out_d", "out_h", "out_w"};
    for (const char* name : names) t.sizes.emplace_back(c.integer(name, -1));
  }
  if (t.sizes.size() != axes) c.refuse("its sizes do not fit the input");
  return t;
}

// As Oar's `nearest` takes floors, corners that stay in place are picked by index.
Tensor nearest_aligned(const Call& c, Tensor x, const Target& t, int64_t first) {
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    const int64_t axis = first + static_cast<int64_t>(i);
    if (x.dim(axis).is_symbolic() || t.sizes[i].is_symbolic())
      c.refuse("its sizes depend on those of a run");
    const int64_t from = x.dim(axis).value(), to = t.sizes[i].value();
    const float ratio = to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0;
    List places;
    for (int64_t k = 0; k < to; ++k)
      places.push_back(std::min(
          from - 1, static_cast<int64_t>(std::floor(ratio * static_cast<float>(k) + 0.5F))));
    x = index_select(x, Tensor::from_vector(places, Shape{to}, DType::Int64), axis);
  }
  return x;
}

Values resized(const Call& c, const char* mode) {
  const Tensor& x = c.tensor(0);
  const bool last = layout(c, x.rank()).back() == 'C';
  const int64_t first = last ? 1 : 2;
  const Target t = target_of(c, x, first);
  const std::optional<DoubleArgs> scales =
      t.scales.empty() || c.has(1) ? std::nullopt : std::optional(DoubleArgs(std::span(t.scales)));
  const bool corners = c.flag("align_corners");
  if (std::string_view(mode) == "nearest")
    return {corners ? nearest_aligned(c, x, t, first)
                    : resample_nearest(x, first, t.sizes, scales)};
  return {resample(x, first, t.sizes, scales, mode, corners, c.integer("align_mode", 1))};
}
Values resized_nearest(const Call& c) { return resized(c, "nearest"); }
Values resized_linear(const Call& c) { return resized(c, "linear"); }
Values resized_cubic(const Call& c) { return resized(c, "cubic"); }

// ---- padding and places --------------------------------------------------------------------------

Values padded(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List given = c.integers(1, "paddings");
  const bool legacy2d = c.node.find("pad_value") == nullptr && x.rank() == 4;
  const bool last = layout(c, x.rank()).back() == 'C';
  List pads(2 * static_cast<size_t>(x.rank()));
  const auto axes = static_cast<size_t>(x.rank() - 2), first = static_cast<size_t>(last ? 1 : 2);
  if (given.size() < 2 * axes) c.refuse("its paddings do not fit the input");
  for (size_t i = 0; i < axes; ++i)  // the last axis comes first, except in pad2d
    for (size_t side = 0; side < 2; ++side)
      pads[2 * (first + i) + side] = given[2 * (legacy2d ? i : axes - 1 - i) + side];
  const std::string mode = c.text("mode", "constant");
  if (mode == "constant") return {pad_constant(x, pads, Scalar(c.number("pad_value", 0)))};
  return {pad_edges(x, pads, mode == "edge" ? "replicate" : mode)};
}
Values padded_all(const Call& c) {
  return {pad_constant(c.tensor(0), c.list("paddings"), Scalar(c.number(1, "pad_value", 0)))};
}
Values shuffled(const Call& c) {
  return {
      pixel_shuffle(c.tensor(0), c.integer("upscale_factor", 1), c.text("data_format", "NCHW"))};
}
Values unshuffled(const Call& c) {
  return {pixel_unshuffle(c.tensor(0), c.integer("downscale_factor", 1),
                          c.text("data_format", "NCHW"))};
}
Values channels_shuffled(const Call& c) {
  return {channel_shuffle(c.tensor(0), c.integer("groups", c.integer("group", 1)),
                          c.text("data_format", "NCHW"))};
}
Values columns(const Call& c) {
  return {im2col(c.tensor(0), c.list("kernel_sizes"), c.list("strides"), c.list("paddings"),
                 c.list("dilations"))};
}
Values columns_back(const Call& c) {
  return {col2im(c.tensor(0), DimArgs(c.list("output_sizes")), c.list("kernel_sizes"),
                 c.list("strides"), c.list("paddings"), c.list("dilations"))};
}
Values affine(const Call& c) {
  return {affine_grid(c.tensor(0), c.sizes(1, "output_shape"), c.flag("align_corners", true))};
}
Values sampled_at(const Call& c) {
  return {grid_sample(c.tensor(0), c.tensor(1), c.text("mode", "bilinear"),
                      c.text("padding_mode", "zeros"), c.flag("align_corners", true))};
}
Values largest_of_groups(const Call& c) {
  return {maxout(c.tensor(0), c.integer("groups", 1), c.integer("axis", 1))};
}

// ---- detection -----------------------------------------------------------------------------------

Values without_overlaps(const Call& c) {
  const auto [boxes, index, counts] = multiclass_nms3(
      c.tensor(0), c.tensor(1), c.maybe(2), c.number("score_threshold", 0),
      c.integer("nms_top_k", -1), c.integer("keep_top_k", -1), c.number("nms_threshold", 0.3),
      c.flag("normalized", true), c.number("nms_eta", 1), c.integer("background_label", 0));
  return {boxes, index, counts};
}
Values without_overlaps_soft(const Call& c) {
  const auto [boxes, index, counts] = matrix_nms(
      c.tensor(0), c.tensor(1), c.number("score_threshold", 0), c.integer("nms_top_k", -1),
      c.integer("keep_top_k", -1), c.number("post_threshold", 0), c.flag("use_gaussian"),
      c.number("gaussian_sigma", 2), c.integer("background_label", 0), c.flag("normalized", true));
  return {boxes, index, counts};
}
Values yolo_boxes(const Call& c) {
  const auto [boxes, scores] = yolo_box(
      c.tensor(0), c.tensor(1), c.list("anchors"), c.integer("class_num", 1),
      c.number("conf_thresh", 0.01), c.integer("downsample_ratio", 32), c.flag("clip_bbox", true),
      c.number("scale_x_y", 1), c.flag("iou_aware"), c.number("iou_aware_factor", 0.5));
  return {boxes, scores};
}
Values aligned_regions(const Call& c) {
  return {roi_align(c.tensor(0), c.tensor(1), c.tensor(2),
                    {c.integer("pooled_height", 1), c.integer("pooled_width", 1)},
                    c.number("spatial_scale", 1), c.integer("sampling_ratio", -1),
                    c.flag("aligned"))};
}

constexpr Converter kConverters[] = {
    {"conv2d", convolved},
    {"conv3d", convolved},
    {"depthwise_conv2d", convolved},
    {"conv2d_transpose", convolved_transposed},
    {"conv3d_transpose", convolved_transposed},
    {"depthwise_conv2d_transpose", convolved_transposed},
    {"deformable_conv", convolved_deformed},
    {"pool2d", pooled},
    {"pool3d", pooled},
    {"max_pool2d_with_index", pooled_with_places},
    {"max_pool3d_with_index", pooled_with_places},
    {"batch_norm", batch_normalised},
    {"layer_norm", layer_normalised},
    {"group_norm", group_normalised},
    {"instance_norm", instance_normalised},
    {"nearest_interp", resized_nearest},
    {"bilinear_interp", resized_linear},
    {"linear_interp", resized_linear},
    {"trilinear_interp", resized_linear},
    {"bicubic_interp", resized_cubic},
    {"pad3d", padded},
    {"pad", padded_all},
    {"pixel_shuffle", shuffled},
    {"pixel_unshuffle", unshuffled},
    {"channel_shuffle", channels_shuffled},
    {"shuffle_channel", channels_shuffled},
    {"unfold", columns},
    {"fold", columns_back},
    {"affine_grid", affine},
    {"grid_sample", sampled_at},
    {"maxout", largest_of_groups},
    {"multiclass_nms3", without_overlaps},
    {"matrix_nms", without_overlaps_soft},
    {"yolo_box", yolo_boxes},
    {"roi_align", aligned_regions},
};

}  // namespace

std::span<const Converter> network_converters() { return kConverters; }

}  // namespace oar::paddle
