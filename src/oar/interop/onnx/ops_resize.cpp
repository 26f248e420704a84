// Resizing.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

using List = std::vector<int64_t>;

struct Target {
  std::vector<Dim> sizes;
  std::vector<double> scales;
};

Target target_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  const auto rank = static_cast<size_t>(x.rank());
  const size_t scales_at = c.node.op == "Upsample" || c.opset < 11 ? 1 : 2;
  Target t;
  const bool sized = scales_at == 2 && c.has(3);
  std::vector<double> given;
  if (c.given("scales"))
    given = c.number_list("scales");
  else if (!sized)
    given = c.numbers(scales_at);
  List axes = c.opset >= 18 ? c.list("axes") : List{};
  if (axes.empty())
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  t.sizes.assign(x.dims().begin(), x.dims().end());
  t.scales.assign(rank, 1);
  const std::vector<Dim> wanted = sized ? c.sizes(3) : std::vector<Dim>{};
  if ((sized ? wanted.size() : given.size()) != axes.size())
    c.refuse("scales or sizes do not fit the axes");
  const std::string policy = c.text("keep_aspect_ratio_policy", "stretch");
  double common = 0;  // the scale of all axes, where they share one
  for (size_t i = 0; sized && policy != "stretch" && i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + x.rank() : axes[i]);
    const double scale =
        static_cast<double>(wanted[i].value()) / static_cast<double>(x.dims()[axis].value());
    common = i == 0                   ? scale
             : policy == "not_larger" ? std::min(common, scale)
                                      : std::max(common, scale);
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(axes[i] < 0 ? axes[i] + x.rank() : axes[i]);
    const Dim size = x.dims()[axis];
    if (sized) {
      t.sizes[axis] = common == 0 ? wanted[i]
                                  : Dim(static_cast<int64_t>(std::floor(
                                        common * static_cast<double>(size.value()) + 0.5)));
      t.scales[axis] = common;  // 0: follows from the sizes
    } else {
      const double scale = given[i];
      t.scales[axis] = scale;
      t.sizes[axis] =
          scale == std::floor(scale)
              ? size * static_cast<int64_t>(scale)
              : Dim(static_cast<int64_t>(std::floor(scale * static_cast<double>(size.value()))));
    }
  }
  return t;
}

// Nearest neighbours with a rounding or an origin that Oar's own op does not have: rows are picked by index.
Tensor pick_nearest(const Call& c, const Tensor& x, int64_t axis, Dim size, double scale) {
  const int64_t from = x.dim(axis).value(), to = size.value();
  const std::string origin = c.node.op == "Upsample" || c.opset < 11
                                 ? "asymmetric"
                                 : c.text("coordinate_transformation_mode", "half_pixel");
  const std::string rounding =
      c.opset < 11 ? "floor" : c.text("nearest_mode", "round_prefer_floor");
  const double ratio = scale > 0 ? scale : static_cast<double>(to) / static_cast<double>(from);
  List places;
  for (int64_t i = 0; i < to; ++i) {
    const auto at = static_cast<double>(i);
    double place = (at + 0.5) / ratio - 0.5;
    if (origin == "asymmetric") place = at / ratio;
    if (origin == "align_corners")
      place = to == 1 ? 0 : at * static_cast<double>(from - 1) / static_cast<double>(to - 1);
    if (origin == "pytorch_half_pixel" && to == 1) place = 0;
    if (origin == "tf_half_pixel_for_nn") place = (at + 0.5) / ratio;
    const double nearest = rounding == "floor"               ? std::floor(place)
                           : rounding == "ceil"              ? std::ceil(place)
                           : rounding == "round_prefer_ceil" ? std::floor(place + 0.5)
                                                             : std::ceil(place - 0.5);
    places.push_back(std::clamp<int64_t>(static_cast<int64_t>(nearest), 0, from - 1));
  }
  return index_select(x, Tensor::from_vector(places, Shape{to}, DType::Int64), axis);
}

// The place in the source of each element of the result.
std::vector<double> places_of(const Call& c, const std::string& origin, int64_t axis, int64_t from,
                              int64_t to, double scale) {
  const double ratio = scale > 0 ? scale : static_cast<double>(to) / static_cast<double>(from);
  const double length = scale > 0 ? scale * static_cast<double>(from) : static_cast<double>(to);
  std::vector<double> region;
  if (origin == "tf_crop_and_resize") region = c.numbers(1);
  std::vector<double> places;
  for (int64_t i = 0; i < to; ++i) {
    const auto at = static_cast<double>(i);
    double place = (at + 0.5) / ratio - 0.5;
    if (origin == "asymmetric") place = at / ratio;
    if (origin == "align_corners")
      place = length == 1 ? 0 : at * static_cast<double>(from - 1) / (length - 1);
    if (origin == "pytorch_half_pixel" && length <= 1) place = -0.5 + 0.5;
    if (origin == "half_pixel_symmetric") {
      const double adjusted = static_cast<double>(to) / length,
                   centre = static_cast<double>(from) / 2;
      place += centre * (1 - adjusted);
    }
    if (!region.empty()) {
      const auto half = region.size() / 2, a = static_cast<size_t>(axis);
      const List given = c.opset >= 18 ? c.list("axes") : List{};
      size_t at_region = a;
      for (size_t i = 0; i < given.size(); ++i)
        if (given[i] == axis || given[i] + c.tensor(0).rank() == axis) at_region = i;
      const double first = region.at(at_region), last = region.at(half + at_region),
                   most = static_cast<double>(from - 1);
      place = to == 1 ? 0.5 * (first + last) * most
                      : first * most + at * (last - first) * most / static_cast<double>(to - 1);
    }
    places.push_back(place);
  }
  return places;
}

