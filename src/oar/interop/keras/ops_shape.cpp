// Layers that move elements: shapes, borders, sizes of images.
#include <algorithm>
#include <cmath>

#include "oar/interop/keras/call.h"
#include "oar/interop/keras/resize.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/tensor/byte_count.h"

namespace oar::keras {
namespace {

using List = std::vector<int64_t>;

std::vector<Dim> batch_and(const Tensor& x, const List& sizes) {
  std::vector<Dim> shape{x.dim(0)};
  int64_t count = 1;
  Count given = 1;
  for (int64_t axis = 1; axis < x.rank(); ++axis) count *= x.dim(axis).value();
  for (const int64_t size : sizes) given = given * (size < 0 ? 1 : std::max<int64_t>(size, 1));
  // An open size is computed here, as a batch of none leaves it open.
  for (const int64_t size : sizes) shape.push_back(size < 0 ? count / given.value() : size);
  return shape;
}

Items flattened(const Call& c) {
  Tensor x = c.tensor();
  if (x.rank() == 1) return {unsqueeze(x, {1})};
  if (c.channels_first() && x.rank() > 2) x = moveaxis(x, {1}, {-1});
  return {reshape(x, batch_and(x, {-1}))};
}

Items reshaped(const Call& c) {
  const List sizes = c.list("target_shape");
  if (std::count_if(sizes.begin(), sizes.end(), [](int64_t s) { return s < 0; }) > 1)
    c.refuse("several of its sizes are open");
  return {reshape(c.tensor(), batch_and(c.tensor(), sizes))};
}

Items permuted(const Call& c) {
  List order{0};
  const List dims = c.list("dims");
  order.insert(order.end(), dims.begin(), dims.end());
  return {transpose(c.tensor(), order)};
}

Items repeated(const Call& c) {
  const Tensor& x = c.tensor();
  const int64_t n = c.integer("n", 1);
  if (n < 0 || n > (1 << 24)) c.refuse(format("it repeats {} times", n));
  return {broadcast_to(unsqueeze(x, {1}), {x.dim(0), Dim(n), x.dim(1)})};
}

// (before, after) for each inner axis: 1, [1, 2] or [[1, 1], [2, 2]]. One axis takes [1, 2] as its two ends.
List around(const Call& c, std::string_view key, size_t axes) {
  const JsonValue* found = c.find(key);
  if (!found) return List(2 * axes, 1);
  if (found->is_number()) return List(2 * axes, found->integer());
  List both;
  for (const JsonValue& side : found->list()) {
    if (side.is_list()) {
      for (const JsonValue& value : side.list()) both.push_back(value.integer());
    } else if (axes == 1) {
      both.push_back(side.integer());
    } else {
      both.insert(both.end(), 2, side.integer());
    }
  }
  if (both.size() != 2 * axes) c.refuse(format("its '{}' does not fit {} axes", key, axes));
  for (const int64_t v : both)
    if (v < 0 || v > (1 << 24)) c.refuse(format("its '{}' has {}", key, v));
  return both;
}

size_t inner_axes(const Call& c) {
  const int64_t rank = c.tensor().rank();
  if (rank < 3) c.refuse(format("its input has {} axes", rank));
  return static_cast<size_t>(rank - 2);
}
size_t first_axis(const Call& c) { return c.channels_first() ? 2 : 1; }

Items padded(const Call& c) {
  const size_t axes = inner_axes(c), first = first_axis(c);
  const List both = around(c, "padding", axes);
  List paddings(2 * (axes + 2), 0);
  std::copy(both.begin(), both.end(), paddings.begin() + static_cast<ptrdiff_t>(2 * first));
  return {pad_constant(c.tensor(), paddings, Scalar(int64_t{0}))};
}

Items cropped(const Call& c) {
  const size_t axes = inner_axes(c), first = first_axis(c);
  const List both = around(c, "cropping", axes);
  Tensor x = c.tensor();
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(first + i);
    const int64_t end = x.dim(axis).value() - both[2 * i + 1];
    if (both[2 * i] > end) c.refuse("it crops more than there is");
    x = slice(x, {axis}, {both[2 * i]}, {end});
  }
  return {x};
}

Items upsampled(const Call& c) {
  const size_t axes = inner_axes(c), first = first_axis(c);
  const List size = c.list("size", axes, 2);
  const std::string mode = c.text("interpolation", "nearest");
  Tensor x = c.tensor();
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(first + i);
    if (size[i] < 1 || size[i] > (1 << 16)) c.refuse(format("its size is {}", size[i]));
    x = mode == "nearest" ? repeat_interleave(x, size[i], axis)
                          : resize_axis(c, x, axis, x.dim(axis).value() * size[i], mode);
  }
  return {x};
}

// Blocks of channels become blocks of pixels, as in tf.nn.depth_to_space. UpscalerJS has the factor in the name: "PixelShuffle4x".
Items shuffled(const Call& c) {
  const std::string& type = c.layer.type;
  const int64_t named = type.ends_with('x') ? type[type.size() - 2] - '0' : 2;
  const int64_t block =
      c.integer("scale", c.integer("block_size", c.integer("upscale_factor", named)));
  const Tensor& x = c.tensor();
  if (x.rank() != 4 || block < 1 || block > 64 || x.dim(3).value() % (block * block) != 0)
    c.refuse("its blocks do not fit the channels");
  const int64_t channels = x.dim(3).value() / (block * block);
  const Dim n = x.dim(0), h = x.dim(1), w = x.dim(2);
  const Tensor parts = reshape(x, {n, h, w, Dim(block), Dim(block), Dim(channels)});
  return {reshape(transpose(parts, {0, 1, 3, 2, 4, 5}), {n, h * block, w * block, Dim(channels)})};
}

constexpr Converter kConverters[] = {
    {"Flatten", flattened},       {"Reshape", reshaped},        {"Permute", permuted},
    {"RepeatVector", repeated},   {"ZeroPadding1D", padded},    {"ZeroPadding2D", padded},
    {"ZeroPadding3D", padded},    {"Cropping1D", cropped},      {"Cropping2D", cropped},
    {"Cropping3D", cropped},      {"UpSampling1D", upsampled},  {"UpSampling2D", upsampled},
    {"UpSampling3D", upsampled},  {"PixelShuffle", shuffled},   {"PixelShuffle2x", shuffled},
    {"PixelShuffle3x", shuffled}, {"PixelShuffle4x", shuffled}, {"PixelShuffle8x", shuffled},
};

}  // namespace

Tensor resize_axis(const Call& c, const Tensor& x, int64_t axis, int64_t to,
                   std::string_view mode) {
  const int64_t from = x.dim(axis).value();
  if (to < 1 || to > (1 << 24)) c.refuse(format("its result has the size {}", to));
  if (from == to) return x;
  if (mode == "bilinear") return resample(x, axis, {Dim(to)}, std::nullopt, "linear", false, 0);
  if (mode != "nearest") c.refuse(format("it resizes by '{}'", mode));
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  List places;
  for (int64_t i = 0; i < to; ++i) {
    const double at = std::floor((static_cast<double>(i) + 0.5) * ratio);
    places.push_back(std::clamp<int64_t>(static_cast<int64_t>(at), 0, from - 1));
  }
  return index_select(x, Tensor::from_vector(places, Shape{to}, DType::Int64), axis);
}

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::keras
