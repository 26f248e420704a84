// Convolutions, pooling, normalisations, dropout.
#include <cmath>

#include "oar/base/error.h"
#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

// ---- convolutions ------------------------------------------------------------------------------

struct Window {
  List stride, padding, dilation;
};

// Images without a batch have one axis less.
struct Batched {
  Tensor x;
  bool added = false;

  Batched(const Tensor& given, size_t spatial)
      : x(given), added(static_cast<size_t>(given.rank()) == spatial + 1) {
    if (added) x = unsqueeze(given, {0});
  }
  Tensor like_given(const Tensor& made) const { return added ? squeeze(made, IntArgs({0})) : made; }
};

Tensor convolved_with(const Call& c, const Tensor& x, const Window& w, int64_t groups) {
  const Tensor& weight = c.tensor("weight");
  const auto op = weight.rank() == 3 ? conv1d : weight.rank() == 4 ? conv2d : conv3d;
  const char* layout = weight.rank() == 3 ? "NCL" : weight.rank() == 4 ? "NCHW" : "NCDHW";
  return op(x, weight, c.maybe("bias"), w.stride, w.padding, w.dilation, groups, layout,
            "EXPLICIT");
}

// Padding "same" is larger at the end if it is odd.
List same_padding(const Tensor& weight, const List& dilation, Tensor& x) {
  List padding, edges(2 * static_cast<size_t>(x.rank()), 0);
  bool uneven = false;
  for (size_t i = 0; i < dilation.size(); ++i) {
    const int64_t all = dilation[i] * (weight.dim(static_cast<int64_t>(i) + 2).value() - 1);
    padding.push_back(all / 2);
    edges[2 * (i + 2) + 1] = all % 2;
    uneven = uneven || all % 2 != 0;
  }
  if (uneven) x = pad_constant(x, edges, Scalar(0.0));
  return padding;
}

Value convolved(const Call& c) {
  const Tensor& weight = c.tensor("weight");
  const auto spatial = static_cast<size_t>(std::max(weight.rank() - 2, 1));
  const Batched input(c.tensor("input"), spatial);
  Window w{c.list("stride", spatial), {}, c.list("dilation", spatial)};
  Tensor x = input.x;
  if (c.value("padding").kind != Value::Text)
    w.padding = c.list("padding", spatial);
  else if (c.text("padding") == "same")
    w.padding = same_padding(weight, w.dilation, x);
  else
    w.padding = List(spatial, 0);
  return input.like_given(convolved_with(c, x, w, c.integer("groups")));
}

Tensor transposed_with(const Call& c, size_t spatial) {
  const Batched input(c.tensor("input"), spatial);
  const Tensor& weight = c.tensor("weight");
  const List stride = c.list("stride", spatial), padding = c.list("padding", spatial),
             extra = c.list("output_padding", spatial), dilation = c.list("dilation", spatial);
  const int64_t groups = c.integer("groups");
  const Tensor bias = c.maybe("bias");
  const auto none = std::nullopt;
  const Tensor made =
      spatial == 1
          ? conv1d_transpose(input.x, weight, bias, stride, padding, extra, groups, dilation, none)
      : spatial == 2
          ? conv2d_transpose(input.x, weight, bias, stride, padding, extra, dilation, groups, none)
          : conv3d_transpose(input.x, weight, bias, stride, padding, extra, groups, dilation, none);
  return input.like_given(made);
}
Value convolved_transposed(const Call& c) {
  return transposed_with(c, static_cast<size_t>(std::max(c.tensor("weight").rank() - 2, 1)));
}
Value core_convolved(const Call& c) {
  return c.flag("transposed") ? convolved_transposed(c) : convolved(c);
}

// ---- pooling -----------------------------------------------------------------------------------

// max_pool2d has two.
size_t spatial_of(const Call& c) {
  for (size_t axes = 1; axes <= 3; ++axes)
    if (c.op.find(format("{}d", axes)) != std::string::npos) return axes;
  fail(ErrorKind::Internal, "{} has no number of axes in its name.", c.op);
}

struct Pool {
  size_t spatial;
  Batched input;
  List kernel, stride, padding;

  explicit Pool(const Call& c)
      : spatial(spatial_of(c)),
        input(c.tensor("self"), spatial),
        kernel(c.list("kernel_size", spatial)),
        stride(c.list("stride").empty() ? kernel : c.list("stride", spatial)),
        padding(c.list("padding", spatial)) {}
};