// Weights of the four or two neighbours of a place.
std::vector<double> weights_at(double part, bool cubic, double a) {
  if (!cubic) return {1 - part, part};
  const auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(1 + part), near(part), near(1 - part), far(2 - part)};
}

// Weights of the neighbours of a place, and the first of them, where a smaller result takes in more of them: the kernel is as wide
// as an element of the result.
struct Spread {
  int64_t first;
  std::vector<double> weights;
};
Spread spread_at(double place, double ratio, bool cubic, double a) {
  const double narrow = std::min(ratio, 1.0), reach = (cubic ? 2 : 1) / narrow;
  const auto floor = static_cast<int64_t>(std::floor(place));
  const double part = place - std::floor(place);
  const auto before = static_cast<int64_t>(std::floor(-reach)) + 1;
  Spread spread{floor + before, {}};
  double total = 0;
  for (int64_t i = before; i < 2 - before; ++i) {
    const double d = std::fabs(static_cast<double>(i) - part) * narrow;
    double weight = std::max(1 - d, 0.0);
    if (cubic)
      weight = d <= 1  ? ((a + 2) * d - (a + 3)) * d * d + 1
               : d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
                       : 0;
    spread.weights.push_back(weight);
    total += weight;
  }
  for (double& weight : spread.weights) weight /= total;
  return spread;
}

// Linear and cubic with coordinates or weights that Oar's own op does not have: a product with a matrix.
Tensor blend(const Call& c, const Tensor& x, int64_t axis, Dim size, double scale,
             const std::string& origin, bool cubic) {
  const int64_t from = x.dim(axis).value(), to = size.value();
  const bool leaves_out = c.flag("exclude_outside"), crops = origin == "tf_crop_and_resize",
             smooths = c.flag("antialias");
  const double ratio = scale > 0 ? scale : static_cast<double>(to) / static_cast<double>(from);
  std::vector<double> matrix(static_cast<size_t>(from * to)), beyond(static_cast<size_t>(to));
  const std::vector<double> places = places_of(c, origin, axis, from, to, scale);
  for (int64_t row = 0; row < to; ++row) {
    const double place = places[static_cast<size_t>(row)];
    if (crops && (place < 0 || place > static_cast<double>(from - 1))) {
      beyond[static_cast<size_t>(row)] = c.number("extrapolation_value", 0);
      continue;
    }
    auto first = static_cast<int64_t>(std::floor(place)) - (cubic ? 1 : 0);
    const double a = c.number("cubic_coeff_a", -0.75);
    std::vector<double> weights = weights_at(place - std::floor(place), cubic, a);
    if (smooths) {
      Spread spread = spread_at(place, ratio, cubic, a);
      first = spread.first;
      weights = std::move(spread.weights);
    }
    double total = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      const int64_t column = first + static_cast<int64_t>(k);
      if (leaves_out && (column < 0 || column >= from)) weights[k] = 0;
      total += weights[k];
    }
    for (size_t k = 0; k < weights.size(); ++k) {
      const int64_t column = std::clamp<int64_t>(first + static_cast<int64_t>(k), 0, from - 1);
      matrix[static_cast<size_t>(row * from + column)] +=
          leaves_out ? weights[k] / total : weights[k];
    }
  }
  const Tensor by = Tensor::from_vector(matrix, Shape{to, from}, x.dtype());
  Tensor made = swapaxes(matmul(swapaxes(x, axis, -1), by, false, true), axis, -1);
  if (!crops) return made;
  std::vector<Dim> line(static_cast<size_t>(x.rank()), 1);
  line[static_cast<size_t>(axis)] = to;
  return made + reshape(Tensor::from_vector(beyond, Shape{to}, x.dtype()), line);
}

Values resized(const Call& c) {
  Tensor x = c.tensor(0);
  const Target t = target_of(c);
  const std::string mode = c.text("mode", "nearest");
  const std::string origin = c.node.op == "Upsample" || c.opset < 11
                                 ? "asymmetric"
                                 : c.text("coordinate_transformation_mode", "half_pixel");
  const bool repeats = mode == "nearest" && origin == "asymmetric" &&
                       (c.opset < 11 || c.text("nearest_mode", "round_prefer_floor") == "floor");
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const Dim size = t.sizes[static_cast<size_t>(axis)];
    const double scale = t.scales[static_cast<size_t>(axis)];
    if (size == x.dim(axis) && (scale == 0 || scale == 1)) continue;
    if (repeats && scale >= 1 && scale == std::floor(scale)) {
      x = repeat_interleave(x, static_cast<int64_t>(scale), axis);
    } else if (mode == "nearest") {
      x = pick_nearest(c, x, axis, size, scale);
    } else {
      const bool cubic = mode == "cubic";
      const bool own =
          origin == "align_corners" || origin == "half_pixel" || (origin == "asymmetric" && !cubic);
      const bool usual =
          !cubic || (c.number("cubic_coeff_a", -0.75) == -0.75 && !c.flag("exclude_outside"));
      const bool whole =
          static_cast<double>(size.hint()) == scale * static_cast<double>(x.dim(axis).hint());
      if (own && usual && !c.flag("antialias") && (scale == 0 || whole))
        x = resample(x, axis, {size}, std::nullopt, cubic ? "cubic" : "linear",
                     origin == "align_corners", origin == "asymmetric" ? 1 : 0);
      else
        x = blend(c, x, axis, size, scale, origin, cubic);
    }
  }
  return {x};
}

constexpr Converter kConverters[] = {{"Resize", resized}, {"Upsample", resized}};

}  // namespace

std::span<const Converter> resize_converters() { return kConverters; }

}  // namespace oar::onnx
