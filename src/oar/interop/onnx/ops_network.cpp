// Convolutions, pooling, normalisations by channel.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

using List = std::vector<int64_t>;

// What windows of a convolution or a pooling have in common, for each spatial axis.
struct Windows {
  List kernel, stride, dilation;
  std::vector<Dim> before, after;

  std::vector<Dim> padding() const {  // (before, after) for each axis
    std::vector<Dim> both;
    for (size_t i = 0; i < before.size(); ++i) both.insert(both.end(), {before[i], after[i]});
    return both;
  }
};

Windows windows_of(const Call& c, List kernel) {
  const auto axes = kernel.size();
  if (static_cast<int>(axes) + 2 != c.tensor(0).rank())
    c.refuse("the kernel does not fit the input");
  Windows w{std::move(kernel),
            c.list("strides", List(axes, 1)),
            c.list("dilations", List(axes, 1)),
            {},
            {}};
  const List pads = c.list("pads", List(2 * axes, 0));
  if (w.stride.size() != axes || w.dilation.size() != axes || pads.size() != 2 * axes)
    c.refuse("strides, dilations and pads do not fit the kernel");
  const std::string automatic = c.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < axes; ++i) {
    if (!automatic.starts_with("SAME")) {
      w.before.push_back(automatic == "VALID" ? 0 : pads[i]);
      w.after.push_back(automatic == "VALID" ? 0 : pads[axes + i]);
      continue;
    }
    const Dim size = c.tensor(0).dim(static_cast<int64_t>(i) + 2);
    const Dim reach =
        (ceil_div(size, w.stride[i]) - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    const Dim total = max_of(reach - size, 0), half = floor_div(total, 2);
    w.before.push_back(automatic == "SAME_UPPER" ? half : total - half);
    w.after.push_back(automatic == "SAME_UPPER" ? total - half : half);
  }
  return w;
}

List spatial_of(const Tensor& weight) {
  List sizes;
  for (int64_t i = 2; i < weight.rank(); ++i) sizes.push_back(weight.dim(i).value());
  return sizes;
}

Values convolve(const Call& c) {
  const Windows w = windows_of(c, c.list("kernel_shape", spatial_of(c.tensor(1))));
  return {conv(c.tensor(0), c.tensor(1), c.maybe(2), w.stride, w.padding(), w.dilation,
               c.integer("group", 1))};
}

// The whole result of the transposed convolution, then what the pads leave of it.
Values convolve_transposed(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List kernel = c.list("kernel_shape", spatial_of(c.tensor(1)));
  const size_t axes = kernel.size();
  const List stride = c.list("strides", List(axes, 1)),
             dilation = c.list("dilations", List(axes, 1));
  List pads = c.list("pads", List(2 * axes, 0)), extra = c.list("output_padding", List(axes, 0));
  const List wanted = c.list("output_shape");
  const std::string automatic = c.text("auto_pad", "NOTSET");
  if (static_cast<int>(axes) + 2 != x.rank() || stride.size() != axes || dilation.size() != axes ||
      pads.size() != 2 * axes || extra.size() != axes)
    c.refuse("strides, dilations and pads do not fit the kernel");
  for (size_t i = 0; i < axes; ++i) {
    if (wanted.empty() && !automatic.starts_with("SAME")) continue;
    const int64_t size = x.dim(static_cast<int64_t>(i) + 2).value();
    const int64_t full = stride[i] * (size - 1) + extra[i] + (kernel[i] - 1) * dilation[i] + 1;
    const int64_t target = wanted.empty() ? size * stride[i] : wanted.at(wanted.size() - axes + i);
    const int64_t total = full - target, half = total / 2;
    if (total < 0) extra[i] -= total;
    pads[i] = total < 0 ? 0 : automatic == "SAME_UPPER" ? half : total - half;
    pads[axes + i] = total < 0 ? 0 : total - pads[i];
  }
  const int64_t groups = c.integer("group", 1);
  const List none(axes, 0);
  Tensor made;
  if (axes == 1)
    made = conv1d_transpose(x, c.tensor(1), c.maybe(2), stride, none, none, groups, dilation);
  else if (axes == 2)
    made = conv2d_transpose(x, c.tensor(1), c.maybe(2), stride, none, none, dilation, groups);
  else
    made = conv3d_transpose(x, c.tensor(1), c.maybe(2), stride, none, none, groups, dilation);
  // A border that an output_padding adds holds the bias alone.
  bool grows = false;
  List cut_axes, starts, ends, grown(4);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t end = extra[i] - pads[axes + i];
    const auto axis = static_cast<int64_t>(i) + 2;
    cut_axes.push_back(axis);
    starts.push_back(pads[i]);
    ends.push_back(end < 0 ? end : std::numeric_limits<int64_t>::max());
    grown.insert(grown.end(), {0, std::max<int64_t>(end, 0)});
    grows |= end > 0;
  }
  made = slice(made, cut_axes, starts, ends);
  if (!grows) return {made};
  if (!c.has(2)) return {pad_constant(made, grown, 0.0)};
  std::vector<Dim> channel(static_cast<size_t>(x.rank()), 1);
  channel[1] = -1;
  const Tensor bias = reshape(c.tensor(2), channel);
  return {pad_constant(made - bias, grown, 0.0) + bias};
}

