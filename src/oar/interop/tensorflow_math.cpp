#include "oar/interop/tensorflow_math.h"

#include <algorithm>
#include <cmath>

#include "oar/base/error.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::interop {
namespace {

using List = std::vector<int64_t>;

void check_image(const Tensor& x, const Window& w) {
  user_check(x.rank() == static_cast<int64_t>(w.kernel.size()) + 2, ErrorKind::Unsupported,
             "the input has {} axes instead of {}.", x.rank(), w.kernel.size() + 2);
  user_check(w.stride.size() == w.kernel.size() && w.dilation.size() == w.kernel.size(),
             ErrorKind::InvalidArgument, "the strides do not fit the window.");
  for (const List& list : {w.kernel, w.stride, w.dilation})
    for (const int64_t v : list)
      user_check(v >= 1 && v < (1 << 24), ErrorKind::InvalidArgument, "a window has the size {}.",
                 v);
}

// (before, after) for each axis of the window. What is odd goes after.
List padding_of(const Tensor& x, const Window& w) {
  if (!w.padding.empty()) {
    user_check(w.padding.size() == 2 * w.kernel.size(), ErrorKind::InvalidArgument,
               "the padding does not fit the window.");
    for (const int64_t v : w.padding)
      user_check(v >= 0 && v < (1 << 24), ErrorKind::InvalidArgument, "a padding of {}.", v);
    return w.padding;
  }
  List padding;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t size = x.dim(static_cast<int64_t>(i) + 1).value();
    const int64_t count = (size + w.stride[i] - 1) / w.stride[i];
    const int64_t reach = (count - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
    const int64_t total = w.same ? std::max<int64_t>(reach - size, 0) : 0;
    padding.insert(padding.end(), {total / 2, total - total / 2});
  }
  return padding;
}

Tensor picked(const Tensor& x, const List& places, int64_t axis) {
  const auto count = static_cast<int64_t>(places.size());
  return index_select(x, Tensor::from_vector(places, Shape{count}, DType::Int64), axis);
}

Tensor resize_axis(const Tensor& x, int64_t axis, int64_t to, const Resizing& r) {
  const int64_t from = x.dim(axis).value();
  user_check(to >= 1 && to < (1 << 24), ErrorKind::InvalidArgument, "an image of size {}.", to);
  if (from == to) return x;
  const bool aligned = r.align_corners && to > 1;
  if (!r.nearest)
    return resample(x, axis, {Dim(to)}, std::nullopt, "linear", aligned, r.half_pixel ? 0 : 1);
  const float ratio = aligned ? static_cast<float>(from - 1) / static_cast<float>(to - 1)
                              : static_cast<float>(from) / static_cast<float>(to);
  List places;
  for (int64_t i = 0; i < to; ++i) {
    const float at = (static_cast<float>(i) + (r.half_pixel ? 0.5F : 0.0F)) * ratio;
    const float place = aligned ? std::round(at) : std::floor(at);
    places.push_back(std::clamp<int64_t>(static_cast<int64_t>(place), 0, from - 1));
  }
  return picked(x, places, axis);
}

// How a slice goes along one axis.
struct Range {
  int64_t begin, end, stride;
};

Range range_of(int64_t size, int64_t begin, int64_t end, int64_t stride, bool from_first,
               bool to_last, bool single) {
  user_check(stride != 0, ErrorKind::InvalidArgument, "a slice has the stride 0.");
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  const auto inside = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  if (single) {
    const int64_t at = begin < 0 ? begin + size : begin;
    user_check(at >= 0 && at < size, ErrorKind::InvalidArgument,
               "a slice takes the element {} of {}.", begin, size);
    return {at, at + 1, 1};
  }
  return {from_first ? (stride > 0 ? 0 : size - 1) : inside(begin),
          to_last ? (stride > 0 ? size : -1) : inside(end), stride};
}

Tensor sliced_along(const Tensor& x, int64_t axis, const Range& r) {
  if (r.stride == 1 && r.begin == 0 && r.end == x.dim(axis).value()) return x;
  if (r.stride == 1 && r.begin < r.end) return slice(x, {axis}, {r.begin}, {r.end});
  List places;
  for (int64_t i = r.begin; r.stride > 0 ? i < r.end : i > r.end; i += r.stride)
    places.push_back(i);
  return picked(x, places, axis);
}

}  // namespace

Tensor convolve_last(const Tensor& x, const Tensor& filter, const Tensor& bias,
                     const Window& window, int64_t groups) {
  check_image(x, window);
  return conv(x, filter, bias, window.stride, padding_of(x, window), window.dilation, groups, true);
}

