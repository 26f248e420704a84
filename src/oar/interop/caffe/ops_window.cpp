// Layers with windows or weights: convolutions, pooling, products, normalisations.
#include <algorithm>

#include "oar/interop/caffe/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::caffe {
namespace {

using List = std::vector<int64_t>;

// `kernel_size: 3`, `kernel_size: 3 kernel_size: 5`, or `kernel_h: 3 kernel_w: 5`.
List by_axis(const Call& c, const TextMessage& p, const std::string& both, const std::string& one,
             int64_t otherwise, size_t axes) {
  if (axes == 2 && (p.has(one + "_h") || p.has(one + "_w")))
    return {p.integer(one + "_h", otherwise), p.integer(one + "_w", otherwise)};
  List given = p.integers(both);
  if (given.empty()) given = {otherwise};
  if (given.size() == 1) given.resize(axes, given[0]);
  if (given.size() != axes) c.refuse(format("its {} does not fit the input", both));
  return given;
}

struct Windows {
  List kernel, stride, pad, dilation;

  List padding() const {
    List both;
    for (const int64_t p : pad) both.insert(both.end(), {p, p});
    return both;
  }
};

Windows windows_of(const Call& c, const TextMessage& p) {
  if (c.bottom(0).rank() < 3) c.refuse("its input has no spatial axes");
  const auto axes = static_cast<size_t>(c.bottom(0).rank() - 2);
  Windows w{by_axis(c, p, "kernel_size", "kernel", 0, axes),
            by_axis(c, p, "stride", "stride", 1, axes), by_axis(c, p, "pad", "pad", 0, axes),
            by_axis(c, p, "dilation", "dilation", 1, axes)};
  const auto at_least = [](const List& list, int64_t least) {
    return std::all_of(list.begin(), list.end(),
                       [least](int64_t v) { return v >= least && v < (1 << 20); });
  };
  if (!at_least(w.stride, 1) || !at_least(w.pad, 0) || !at_least(w.dilation, 1))
    c.refuse("its windows have impossible sizes");
  return w;
}

// Files of the first version give every weight four axes.
Tensor as_bias(const Tensor& blob) { return reshape(blob, {-1}); }

Tensors convolved(const Call& c) {
  const TextMessage& p = c.params("convolution_param");
  const Windows w = windows_of(c, p);
  const Tensor bias = p.flag("bias_term", true) ? as_bias(c.blob(1)) : Tensor{};
  return {
      conv(c.bottom(0), c.blob(0), bias, w.stride, w.padding(), w.dilation, p.integer("group", 1))};
}

Tensors deconvolved(const Call& c) {
  const TextMessage& p = c.params("convolution_param");
  const Windows w = windows_of(c, p);
  if (w.kernel.size() != 2) c.refuse("it has other than two spatial axes");
  const Tensor bias = p.flag("bias_term", true) ? as_bias(c.blob(1)) : Tensor{};
  return {conv2d_transpose(c.bottom(0), c.blob(0), bias, w.stride, w.pad, {0, 0}, w.dilation,
                           p.integer("group", 1))};
}

// ---- pooling -----------------------------------------------------------------------------------

// Where windows end: Caffe rounds up, and drops a last window that begins in the padding.
struct Pooled {
  Windows windows;
  List sizes;    // of the result
  List padding;  // (before, after) for each axis
};

Pooled pooled_sizes(const Call& c, Windows w, bool rounds_up) {
  Pooled made{std::move(w), {}, {}};
  for (size_t i = 0; i < made.windows.kernel.size(); ++i) {
    const int64_t size = c.bottom(0).dim(static_cast<int64_t>(i) + 2).value();
    const int64_t k = made.windows.kernel[i], s = made.windows.stride[i], p = made.windows.pad[i];
    if (k < 1 || k > size + 2 * p || p >= k) c.refuse("its windows do not fit the input");
    const int64_t room = size + 2 * p - k;
    int64_t count = (rounds_up ? room + s - 1 : room) / s + 1;
    if (p > 0 && (count - 1) * s >= size + p) --count;
    made.sizes.push_back(count);
    made.padding.insert(made.padding.end(),
                        {p, std::max<int64_t>((count - 1) * s + k - size - p, 0)});
  }
  return made;
}

// How many elements each window has along an axis: those of the padding, too, but none beyond it.
Tensor shares_along(const Pooled& pooled, size_t axis, int64_t size, int64_t axes) {
  const Windows& w = pooled.windows;
  std::vector<float> shares;
  for (int64_t i = 0; i < pooled.sizes[axis]; ++i) {
    const int64_t begin = i * w.stride[axis] - w.pad[axis];
    const int64_t end = std::min(begin + w.kernel[axis], size + w.pad[axis]);
    shares.push_back(1.0F / static_cast<float>(end - begin));
  }
  std::vector<Dim> line(static_cast<size_t>(axes) + 2, 1);
  line[axis + 2] = pooled.sizes[axis];
  return reshape(Tensor::from_vector(shares, Shape{pooled.sizes[axis]}, DType::Float32), line);
}

Tensor averaged(const Tensor& x, const Pooled& pooled) {
  const Windows& w = pooled.windows;
  const auto axes = static_cast<int64_t>(w.kernel.size());
  Tensor made = avg_pool(x, w.kernel, w.stride, pooled.padding, false, false, 1.0);
  for (size_t i = 0; i < w.kernel.size(); ++i)
    made = made * shares_along(pooled, i, x.dim(static_cast<int64_t>(i) + 2).value(), axes);
  return made;
}

Tensors pooling(const Call& c) {
  const TextMessage& p = c.params("pooling_param");
  const Tensor& x = c.bottom(0);
  const std::string kind = p.text("pool", "MAX");
  const bool takes_max = kind == "MAX" || kind == "0";
  if (!takes_max && kind != "AVE" && kind != "1") c.refuse(format("it pools by '{}'", kind));
  if (p.flag("global_pooling", false)) {
    List inner;
    for (int64_t i = 2; i < x.rank(); ++i) inner.push_back(i);
    return {takes_max ? max(x, IntArgs(inner), true) : mean(x, IntArgs(inner), true)};
  }
  if (c.layer.tops.size() > 1) c.refuse("it has a second top");
  const std::string rounding = p.text("round_mode", "CEIL");
  const Pooled pooled = pooled_sizes(c, windows_of(c, p), rounding == "CEIL" || rounding == "0");
  if (!takes_max) return {averaged(x, pooled)};
  const Windows& w = pooled.windows;
  return {std::get<0>(max_pool(x, w.kernel, w.stride, pooled.padding, false))};
}

// ---- products and normalisations ---------------------------------------------------------------

Tensors inner_product(const Call& c) {
  const TextMessage& p = c.params("inner_product_param");
  const int64_t axis = c.axis(p.integer("axis", 1));
  const Tensor x = c.bottom(0).rank() > axis + 1 ? flatten(c.bottom(0), axis, -1) : c.bottom(0);
  const bool transposed = p.flag("transpose", false);
  const Tensor& blob = c.blob(0);
  const Dim inner = x.dim(-1);
  const Tensor weight = blob.rank() == 2 ? blob
                        : transposed     ? reshape(blob, {inner, -1})
                                         : reshape(blob, {-1, inner});
  const Tensor made = matmul(x, weight, false, !transposed);
  return {p.flag("bias_term", true) ? made + as_bias(c.blob(1)) : made};
}

// The mean of squares over a window inside of a channel.
Tensor within_channel(const Call& c, int64_t size) {
  if (c.bottom(0).rank() != 4) c.refuse("its input has other than four axes");
  const int64_t half = (size - 1) / 2;
  const Windows w{{size, size}, {1, 1}, {half, half}, {1, 1}};
  return averaged(square(c.bottom(0)), pooled_sizes(c, w, true));
}

Tensors local_response(const Call& c) {
  const TextMessage& p = c.params("lrn_param");
  const int64_t size = p.integer("local_size", 5);
  const double alpha = p.number("alpha", 1), beta = p.number("beta", 0.75), k = p.number("k", 1);
  if (size < 1 || size % 2 == 0) c.refuse("its local_size is not odd");
  const std::string region = p.text("norm_region", "ACROSS_CHANNELS");
  if (region == "ACROSS_CHANNELS" || region == "0")
    return {local_response_norm(c.bottom(0), size, alpha, beta, k)};
  const Tensor base = within_channel(c, size) * alpha + 1.0;
  return {c.bottom(0) * pow(base, Tensor::scalar(-beta, DType::Float32))};
}

// Read directly: an op would be captured.
std::vector<float> content_of(const Tensor& blob) {
  const auto* first = static_cast<const float*>(blob->data);
  return {first, first + blob.numel().value()};
}

Tensor multiplied(const Tensor& blob, double factor) {
  std::vector<float> values = content_of(blob);
  for (float& value : values) value = static_cast<float>(value * factor);
  return Tensor::from_vector(values, Shape{static_cast<int64_t>(values.size())}, DType::Float32);
}

// Mean and variance are sums; the third blob says of how many.
Tensors batch_normalised(const Call& c) {
  const TextMessage& p = c.params("batch_norm_param");
  if (!p.flag("use_global_stats", true)) c.refuse("it computes statistics of the batch");
  const std::vector<float> counts = content_of(c.blob(2));
  if (counts.size() != 1) c.refuse("its third blob is no number");
  const double factor = counts[0] == 0 ? 0 : 1 / static_cast<double>(counts[0]);
  return {batch_norm(c.bottom(0), multiplied(c.blob(0), factor), multiplied(c.blob(1), factor), {},
                     {}, false, 0.9, p.number("eps", 1e-5))};
}

// A factor with the shape of some axes of x, as one that broadcasts.
Tensor placed(const Call& c, const Tensor& x, const Tensor& factor, int64_t axis) {
  std::vector<Dim> shape(static_cast<size_t>(x.rank()), 1);
  if (axis + factor.rank() > x.rank()) c.refuse("its factor has too many axes");
  for (int64_t i = 0; i < factor.rank(); ++i) shape[static_cast<size_t>(axis + i)] = factor.dim(i);
  return reshape(factor, shape);
}

// Files of the first version give factors leading axes of one.
Tensor shaped_factor(const Tensor& blob, int64_t axes) {
  return axes == 1 ? reshape(blob, {-1}) : blob;
}

Tensors scaled(const Call& c) {
  const TextMessage& p = c.params("scale_param");
  const Tensor& x = c.bottom(0);
  const int64_t axis = c.axis(p.integer("axis", 1)), axes = p.integer("num_axes", 1);
  const bool given = c.count() > 1;
  const Tensor factor = given ? c.bottom(1) : shaped_factor(c.blob(0), axes);
  const Tensor made = x * placed(c, x, factor, axis);
  if (!p.flag("bias_term", false)) return {made};
  return {made + placed(c, x, shaped_factor(c.blob(given ? 0 : 1), factor.rank()), axis)};
}

Tensors biased(const Call& c) {
  const TextMessage& p = c.params("bias_param");
  const Tensor& x = c.bottom(0);
  const Tensor bias =
      c.count() > 1 ? c.bottom(1) : shaped_factor(c.blob(0), p.integer("num_axes", 1));
  return {x + placed(c, x, bias, c.axis(p.integer("axis", 1)))};
}

Tensors mean_variance(const Call& c) {
  const TextMessage& p = c.params("mvn_param");
  const Tensor& x = c.bottom(0);
  List axes;
  for (int64_t i = p.flag("across_channels", false) ? 1 : 2; i < x.rank(); ++i) axes.push_back(i);
  const Tensor centred = x - mean(x, IntArgs(axes), true);
  if (!p.flag("normalize_variance", true)) return {centred};
  const Tensor deviation = sqrt(mean(square(centred), IntArgs(axes), true));
  return {centred / (deviation + p.number("eps", 1e-9))};
}

// Of SSD: the length of each pixel, or of the whole, over the channels.
Tensors normalised(const Call& c) {
  const TextMessage& p = c.params("norm_param");
  const Tensor& x = c.bottom(0);
  List axes = {1};
  if (p.flag("across_spatial", true))
    for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Tensor length =
      sqrt(sum(square(x), IntArgs(axes), std::nullopt, true) + p.number("eps", 1e-10));
  return {x / length * placed(c, x, as_bias(c.blob(0)), 1)};
}

constexpr Converter kConverters[] = {
    {"Convolution", convolved}, {"Deconvolution", deconvolved},
    {"Pooling", pooling},       {"InnerProduct", inner_product},
    {"LRN", local_response},    {"BatchNorm", batch_normalised},
    {"Scale", scaled},          {"Bias", biased},
    {"MVN", mean_variance},     {"Normalize", normalised},
};

}  // namespace

std::span<const Converter> window_converters() { return kConverters; }

}  // namespace oar::caffe
