// Convolutions and pooling over one to three axes.
#include <algorithm>

#include "oar/interop/keras/call.h"
#include "oar/interop/tensorflow_math.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

using interop::Window;
using List = std::vector<int64_t>;

Tensor channels_to_end(const Tensor& x) { return moveaxis(x, {1}, {-1}); }
Tensor channels_to_front(const Tensor& x) { return moveaxis(x, {-1}, {1}); }

size_t axes_of(const Call& c, const Tensor& x) {
  if (x.rank() < 3 || x.rank() > 5) c.refuse(format("its input has {} axes", x.rank()));
  return static_cast<size_t>(x.rank() - 2);
}

// A function of an image with its channels last, whatever the order of the layer.
template <class F>
Items with_channels_last(const Call& c, F&& function) {
  if (!c.channels_first()) return {function(c.tensor())};
  return {channels_to_front(function(channels_to_end(c.tensor())))};
}

// One axis more, for functions of images.
template <class F>
Tensor as_image(const Tensor& x, Window& w, F&& function) {
  if (w.kernel.size() > 1) return function(x, w);
  for (List* list : {&w.kernel, &w.stride, &w.dilation}) list->insert(list->begin(), 1);
  if (!w.padding.empty()) w.padding.insert(w.padding.begin(), 2, 0);
  return squeeze(function(unsqueeze(x, {1}), w), IntArgs({1}));
}

Window window_of(const Call& c, List kernel) {
  const size_t axes = kernel.size();
  Window w{std::move(kernel), c.list("strides", axes, 1), c.list("dilation_rate", axes, 1)};
  for (const List& list : {w.kernel, w.stride, w.dilation})
    for (const int64_t v : list)
      if (v < 1 || v > (1 << 20)) c.refuse(format("a window of it has the size {}", v));
  const std::string padding = c.text("padding", "valid");
  w.same = padding == "same";
  if (padding == "causal") {
    if (axes != 1) c.refuse("only one axis can be causal");
    w.padding = {(w.kernel[0] - 1) * w.dilation[0], 0};
  } else if (padding != "same" && padding != "valid") {
    c.refuse(format("its padding is '{}'", padding));
  }
  return w;
}

// The kernel's own sizes, which come before its channels.
List sizes_of(const Tensor& kernel, size_t axes) {
  List sizes;
  for (size_t i = 0; i < axes; ++i) sizes.push_back(kernel.dim(static_cast<int64_t>(i)).value());
  return sizes;
}

// Axes of a kernel: the channels first, in this order.
List channels_before(size_t axes, List channels) {
  for (size_t i = 0; i < axes; ++i) channels.push_back(static_cast<int64_t>(i));
  return channels;
}

Tensor convolve(const Call& c, const Tensor& x, const Tensor& kernel, const Tensor& bias, Window w,
                int64_t groups) {
  const auto run = [&](const Tensor& image, const Window& window) {
    const Tensor filter = kernel.rank() == image.rank() ? kernel : unsqueeze(kernel, {2});
    return interop::convolve_last(image, filter, bias, window, groups);
  };
  if (groups < 1) c.refuse(format("it has {} groups", groups));
  return as_image(x, w, run);
}

Items convolution(const Call& c) {
  const size_t axes = axes_of(c, c.tensor());
  const Tensor kernel = c.weight("kernel");
  const Tensor bias = c.flag("use_bias", true) ? c.weight("bias") : Tensor{};
  const auto in = static_cast<int64_t>(axes);
  const Tensor filter = c.turned(kernel, channels_before(axes, {in + 1, in}));
  return with_channels_last(c, [&](const Tensor& x) {
    return activated(c, convolve(c, x, filter, bias, window_of(c, sizes_of(kernel, axes)),
                                 c.integer("groups", 1)));
  });
}