// Positions of the windows along an axis. ceil_mode adds one that begins before the end.
int64_t positions(const Call& c, const Windows& w, size_t i) {
  const int64_t size = c.tensor(0).dim(static_cast<int64_t>(i) + 2).value();
  const int64_t before = w.before[i].value(), all = size + before + w.after[i].value();
  const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1, free = all - reach;
  if (free < 0) c.refuse("a window is larger than the image");
  if (!c.flag("ceil_mode")) return free / w.stride[i] + 1;
  const int64_t count = (free + w.stride[i] - 1) / w.stride[i] + 1;
  return (count - 1) * w.stride[i] >= size + before ? count - 1 : count;
}

// A function of the elements of each window, one element after the other: for windows that Oar's own ops do not have.
template <class Fold>
Tensor over_windows(const Call& c, const Windows& w, const Tensor& x, double outside, Fold fold) {
  const size_t axes = w.kernel.size();
  List pads(4), counts, spatial;
  int64_t elements = 1;
  for (size_t i = 0; i < axes; ++i) {
    counts.push_back(positions(c, w, i));
    spatial.push_back(static_cast<int64_t>(i) + 2);
    const int64_t reach = (counts[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    const int64_t before = w.before[i].value();
    const int64_t have = x.dim(spatial[i]).value() + before;
    pads.insert(pads.end(), {before, std::max<int64_t>(reach - have, 0)});
    elements *= w.kernel[i];
  }
  if (elements > 4096) c.refuse("its windows have more than 4096 elements");
  const Tensor padded = pad_constant(x, pads, outside);
  Tensor made;
  for (int64_t k = 0; k < elements; ++k) {
    List starts(axes), ends(axes);
    int64_t rest = k;
    for (size_t i = axes; i-- > 0;) {
      starts[i] = (rest % w.kernel[i]) * w.dilation[i];
      ends[i] = starts[i] + (counts[i] - 1) * w.stride[i] + 1;
      rest /= w.kernel[i];
    }
    const Tensor part = strided_slice(padded, spatial, starts, ends, w.stride);
    made = made.defined() ? fold(made, part) : part;
  }
  return made;
}
bool is_dilated(const Windows& w) {
  return std::any_of(w.dilation.begin(), w.dilation.end(), [](int64_t d) { return d != 1; });
}
// What ceil_mode added in the padding alone is cut off.
Tensor without_last(const Call& c, const Windows& w, const Tensor& made) {
  if (!c.flag("ceil_mode") || !c.tensor(0).shape().is_known()) return made;
  List axes, starts, ends;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    axes.push_back(static_cast<int64_t>(i) + 2);
    starts.push_back(0);
    ends.push_back(positions(c, w, i));
  }
  return slice(made, axes, starts, ends);
}
Values lp_pooled(const Call& c) {
  const Windows w = windows_of(c, c.list("kernel_shape"));
  const double p = static_cast<double>(c.integer("p", 2));
  const Tensor& x = c.tensor(0);
  const Tensor powers = pow(abs(x), full({}, p, x.dtype()));
  return {pow(over_windows(c, w, powers, 0, add), full({}, 1 / p, x.dtype()))};
}
Values max_pooled(const Call& c) {
  const Windows w = windows_of(c, c.list("kernel_shape"));
  const Tensor& x = c.tensor(0);
  if (is_dilated(w)) {
    if (c.node.outputs.size() > 1) c.refuse("its windows are dilated, and it gives their places");
    const bool small = is_integral(x.dtype());
    const double least = !small                      ? -std::numeric_limits<double>::infinity()
                         : x.dtype() == DType::UInt8 ? 0
                                                     : -128;
    return {over_windows(c, w, x, least, maximum)};
  }
  const bool by_columns = c.integer("storage_order", 0) != 0;
  if (by_columns && c.node.outputs.size() > 1 && x.rank() != 4)
    c.refuse("its indices are in column order, and it is no image");
  const auto [best, places] = max_pool(x, w.kernel, w.stride, w.padding(), c.flag("ceil_mode"));
  if (c.node.outputs.size() < 2) return {without_last(c, w, best)};
  // ONNX counts the elements of the whole tensor, Oar those of one plane.
  Dim plane = 1;
  for (int64_t i = 2; i < x.rank(); ++i) plane = plane * x.dim(i);
  std::vector<Dim> planes(static_cast<size_t>(x.rank()), 1);
  planes[0] = x.dim(0);
  planes[1] = x.dim(1);
  const Dim count = x.dim(0) * x.dim(1);
  const Tensor firsts =
      reshape(range(0, count.value(), 1, DType::Int64) * product_of({plane}, DType::Int64), planes);
  Tensor inside = cast(places, DType::Int64);
  if (by_columns) {
    const Tensor height = product_of({x.dim(2)}, DType::Int64),
                 width = product_of({x.dim(3)}, DType::Int64);
    inside = remainder(inside, width) * height + floor_divide(inside, width);
  }
  return {without_last(c, w, best), without_last(c, w, inside + firsts)};
}
Values avg_pooled(const Call& c) {
  const Windows w = windows_of(c, c.list("kernel_shape"));
  const Tensor& x = c.tensor(0);
  if (is_dilated(w)) {
    const bool counts_pads = c.flag("count_include_pad");
    const Tensor total = over_windows(c, w, x, 0, add);
    Windows inner = w;
    Tensor one = ones_like(x);
    if (counts_pads) {  // the padding counts, what ceil_mode adds beyond it does not
      List pads(4);
      for (size_t i = 0; i < w.kernel.size(); ++i)
        pads.insert(pads.end(), {w.before[i].value(), w.after[i].value()});
      one = pad_constant(one, pads, 1.0);
      inner.before.assign(w.kernel.size(), 0);
    }
    return {total / over_windows(c, inner, one, 0, add)};
  }
  return {without_last(c, w,
                       avg_pool(x, w.kernel, w.stride, w.padding(), c.flag("ceil_mode"),
                                !c.flag("count_include_pad")))};
}
List inner_axes(const Tensor& x) {
  List axes;
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}
Values global_avg(const Call& c) {
  return {mean(c.tensor(0), IntArgs(inner_axes(c.tensor(0))), true)};
}
Values global_max(const Call& c) {
  return {max(c.tensor(0), IntArgs(inner_axes(c.tensor(0))), true)};
}

// By the statistics of the batch, and the running ones after it.
Values batch_normalise_training(const Call& c) {
  const Tensor& x = c.tensor(0);
  const double momentum = c.number("momentum", 0.9);
  List axes{0}, line(static_cast<size_t>(x.rank()), 1);
  for (int64_t i = 2; i < x.rank(); ++i) axes.push_back(i);
  line[1] = x.dim(1).value();
  const std::vector<Dim> channel(line.begin(), line.end());
  const Tensor middle = mean(x, IntArgs(axes), false), spread = var(x, IntArgs(axes), false, false);
  const Tensor scaled =
      (x - reshape(middle, channel)) * rsqrt(reshape(spread, channel) + c.number("epsilon", 1e-5));
  return {scaled * reshape(c.tensor(1), channel) + reshape(c.tensor(2), channel),
          c.tensor(3) * momentum + middle * (1 - momentum),
          c.tensor(4) * momentum + spread * (1 - momentum)};
}
Values batch_normalise(const Call& c) {
  if (c.flag("training_mode")) return batch_normalise_training(c);
  return {batch_norm(c.tensor(0), c.tensor(3), c.tensor(4), c.tensor(1), c.tensor(2), false, 0.9,
                     c.number("epsilon", 1e-5))};
}
Values instance_normalise(const Call& c) {
  return {instance_norm(c.tensor(0), {}, {}, c.tensor(1), c.tensor(2), true, 0.9,
                        c.number("epsilon", 1e-5))};
}
// Before version 21 scale and bias are those of a group.
Values group_normalise(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t groups = c.integer("num_groups", 1);
  Tensor scale = c.tensor(1), bias = c.tensor(2);
  if (c.opset < 21) {
    const int64_t each = x.dim(1).value() / groups;
    scale = repeat_interleave(scale, each, 0);
    bias = repeat_interleave(bias, each, 0);
  }
  return {group_norm(x, groups, c.number("epsilon", 1e-5), scale, bias)};
}
Values local_response(const Call& c) {
  return {local_response_norm(c.tensor(0), c.integer("size", 1), c.number("alpha", 1e-4),
                              c.number("beta", 0.75), c.number("bias", 1))};
}

constexpr Converter kConverters[] = {
    {"Conv", convolve},
    {"ConvTranspose", convolve_transposed},
    {"MaxPool", max_pooled},
    {"AveragePool", avg_pooled},
    {"LpPool", lp_pooled},
    {"GlobalAveragePool", global_avg},
    {"GlobalMaxPool", global_max},
    {"BatchNormalization", batch_normalise},
    {"InstanceNormalization", instance_normalise},
    {"GroupNormalization", group_normalise},
    {"LRN", local_response},
};

}  // namespace

std::span<const Converter> network_converters() { return kConverters; }

}  // namespace oar::onnx
