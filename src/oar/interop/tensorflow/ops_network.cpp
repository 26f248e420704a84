// Convolutions, pooling, normalisation, products, resizing.
#include <algorithm>

#include "oar/interop/constants.h"
#include "oar/interop/tensorflow/call.h"
#include "oar/interop/tensorflow_math.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

using interop::Window;
using List = std::vector<int64_t>;

// ---- channels ----------------------------------------------------------------------------------

// Where the channels are: "NHWC", "NCHW", "NDHWC", "NCDHW".
bool channels_first(const Call& c) { return c.text("data_format").starts_with("NC"); }

Tensor channels_to_end(const Tensor& x) {
  List order{0};
  for (int64_t i = 2; i < x.rank(); ++i) order.push_back(i);
  order.push_back(1);
  return transpose(x, order);
}
Tensor channels_to_front(const Tensor& x) {
  List order{0, x.rank() - 1};
  for (int64_t i = 1; i + 1 < x.rank(); ++i) order.push_back(i);
  return transpose(x, order);
}

// Images of either order, given to a function with their channels last.
template <class F>
Tensor with_channels_last(const Call& c, size_t input, F&& function) {
  if (!channels_first(c)) return function(c.tensor(input));
  return channels_to_front(function(channels_to_end(c.tensor(input))));
}

// The entries of a list of all axes that belong to the window.
List of_window(const Call& c, const char* name, size_t axes, List otherwise) {
  const List list = c.list(name);
  if (list.empty()) return otherwise;
  const size_t first = channels_first(c) ? 2 : 1;
  if (list.size() != axes + 2) c.refuse(format("its {} are not {}", name, axes + 2));
  return {list.begin() + static_cast<std::ptrdiff_t>(first),
          list.begin() + static_cast<std::ptrdiff_t>(first + axes)};
}

Window window_of(const Call& c, List kernel) {
  const size_t axes = kernel.size();
  const List ones(axes, 1);
  Window w{std::move(kernel), of_window(c, "strides", axes, ones),
           of_window(c, "dilations", axes, ones)};
  const std::string padding = c.text("padding");
  w.same = padding == "SAME";
  if (padding == "EXPLICIT") {
    const List all = c.list("explicit_paddings");
    const size_t first = channels_first(c) ? 4 : 2;
    if (all.size() != 2 * axes + 4) c.refuse("its paddings do not fit the window");
    w.padding.assign(all.begin() + static_cast<std::ptrdiff_t>(first),
                     all.begin() + static_cast<std::ptrdiff_t>(first + 2 * axes));
  }
  return w;
}

// A constant is turned once.
Tensor turned(const Call& c, size_t i, const List& order) {
  const Tensor& x = c.tensor(i);
  if (x.rank() != static_cast<int64_t>(order.size()))
    c.refuse(format("its filter has {} axes", x.rank()));
  return c.known(i) ? c.around.turned(x, order) : transpose(x, order);
}

// ---- convolutions ------------------------------------------------------------------------------

// The filter is [height, width, in / groups, out].
Tensor convolution(const Call& c, const Tensor& bias) {
  const int64_t axes = c.tensor(1).rank() - 2;
  List order{axes + 1, axes};
  for (int64_t i = 0; i < axes; ++i) order.push_back(i);
  const Tensor filter = turned(c, 1, order);
  List kernel;
  for (int64_t i = 0; i < axes; ++i) kernel.push_back(filter.dim(i + 2).value());
  const Window w = window_of(c, kernel);
  return with_channels_last(c, 0, [&](const Tensor& x) {
    const int64_t channels = x.dim(-1).value(), each = filter.dim(1).value();
    if (each < 1 || channels % each != 0) c.refuse("its filter does not fit the channels");
    return interop::convolve_last(x, filter, bias, w, channels / each);
  });
}

// The filter is [height, width, channels, multiplier].
Tensor convolution_by_channel(const Call& c, const Tensor& bias) {
  const Tensor own = turned(c, 1, {2, 3, 0, 1});
  const Dim height = own.dim(2), width = own.dim(3);
  const Tensor filter = c.known(1) && own.dim(1) == Dim(1)
                            ? own
                            : reshape(own, {own.dim(0) * own.dim(1), 1, height, width});
  const Window w = window_of(c, {height.value(), width.value()});
  return with_channels_last(c, 0, [&](const Tensor& x) {
    return interop::convolve_last(x, filter, bias, w, own.dim(0).value());
  });
}

Items convolved(const Call& c) { return {convolution(c, {})}; }
Items convolved_by_channel(const Call& c) { return {convolution_by_channel(c, {})}; }