// Each channel has filters of its own: [size…, channels, multiplier], as channels * multiplier filters of one channel.
Tensor own_filters(const Call& c, const Tensor& kernel, size_t axes) {
  const auto in = static_cast<int64_t>(axes);
  const Tensor turned = c.turned(kernel, channels_before(axes, {in, in + 1}));
  std::vector<Dim> shape{turned.dim(0) * turned.dim(1), 1};
  for (size_t i = 0; i < axes; ++i) shape.push_back(turned.dim(static_cast<int64_t>(i) + 2));
  return reshape(turned, shape);
}

Items depthwise(const Call& c) {
  const size_t axes = axes_of(c, c.tensor());
  const Tensor kernel = c.weight(c.layer.version < 3 ? "depthwise_kernel" : "kernel");
  const Tensor bias = c.flag("use_bias", true) ? c.weight("bias") : Tensor{};
  const Tensor filter = own_filters(c, kernel, axes);
  return with_channels_last(c, [&](const Tensor& x) {
    return activated(c, convolve(c, x, filter, bias, window_of(c, sizes_of(kernel, axes)),
                                 kernel.dim(static_cast<int64_t>(axes)).value()));
  });
}

Items separable(const Call& c) {
  const size_t axes = axes_of(c, c.tensor());
  const auto in = static_cast<int64_t>(axes);
  const Tensor kernel = c.weight("depthwise_kernel"), points = c.weight("pointwise_kernel");
  const Tensor bias = c.flag("use_bias", true) ? c.weight("bias") : Tensor{};
  const Tensor filter = own_filters(c, kernel, axes);
  const Tensor pointwise = c.turned(points, channels_before(axes, {in + 1, in}));
  return with_channels_last(c, [&](const Tensor& x) {
    const Tensor first =
        convolve(c, x, filter, {}, window_of(c, sizes_of(kernel, axes)), kernel.dim(in).value());
    const List ones(axes, 1);
    return activated(c, convolve(c, first, pointwise, bias, {ones, ones, ones}, 1));
  });
}

// ---- transposed --------------------------------------------------------------------------------

Tensor transposed_convolution(const Tensor& x, const Tensor& filter, const Window& w) {
  const List zeros(w.kernel.size(), 0);
  if (w.kernel.size() == 1)
    return conv1d_transpose(x, filter, {}, w.stride, zeros, zeros, 1, w.dilation);
  if (w.kernel.size() == 2)
    return conv2d_transpose(x, filter, {}, w.stride, zeros, zeros, w.dilation);
  return conv3d_transpose(x, filter, {}, w.stride, zeros, zeros, 1, w.dilation);
}

// Where the result begins in the whole one, and how long it is.
struct Part {
  int64_t begin, size;
};
Part part_of(const Call& c, int64_t size, const Window& w, size_t axis, const List& more) {
  const int64_t reach = (w.kernel[axis] - 1) * w.dilation[axis] + 1, stride = w.stride[axis];
  if (more.empty()) {
    if (!w.same) return {0, size * stride + std::max<int64_t>(reach - stride, 0)};
    return {std::max<int64_t>(reach - stride, 0) / 2, size * stride};
  }
  const int64_t before = w.same ? reach / 2 : 0;
  const int64_t wanted = (size - 1) * stride + reach - 2 * before + more[axis];
  if (wanted < 1) c.refuse("its result is empty");
  return {w.same ? std::max<int64_t>((size - 1) * stride + reach - wanted, 0) / 2 : 0, wanted};
}

Items transposed(const Call& c) {
  const size_t axes = axes_of(c, c.tensor());
  const auto in = static_cast<int64_t>(axes);
  const Tensor kernel = c.weight("kernel");  // [size…, out, in]
  const Tensor bias = c.flag("use_bias", true) ? c.weight("bias") : Tensor{};
  const Window w = window_of(c, sizes_of(kernel, axes));
  const List more = c.has("output_padding") ? c.list("output_padding", axes, 0) : List{};
  for (const int64_t v : more)
    if (v < 0 || v > (1 << 20)) c.refuse(format("its output_padding is {}", v));
  const Tensor filter = c.turned(kernel, channels_before(axes, {in + 1, in}));
  Tensor x = c.channels_first() ? c.tensor() : channels_to_front(c.tensor());
  Tensor y = transposed_convolution(x, filter, w);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2;
    const Part part = part_of(c, x.dim(axis).value(), w, i, more);
    const int64_t whole = y.dim(axis).value();
    if (part.begin + part.size > whole) {  // a border that no window reaches
      List grown(2 * static_cast<size_t>(y.rank()), 0);
      grown[static_cast<size_t>(2 * axis + 1)] = part.begin + part.size - whole;
      y = pad_constant(y, grown, 0.0);
    }
    y = slice(y, {axis}, {part.begin}, {part.begin + part.size});
  }
  y = channels_to_end(y);
  if (bias.defined()) y = y + bias;
  y = activated(c, y);
  return {c.channels_first() ? channels_to_front(y) : y};
}