Tensor max_pool_last(const Tensor& x, const Window& window) {
  check_image(x, window);
  return std::get<0>(max_pool(x, window.kernel, window.stride, padding_of(x, window), false, true));
}

Tensor avg_pool_last(const Tensor& x, const Window& window) {
  check_image(x, window);
  return avg_pool(x, window.kernel, window.stride, padding_of(x, window), false, true, std::nullopt,
                  true);
}

Tensor convolve_transposed_last(const Tensor& x, const Tensor& filter, const Window& window,
                                int64_t height, int64_t width) {
  check_image(x, window);
  const Tensor first = transpose(x, {0, 3, 1, 2});
  Tensor whole = conv2d_transpose(first, filter, {}, window.stride, {0, 0}, {0, 0}, {1, 1}, 1);
  const List sizes = {height, width};
  for (size_t i = 0; i < 2; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t full = whole.dim(axis).value();
    const int64_t before =
        window.same ? std::max<int64_t>((x.dim(axis - 1).value() - 1) * window.stride[i] +
                                            window.kernel[i] - sizes[i],
                                        0) /
                          2
                    : 0;
    user_check(sizes[i] >= 1 && sizes[i] < (1 << 20), ErrorKind::InvalidArgument,
               "the result has the size {}.", sizes[i]);
    if (before + sizes[i] > full) {  // a border that no window reaches
      List grown(8, 0);
      grown[static_cast<size_t>(2 * axis + 1)] = before + sizes[i] - full;
      whole = pad_constant(whole, grown, 0.0);
    }
    whole = slice(whole, {axis}, {before}, {before + sizes[i]});
  }
  return transpose(whole, {0, 2, 3, 1});
}

Tensor resize_last(const Tensor& x, const Resizing& to) {
  user_check(x.rank() == 4, ErrorKind::Unsupported, "the input has {} axes instead of 4.",
             x.rank());
  return resize_axis(resize_axis(x, 1, to.height, to), 2, to.width, to);
}

Tensor slice_with_masks(const Tensor& x, const std::vector<int64_t>& begin,
                        const std::vector<int64_t>& end, const std::vector<int64_t>& stride,
                        const SliceMasks& masks) {
  user_check(begin.size() == end.size() && begin.size() == stride.size() && begin.size() < 32,
             ErrorKind::InvalidArgument, "begin, end and strides of a slice differ in length.");
  const auto bit = [](int64_t mask, size_t i) { return ((mask >> i) & 1) != 0; };
  int64_t given = 0;
  for (size_t i = 0; i < begin.size(); ++i)
    given += bit(masks.new_axis, i) || bit(masks.ellipsis, i) ? 0 : 1;
  user_check(given <= x.rank(), ErrorKind::InvalidArgument,
             "a slice has more axes than its input.");
  Tensor made = x;
  std::vector<Dim> shape;
  int64_t axis = 0;
  const auto keep = [&] { shape.push_back(made.dim(axis++)); };
  for (size_t i = 0; i < begin.size(); ++i) {
    if (bit(masks.ellipsis, i)) {
      for (int64_t skipped = x.rank() - given; skipped > 0; --skipped) keep();
    } else if (bit(masks.new_axis, i)) {
      shape.push_back(1);
    } else {
      const bool single = bit(masks.shrink, i);
      made = sliced_along(made, axis,
                          range_of(made.dim(axis).value(), begin[i], end[i], stride[i],
                                   bit(masks.begin, i), bit(masks.end, i), single));
      single ? void(++axis) : keep();
    }
  }
  while (axis < made.rank()) keep();
  return masks.new_axis == 0 && masks.shrink == 0 ? made : reshape(made, shape);
}

Tensor mirror_pad(const Tensor& x, const std::vector<int64_t>& paddings, bool reflected) {
  Tensor made = x;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t before = paddings[static_cast<size_t>(2 * axis)],
                  after = paddings[static_cast<size_t>(2 * axis + 1)];
    const int64_t size = x.dim(axis).value(), skip = reflected ? 1 : 0;
    user_check(std::min(before, after) >= 0 && std::max(before, after) <= size - skip,
               ErrorKind::InvalidArgument, "a mirrored border of {} and {} around {} elements.",
               before, after, size);
    if (before == 0 && after == 0) continue;
    List places;
    for (int64_t i = before; i > 0; --i) places.push_back(i - 1 + skip);
    for (int64_t i = 0; i < size; ++i) places.push_back(i);
    for (int64_t i = 0; i < after; ++i) places.push_back(size - 1 - skip - i);
    made = picked(made, places, axis);
  }
  return made;
}