// Inputs: sizes of the result, filter [height, width, out, in], x.
Items convolved_transposed(const Call& c) {
  const Tensor filter = turned(c, 1, {3, 2, 0, 1});
  const Window w = window_of(c, {filter.dim(2).value(), filter.dim(3).value()});
  if (w.dilation != List{1, 1}) c.refuse("it is dilated");
  if (!w.padding.empty()) c.refuse("its padding is explicit");
  List sizes = c.integers(0);
  if (sizes.size() == 4) sizes = {sizes.begin() + (channels_first(c) ? 2 : 1), sizes.end()};
  if (sizes.size() < 2) c.refuse("the sizes of its result are not four");
  return {with_channels_last(c, 2, [&](const Tensor& x) {
    return interop::convolve_transposed_last(x, filter, w, sizes[0], sizes[1]);
  })};
}

// ---- what is fused -----------------------------------------------------------------------------

// A node with a bias and a function at its end: `step` is applied to what comes before.
Tensor finished(const Call& c, const std::string& step, const Tensor& x) {
  if (step == "Relu") return relu(x);
  if (step == "Relu6") return relu6(x);
  if (step == "Elu") return elu(x);
  if (step == "Sigmoid") return sigmoid(x);
  if (step == "Tanh") return tanh(x);
  if (step == "LeakyRelu") return leaky_relu(x, c.number("leakyrelu_alpha", 0.2));
  if (step == "GeluExact") return gelu(x, false);
  if (step == "GeluApproximate") return gelu(x, true);
  if (step == "Prelu") return relu(x) - relu(-x) * c.tensor(3);
  if (step == "Linear" || step.empty()) return x;
  c.refuse(format("it ends with '{}'", step));
}

Items fused(const Call& c, Tensor (*function)(const Call&, const Tensor& bias)) {
  const Attribute* steps = c.attribute("fused_ops");
  const std::vector<std::string> names = steps ? steps->texts : std::vector<std::string>{};
  const bool biased = !names.empty() && names[0] == "BiasAdd";
  if (names.size() > (biased ? 2 : 1)) c.refuse("it ends with several functions");
  Tensor made = function(c, biased ? c.tensor(2) : Tensor{});
  if (names.size() > (biased ? 1 : 0)) made = finished(c, names.back(), made);
  return {made};
}
Items fused_convolution(const Call& c) { return fused(c, convolution); }
Items fused_convolution_by_channel(const Call& c) { return fused(c, convolution_by_channel); }

Tensor product(const Call& c, const Tensor& bias) {
  const Tensor made =
      matmul(c.tensor(0), c.tensor(1), c.flag("transpose_a"), c.flag("transpose_b"));
  return bias.defined() ? made + bias : made;
}
Items fused_product(const Call& c) { return fused(c, product); }

// ---- pooling -----------------------------------------------------------------------------------

Window pool_window(const Call& c) {
  const auto axes = static_cast<size_t>(c.tensor(0).rank()) - 2;
  const List whole = c.list("ksize"), steps = c.list("strides");
  const size_t channel = channels_first(c) ? 1 : whole.size() - 1;
  if (whole.size() != axes + 2 || whole[0] != 1 || whole[channel] != 1 || steps.size() != axes + 2)
    c.refuse("its window is not one of pixels");
  return window_of(c, of_window(c, "ksize", axes, {}));
}
Items max_pooled(const Call& c) {
  const Window w = pool_window(c);
  return {with_channels_last(c, 0, [&](const Tensor& x) { return interop::max_pool_last(x, w); })};
}
Items avg_pooled(const Call& c) {
  const Window w = pool_window(c);
  return {with_channels_last(c, 0, [&](const Tensor& x) { return interop::avg_pool_last(x, w); })};
}

// ---- normalisation -----------------------------------------------------------------------------

Items batch_normalised(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor &scale = c.tensor(1), &offset = c.tensor(2);
  const double epsilon = c.number("epsilon", 1e-4);
  Tensor mean_of = c.maybe(3), variance = c.maybe(4);
  if (c.integer("is_training", 1) != 0) {  // of this batch
    const int64_t channel = channels_first(c) ? 1 : x.rank() - 1;
    List axes;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != channel) axes.push_back(i);
    const Tensor wide = mean(x, IntArgs(axes), true);
    mean_of = reshape(wide, {-1});
    variance = reshape(mean(square(x - wide), IntArgs(axes), true), {-1});
  }
  if (!mean_of.defined() || !variance.defined()) c.refuse("it has no mean or no variance");
  const Tensor made = batch_norm(x, mean_of, variance, scale, offset, false, 0.9, epsilon,
                                 channels_first(c) ? "NCHW" : "NHWC");
  return {made, mean_of, variance, mean_of, variance, variance};
}

