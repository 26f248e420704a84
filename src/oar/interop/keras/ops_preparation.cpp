// Layers that prepare data.
#include <algorithm>

#include "oar/interop/keras/call.h"
#include "oar/interop/keras/resize.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

Tensor as_numbers(const Tensor& x) { return is_floating(x.dtype()) ? x : cast(x, DType::Float32); }

Tensor number_or_channels(const Call& c, std::string_view key, double otherwise, DType dtype) {
  const std::vector<double> values = c.has(key) ? c.numbers(key) : std::vector<double>{otherwise};
  const auto count = static_cast<int64_t>(values.size());
  const Tensor t = cast(Tensor::from_vector(values, Shape{count}, DType::Float64), dtype);
  return count == 1 ? reshape(t, {}) : t;
}

Items rescaled(const Call& c) {
  const Tensor x = as_numbers(c.tensor());
  return {x * number_or_channels(c, "scale", 1, x.dtype()) +
          number_or_channels(c, "offset", 0, x.dtype())};
}

struct Place {
  int64_t height, width;  // axes
};
Place place_of(const Call& c) {
  const int64_t rank = c.tensor().rank();
  if (rank != 3 && rank != 4) c.refuse(format("its input has {} axes", rank));
  return c.channels_first() ? Place{rank - 2, rank - 1} : Place{rank - 3, rank - 2};
}

Tensor cut(const Tensor& x, int64_t axis, int64_t begin, int64_t size) {
  return slice(x, {axis}, {begin}, {begin + size});
}

Tensor resized_to(const Call& c, const Tensor& x, int64_t height, int64_t width,
                  const std::string& mode) {
  const Place at = place_of(c);
  return resize_axis(c, resize_axis(c, x, at.height, height, mode), at.width, width, mode);
}

// The largest part in the middle that has the proportions of the result.
Tensor middle_of(const Call& c, const Tensor& x, int64_t height, int64_t width) {
  const Place at = place_of(c);
  const int64_t h = x.dim(at.height).value(), w = x.dim(at.width).value();
  if (height < 1 || width < 1 || height > (1 << 24) || width > (1 << 24))
    c.refuse("its result has no usual size");
  const int64_t cut_h = std::clamp<int64_t>(w * height / width, 1, h),
                cut_w = std::clamp<int64_t>(h * width / height, 1, w);
  return cut(cut(x, at.height, (h - cut_h) / 2, cut_h), at.width, (w - cut_w) / 2, cut_w);
}

Items resized(const Call& c) {
  for (const char* unusual : {"pad_to_aspect_ratio", "antialias"})
    if (c.flag(unusual, false)) c.refuse(format("it has '{}'", unusual));
  const int64_t height = c.integer("height", 0), width = c.integer("width", 0);
  const std::string mode = c.text("interpolation", "bilinear");
  Tensor x = as_numbers(c.tensor());
  if (c.flag("crop_to_aspect_ratio", false)) x = middle_of(c, x, height, width);
  return {resized_to(c, x, height, width, mode)};
}

Items centre_cropped(const Call& c) {
  const Tensor x = as_numbers(c.tensor());
  const int64_t height = c.integer("height", 0), width = c.integer("width", 0);
  const Place at = place_of(c);
  const int64_t h = x.dim(at.height).value(), w = x.dim(at.width).value();
  if (height < 1 || width < 1) c.refuse("its result has no usual size");
  if (h >= height && w >= width)
    return {cut(cut(x, at.height, (h - height) / 2, height), at.width, (w - width) / 2, width)};
  return {resized_to(c, middle_of(c, x, height, width), height, width, "bilinear")};
}

Items encoded(const Call& c) {
  const int64_t tokens = c.integer("num_tokens", c.integer("max_tokens", 0));
  const std::string mode = c.text("output_mode", "multi_hot");
  if (tokens < 1 || tokens > (1 << 24)) c.refuse(format("it has {} tokens", tokens));
  Tensor ids = cast(c.tensor(), DType::Int64);
  if (mode == "one_hot") {
    if (ids.rank() > 1 && ids.dim(-1).value() == 1) ids = squeeze(ids, IntArgs({-1}));
    return {one_hot(ids, tokens)};
  }
  if (ids.rank() < 2) ids = unsqueeze(ids, {-1});
  const Tensor rows = one_hot(ids, tokens);  // [batch, places, tokens]
  if (mode == "multi_hot") return {max(rows, IntArgs({-2}))};
  if (mode != "count") c.refuse(format("its output_mode is '{}'", mode));
  return {sum(rows, IntArgs({-2}))};
}

Items discretised(const Call& c) {
  if (c.text("output_mode", "int") != "int") c.refuse("its output_mode is not 'int'");
  const std::vector<double> bins = c.numbers("bin_boundaries");
  if (bins.empty()) c.refuse("it has no boundaries");
  const Tensor x = as_numbers(c.tensor());
  const Tensor limits =
      cast(Tensor::from_vector(bins, Shape{static_cast<int64_t>(bins.size())}, DType::Float64),
           x.dtype());
  return {cast(searchsorted(limits, x, false, true), DType::Int64)};
}

constexpr Converter kConverters[] = {
    {"Rescaling", rescaled},       {"Resizing", resized},           {"CenterCrop", centre_cropped},
    {"CategoryEncoding", encoded}, {"Discretization", discretised},
};

}  // namespace

std::span<const Converter> preparation_converters() { return kConverters; }

}  // namespace oar::keras