Tensor depth_to_space_last(const Tensor& x, int64_t block) {
  user_check(x.rank() == 4 && block >= 1 && x.dim(3).value() % (block * block) == 0,
             ErrorKind::InvalidArgument, "its blocks do not fit the channels.");
  const Dim n = x.dim(0), h = x.dim(1), w = x.dim(2);
  const int64_t c = x.dim(3).value() / (block * block);
  const Tensor parts = reshape(x, {n, h, w, Dim(block), Dim(block), Dim(c)});
  return reshape(transpose(parts, {0, 1, 3, 2, 4, 5}), {n, h * block, w * block, Dim(c)});
}

Tensor space_to_depth_last(const Tensor& x, int64_t block) {
  user_check(
      x.rank() == 4 && block >= 1 && x.dim(1).value() % block == 0 && x.dim(2).value() % block == 0,
      ErrorKind::InvalidArgument, "its blocks do not fit the image.");
  const Dim n = x.dim(0), c = x.dim(3);
  const int64_t h = x.dim(1).value() / block, w = x.dim(2).value() / block;
  const Tensor parts = reshape(x, {n, Dim(h), Dim(block), Dim(w), Dim(block), c});
  return reshape(transpose(parts, {0, 1, 3, 2, 4, 5}), {n, Dim(h), Dim(w), c * (block * block)});
}

Tensor space_to_batch(const Tensor& x, const std::vector<int64_t>& block,
                      const std::vector<int64_t>& paddings) {
  const size_t axes = block.size();
  user_check(static_cast<size_t>(x.rank()) > axes && paddings.size() == 2 * axes,
             ErrorKind::InvalidArgument, "its blocks do not fit its input.");
  List around(2 * static_cast<size_t>(x.rank()), 0);
  std::copy(paddings.begin(), paddings.end(), around.begin() + 2);
  for (const int64_t p : around)
    user_check(p >= 0 && p < (1 << 24), ErrorKind::InvalidArgument, "a padding of {}.", p);
  const Tensor padded = pad_constant(x, around, Scalar(int64_t{0}));
  std::vector<Dim> parts{x.dim(0)}, shape{x.dim(0)};
  List order, rest{0};
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    const int64_t size = padded.dim(axis).value();
    user_check(block[i] >= 1 && size % block[i] == 0, ErrorKind::InvalidArgument,
               "its blocks do not fit its input.");
    parts.insert(parts.end(), {Dim(size / block[i]), Dim(block[i])});
    shape[0] = shape[0] * block[i];
    shape.push_back(size / block[i]);
    order.push_back(2 * axis);
    rest.push_back(2 * axis - 1);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  for (int64_t axis = static_cast<int64_t>(axes) + 1; axis < x.rank(); ++axis) {
    order.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(x.dim(axis));
    shape.push_back(x.dim(axis));
  }
  return reshape(transpose(reshape(padded, parts), order), shape);
}

Tensor batch_to_space(const Tensor& x, const std::vector<int64_t>& block,
                      const std::vector<int64_t>& crops) {
  const size_t axes = block.size();
  user_check(static_cast<size_t>(x.rank()) > axes && crops.size() == 2 * axes,
             ErrorKind::InvalidArgument, "its blocks do not fit its input.");
  int64_t in_block = 1;
  for (const int64_t b : block) {
    user_check(b >= 1 && b < (1 << 16) && in_block < (1 << 24), ErrorKind::InvalidArgument,
               "a block of size {}.", b);
    in_block *= b;
  }
  const int64_t batch = x.dim(0).value();
  user_check(batch % in_block == 0, ErrorKind::InvalidArgument, "its blocks do not fit its input.");
  std::vector<Dim> parts, shape{batch / in_block};
  for (const int64_t b : block) parts.push_back(b);
  parts.push_back(batch / in_block);
  List order{static_cast<int64_t>(axes)}, cut, begins, ends;
  for (size_t i = 0; i < axes; ++i) {
    const auto axis = static_cast<int64_t>(i) + 1;
    const int64_t size = x.dim(axis).value() * block[i];
    user_check(
        crops[2 * i] >= 0 && crops[2 * i + 1] >= 0 && crops[2 * i] <= size - crops[2 * i + 1],
        ErrorKind::InvalidArgument, "it crops more than there is.");
    parts.push_back(x.dim(axis));
    shape.push_back(size);
    order.insert(order.end(), {static_cast<int64_t>(axes) + axis, static_cast<int64_t>(i)});
    cut.push_back(axis);
    begins.push_back(crops[2 * i]);
    ends.push_back(size - crops[2 * i + 1]);
  }
  for (int64_t axis = static_cast<int64_t>(axes) + 1; axis < x.rank(); ++axis) {
    order.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(x.dim(axis));
    shape.push_back(x.dim(axis));
  }
  return slice(reshape(transpose(reshape(x, parts), order), shape), cut, begins, ends);
}

}  // namespace oar::interop