const char* layout_of(size_t spatial) {
  return spatial == 1 ? "NCL" : spatial == 2 ? "NCHW" : "NCDHW";
}

// Windows with gaps: the elements of each as a new last axis.
Tensor spread_windows(const Call& c, const Pool& p, const List& dilation) {
  if (c.flag("ceil_mode")) c.refuse("its windows have gaps and its size is rounded up");
  Tensor x = p.input.x;
  List edges(2 * static_cast<size_t>(x.rank()), 0);
  for (size_t i = 0; i < p.spatial; ++i) edges[2 * (i + 2)] = edges[2 * (i + 2) + 1] = p.padding[i];
  x = pad_constant(x, edges, Scalar(-INFINITY));
  for (size_t i = 0; i < p.spatial; ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2, reach = dilation[i] * (p.kernel[i] - 1) + 1;
    const int64_t count = (x.dim(axis).value() - reach) / p.stride[i] + 1;
    Tensor largest;
    for (int64_t k = 0; k < p.kernel[i]; ++k) {
      const int64_t from = k * dilation[i], to = from + (count - 1) * p.stride[i] + 1;
      const Tensor part = strided_slice(x, {axis}, {from}, {to}, {p.stride[i]});
      largest = largest.defined() ? maximum(largest, part) : part;
    }
    x = largest;
  }
  return x;
}

Value largest_in_windows(const Call& c) {
  const Pool p(c);
  const List dilation = c.list("dilation", p.spatial);
  Tensor made;
  if (dilation != List(p.spatial, 1)) {
    made = spread_windows(c, p, dilation);
  } else {
    const auto op = p.spatial == 1 ? max_pool1d : p.spatial == 2 ? max_pool2d : max_pool3d;
    made = op(p.input.x, p.kernel, IntArgs(p.stride), p.padding, c.flag("ceil_mode"),
              layout_of(p.spatial), "EXPLICIT");
  }
  return p.input.like_given(made);
}
Value largest_and_places(const Call& c) {
  const Pool p(c);
  if (c.list("dilation", p.spatial) != List(p.spatial, 1)) c.refuse("its windows have gaps");
  const auto [made, places] = max_pool_with_mask(p.input.x, p.kernel, IntArgs(p.stride), p.padding,
                                                 c.flag("ceil_mode"), layout_of(p.spatial));
  return c.tuple({p.input.like_given(made), cast(p.input.like_given(places), DType::Int64)});
}
Value mean_of_windows(const Call& c) {
  const Pool p(c);
  std::optional<double> divisor;
  if (c.takes("divisor_override") && c.has("divisor_override"))
    divisor = c.number("divisor_override");
  const auto op = p.spatial == 1 ? avg_pool1d : p.spatial == 2 ? avg_pool2d : avg_pool3d;
  return p.input.like_given(op(p.input.x, p.kernel, IntArgs(p.stride), p.padding,
                               c.flag("ceil_mode"), !c.flag("count_include_pad"), divisor,
                               layout_of(p.spatial), "EXPLICIT"));
}

// A size that is left open is that of the input.
std::vector<Dim> adaptive_size(const Call& c, const Tensor& x, size_t spatial) {
  const Value& given = c.value("output_size");
  std::vector<Dim> size;
  for (size_t i = 0; i < spatial; ++i) {
    const bool open = given.is_none() || (given.is_list() && i < given.box->items.size() &&
                                          given.box->items[i].is_none());
    if (open)
      size.push_back(x.dim(static_cast<int64_t>(i) + 2));
    else
      size.emplace_back(given.is_list() && given.box->items.size() == spatial &&
                                given.box->items[i].kind == Value::Int
                            ? given.box->items[i].integer
                            : c.list("output_size", spatial)[i]);
  }
  return size;
}
List axes_of(size_t spatial) {
  List axes;
  for (size_t i = 0; i < spatial; ++i) axes.push_back(static_cast<int64_t>(i) + 2);
  return axes;
}
bool is_one_cell(const std::vector<Dim>& size) {
  for (const Dim d : size)
    if (!(d == Dim(1))) return false;
  return true;
}
Value mean_of_cells(const Call& c) {
  const size_t spatial = spatial_of(c);
  const Batched input(c.tensor("self"), spatial);
  const std::vector<Dim> size = adaptive_size(c, input.x, spatial);
  const List axes = axes_of(spatial);
  return input.like_given(is_one_cell(size) ? mean(input.x, IntArgs(axes), true)
                                            : adaptive_avg_pool(input.x, size));
}
Value largest_of_cells(const Call& c) {
  const size_t spatial = spatial_of(c);
  const Batched input(c.tensor("self"), spatial);
  const auto [made, places] = adaptive_max_pool(input.x, adaptive_size(c, input.x, spatial));
  return c.tuple({input.like_given(made), cast(input.like_given(places), DType::Int64)});
}