// ---- pooling -----------------------------------------------------------------------------------

Items pooled(const Call& c, Tensor (*pool)(const Tensor&, const Window&)) {
  const size_t axes = axes_of(c, c.tensor());
  const List size = c.list(c.has("pool_length") ? "pool_length" : "pool_size", axes, 2);
  Window w{size, c.has("strides") ? c.list("strides", axes, 1) : size, List(axes, 1)};
  w.same = c.text("padding", "valid") == "same";
  return with_channels_last(c, [&](const Tensor& x) {
    Window own = w;
    return as_image(x, own,
                    [&](const Tensor& image, const Window& window) { return pool(image, window); });
  });
}
Items max_pooled(const Call& c) { return pooled(c, interop::max_pool_last); }
Items average_pooled(const Call& c) { return pooled(c, interop::avg_pool_last); }

List inner_axes(const Call& c) {
  List axes;
  const int64_t first = c.channels_first() ? 2 : 1;
  for (size_t i = 0; i < axes_of(c, c.tensor()); ++i)
    axes.push_back(first + static_cast<int64_t>(i));
  return axes;
}

Items global_average(const Call& c) {
  const Tensor &x = c.tensor(), &mask = c.item().mask;
  const bool keep = c.flag("keepdims", false);
  const List axes = inner_axes(c);
  if (!mask.defined() || axes.size() != 1) return {mean(x, IntArgs(axes), keep)};
  const Tensor counts = unsqueeze(cast(mask, x.dtype()), {axes[0] == 1 ? 2 : 1});
  return {sum(x * counts, IntArgs(axes), std::nullopt, keep) /
          sum(counts, IntArgs(axes), std::nullopt, keep)};
}
Items global_max(const Call& c) {
  return {max(c.tensor(), IntArgs(inner_axes(c)), c.flag("keepdims", false))};
}

constexpr Converter kConverters[] = {
    {"Conv1D", convolution},
    {"Conv2D", convolution},
    {"Conv3D", convolution},
    {"Convolution1D", convolution},
    {"Convolution2D", convolution},
    {"Convolution3D", convolution},
    {"DepthwiseConv1D", depthwise},
    {"DepthwiseConv2D", depthwise},
    {"SeparableConv1D", separable},
    {"SeparableConv2D", separable},
    {"SeparableConvolution1D", separable},
    {"SeparableConvolution2D", separable},
    {"Conv1DTranspose", transposed},
    {"Conv2DTranspose", transposed},
    {"Conv3DTranspose", transposed},
    {"Convolution2DTranspose", transposed},
    {"MaxPooling1D", max_pooled},
    {"MaxPooling2D", max_pooled},
    {"MaxPooling3D", max_pooled},
    {"AveragePooling1D", average_pooled},
    {"AveragePooling2D", average_pooled},
    {"AveragePooling3D", average_pooled},
    {"GlobalAveragePooling1D", global_average},
    {"GlobalAveragePooling2D", global_average},
    {"GlobalAveragePooling3D", global_average},
    {"GlobalMaxPooling1D", global_max},
    {"GlobalMaxPooling2D", global_max},
    {"GlobalMaxPooling3D", global_max},
};

}  // namespace

std::span<const Converter> window_converters() { return kConverters; }

}  // namespace oar::keras