Items biased(const Call& c) {
  const Tensor& x = c.tensor(0);
  if (!channels_first(c) || x.rank() < 3) return {x + c.tensor(1)};
  std::vector<Dim> shape(static_cast<size_t>(x.rank()) - 1, 1);
  shape[0] = c.tensor(1).dim(0);
  return {x + reshape(c.tensor(1), shape)};
}

// Over 2 radius + 1 channels.
Items locally_normalised(const Call& c) {
  const auto size = 2 * c.integer("depth_radius", 5) + 1;
  if (size < 1 || size > 4096) c.refuse("its radius is impossible");
  return {local_response_norm(c.tensor(0), size, c.number("alpha", 1) * static_cast<double>(size),
                              c.number("beta", 0.5), c.number("bias", 1), "NHWC")};
}

// ---- products ----------------------------------------------------------------------------------

Items multiplied(const Call& c) { return {product(c, {})}; }
Items multiplied_batches(const Call& c) {
  return {matmul(c.tensor(0), c.tensor(1), c.flag("adj_x"), c.flag("adj_y"))};
}
Items einsum_of(const Call& c) { return {einsum(c.text("equation"), c.tensors())}; }

// ---- resizing ----------------------------------------------------------------------------------

Items resized(const Call& c, bool nearest) {
  const List sizes = c.integers(1);
  if (sizes.size() != 2) c.refuse("its sizes are not two");
  const Tensor& x = c.tensor(0);
  const bool counts = is_integral(x.dtype()) && !nearest;  // the result is of real numbers
  return {interop::resize_last(
      counts ? cast(x, DType::Float32) : x,
      {sizes[0], sizes[1], nearest, c.flag("align_corners"), c.flag("half_pixel_centers")})};
}
Items resized_bilinear(const Call& c) { return resized(c, false); }
Items resized_nearest(const Call& c) { return resized(c, true); }

Items depth_to_space(const Call& c) {
  return {with_channels_last(c, 0, [&](const Tensor& x) {
    return interop::depth_to_space_last(x, c.integer("block_size", 0));
  })};
}
Items space_to_depth(const Call& c) {
  return {with_channels_last(c, 0, [&](const Tensor& x) {
    return interop::space_to_depth_last(x, c.integer("block_size", 0));
  })};
}
Items space_to_batch(const Call& c) {
  return {interop::space_to_batch(c.tensor(0), c.integers(1), c.integers(2))};
}
Items batch_to_space(const Call& c) {
  return {interop::batch_to_space(c.tensor(0), c.integers(1), c.integers(2))};
}

constexpr char kNormalised[] =
    "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3";
constexpr Converter kConverters[] = {
    {"Conv2D", convolved},
    {"Conv3D", convolved},
    {"_FusedConv2D", fused_convolution},
    {"FusedConv2D", fused_convolution},
    {"DepthwiseConv2dNative", convolved_by_channel},
    {"FusedDepthwiseConv2dNative", fused_convolution_by_channel},
    {"_FusedDepthwiseConv2dNative", fused_convolution_by_channel},
    {"Conv2DBackpropInput", convolved_transposed},
    {"MaxPool", max_pooled},
    {"MaxPool3D", max_pooled},
    {"AvgPool", avg_pooled},
    {"AvgPool3D", avg_pooled},
    {"FusedBatchNorm", batch_normalised, Converter::Computes, kNormalised},
    {"FusedBatchNormV2", batch_normalised, Converter::Computes, kNormalised},
    {"FusedBatchNormV3", batch_normalised, Converter::Computes, kNormalised},
    {"BiasAdd", biased},
    {"BiasAddV1", biased},
    {"LRN", locally_normalised},
    {"MatMul", multiplied},
    {"_FusedMatMul", fused_product},
    {"FusedMatMul", fused_product},
    {"BatchMatMul", multiplied_batches},
    {"BatchMatMulV2", multiplied_batches},
    {"BatchMatMulV3", multiplied_batches},
    {"Einsum", einsum_of},
    {"ResizeBilinear", resized_bilinear},
    {"ResizeNearestNeighbor", resized_nearest},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"SpaceToBatchND", space_to_batch},
    {"BatchToSpaceND", batch_to_space},
};

}  // namespace

std::span<const Converter> network_converters() { return kConverters; }

}  // namespace oar::tensorflow