// ---- normalisations ----------------------------------------------------------------------------

Tensor batch_normalised_with(const Call& c, const char* epsilon) {
  const Tensor& x = c.tensor("input");
  if (c.takes("training") && c.flag("training"))
    c.refuse("it is in training mode; call eval() before the export");
  if (!c.has("running_mean")) c.refuse("it has no running statistics");
  const char* layout = x.rank() == 2   ? "NC"
                       : x.rank() == 3 ? "NCL"
                       : x.rank() == 5 ? "NCDHW"
                                       : "NCHW";
  return batch_norm(x, c.tensor("running_mean"), c.tensor("running_var"), c.maybe("weight"),
                    c.maybe("bias"), false, 0.9, c.number(epsilon), layout);
}
Value batch_normalised(const Call& c) { return batch_normalised_with(c, "eps"); }
Value core_batch_normalised(const Call& c) {
  const Tensor none = zeros({0}, DType::Float32);
  return c.tuple({batch_normalised_with(c, "eps"), none, none, none});
}

// By the statistics of the batch itself, as decomposed instance norms have it.
Value normalised_by_itself(const Call& c) {
  const Tensor& x = c.tensor("input");
  List axes{0};
  for (const int64_t axis : axes_of(static_cast<size_t>(x.rank() - 2))) axes.push_back(axis);
  const Tensor average = mean(x, IntArgs(axes), true);
  const Tensor scale = rsqrt(mean(square(x - average), IntArgs(axes), true) + c.number("eps"));
  std::vector<Dim> channels(static_cast<size_t>(x.rank()), 1);
  channels[1] = x.dim(1);
  Tensor made = (x - average) * scale;
  if (c.has("weight")) made = made * reshape(c.tensor("weight"), channels);
  if (c.has("bias")) made = made + reshape(c.tensor("bias"), channels);
  return c.tuple({made, reshape(average, {-1}), reshape(scale, {-1})});
}

std::vector<Dim> normalised_shape(const Call& c) {
  const List shape = c.list("normalized_shape");
  return {shape.begin(), shape.end()};
}
Tensor layer_normalised_with(const Call& c) {
  return layer_norm(c.tensor("input"), normalised_shape(c), c.maybe("weight"), c.maybe("bias"),
                    c.number("eps"));
}
Value layer_normalised(const Call& c) { return layer_normalised_with(c); }
Value core_layer_normalised(const Call& c) {
  const Tensor none = zeros({0}, DType::Float32);
  return c.tuple({layer_normalised_with(c), none, none});
}
Value root_normalised(const Call& c) {
  const double epsilon = c.has("eps") ? c.number("eps") : 1.1920928955078125e-07;
  return rms_norm(c.tensor("input"), normalised_shape(c), c.maybe("weight"), epsilon);
}
Value core_root_normalised(const Call& c) {
  return c.tuple({root_normalised(c).tensor, zeros({0}, DType::Float32)});
}
Tensor in_groups(const Call& c, const char* groups) {
  const Tensor& x = c.tensor("input");
  const char* layout = x.rank() == 2   ? "NC"
                       : x.rank() == 3 ? "NCL"
                       : x.rank() == 5 ? "NCDHW"
                                       : "NCHW";
  return group_norm(x, c.integer(groups), c.number("eps"), c.maybe("weight"), c.maybe("bias"),
                    layout);
}
Value group_normalised(const Call& c) { return in_groups(c, "num_groups"); }
Value core_group_normalised(const Call& c) {
  const Tensor none = zeros({0}, DType::Float32);
  return c.tuple({in_groups(c, "group"), none, none});
}
Value instance_normalised(const Call& c) {
  if (!c.flag("use_input_stats")) return batch_normalised_with(c, "eps");
  const Tensor& x = c.tensor("input");
  List axes = axes_of(static_cast<size_t>(x.rank() - 2));
  const Tensor centred = x - mean(x, IntArgs(axes), true);
  Tensor made = centred * rsqrt(mean(square(centred), IntArgs(axes), true) + c.number("eps"));
  std::vector<Dim> channels(static_cast<size_t>(x.rank()), 1);
  channels[1] = x.dim(1);
  if (c.has("weight")) made = made * reshape(c.tensor("weight"), channels);
  if (c.has("bias")) made = made + reshape(c.tensor("bias"), channels);
  return made;
}
// Of a layer that keeps its weight as a direction and a length.
Value weight_of_parts(const Call& c) {
  const Tensor& v = c.tensor("v");
  List axes;
  const int64_t kept = c.axis("dim", v.rank());
  for (int64_t i = 0; i < v.rank(); ++i)
    if (i != kept) axes.push_back(i);
  return v * (c.tensor("g") / sqrt(sum(square(v), IntArgs(axes), std::nullopt, true)));
}

// ---- dropout -----------------------------------------------------------------------------------

void check_kept(const Call& c, const char* training) {
  if (c.flag(training) && c.number("p") != 0)
    c.refuse("it is in training mode; call eval() before the export");
}
Value kept(const Call& c) {
  check_kept(c, "train");
  return c.tensor(c.takes("input") ? "input" : "self");
}
Value kept_with_mask(const Call& c) {
  check_kept(c, "train");
  const Tensor& x = c.tensor("input");
  return c.tuple({x, ones_like(x, DType::Bool)});
}

constexpr Converter kConverters[] = {
    {"conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)", convolved},
    {"conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)", convolved},
    {"conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)", convolved},
    {"convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)",
     core_convolved},
    {"_convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, benchmark=False, "
     "deterministic=False, cudnn_enabled=False, allow_tf32=False)",
     core_convolved},
    {"conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)",
     convolved_transposed},
    {"conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)",
     convolved_transposed},
    {"conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)",
     convolved_transposed},
    {"max_pool1d(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
     largest_in_windows},
    {"max_pool2d(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
     largest_in_windows},
    {"max_pool3d(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
     largest_in_windows},
    {"max_pool1d_with_indices(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
     largest_and_places},
    {"max_pool2d_with_indices(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
     largest_and_places},
    {"max_pool3d_with_indices(self, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False)",
     largest_and_places},
    {"avg_pool1d(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True)",
     mean_of_windows},
    {"avg_pool2d(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
     "divisor_override=None)",
     mean_of_windows},
    {"avg_pool3d(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, "
     "divisor_override=None)",
     mean_of_windows},
    {"adaptive_avg_pool1d(self, output_size)", mean_of_cells},
    {"adaptive_avg_pool2d(self, output_size)", mean_of_cells},
    {"adaptive_avg_pool3d(self, output_size)", mean_of_cells},
    {"_adaptive_avg_pool2d(self, output_size)", mean_of_cells},
    {"_adaptive_avg_pool3d(self, output_size)", mean_of_cells},
    {"adaptive_max_pool1d(self, output_size)", largest_of_cells},
    {"adaptive_max_pool2d(self, output_size)", largest_of_cells},
    {"adaptive_max_pool3d(self, output_size)", largest_of_cells},
    {"batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False)",
     batch_normalised},
    {"_native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps)",
     core_batch_normalised},
    {"_native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps)",
     core_batch_normalised},
    {"_native_batch_norm_legit(input, weight, bias, training, momentum, eps)",
     normalised_by_itself},
    {"native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)",
     core_batch_normalised},
    {"_batch_norm_no_update(input, weight, bias, running_mean, running_var, momentum, eps)",
     core_batch_normalised},
    {"layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True)",
     layer_normalised},
    {"native_layer_norm(input, normalized_shape, weight, bias, eps)", core_layer_normalised},
    {"rms_norm(input, normalized_shape, weight=None, eps=None)", root_normalised},
    {"_fused_rms_norm(input, normalized_shape, weight, eps)", core_root_normalised},
    {"group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True)",
     group_normalised},
    {"native_group_norm(input, weight, bias, N, C, HxW, group, eps)", core_group_normalised},
    {"instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False)",
     instance_normalised},
    {"_weight_norm(v, g, dim=0)", weight_of_parts},
    {"dropout(input, p, train)", kept},
    {"feature_dropout(input, p, train)", kept},
    {"alpha_dropout(input, p, train)", kept},
    {"feature_alpha_dropout(input, p, train)", kept},
    {"dropout_(self, p, train)", kept},
    {"feature_dropout_(self, p, train)", kept},
    {"alpha_dropout_(self, p, train)", kept},
    {"feature_alpha_dropout_(self, p, train)", kept},
    {"native_dropout(input, p, train)", kept_with_mask},
};

}  // namespace

std::span<const Converter> network_converters() { return kConverters; }

}  // namespace oar::pytorch
