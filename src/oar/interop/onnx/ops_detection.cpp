// Boxes, deformed windows, patches, text.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

using List = std::vector<int64_t>;

// For each image and class: the boxes that stay, as (image, class, box). How many is known when it runs.
Values non_maximum(const Call& c) {
  const Tensor &boxes = c.tensor(0), &scores = c.tensor(1);
  const int64_t most = c.has(2) ? c.integers(2).at(0) : 0;
  const double overlap = c.has(3) ? c.numbers(3).at(0) : 0;
  const int64_t images = boxes.dim(0).value(), classes = scores.dim(1).value();
  if (images * classes > 4096) c.refuse("it has more than 4096 images and classes");
  std::vector<Tensor> rows{zeros({0, 3}, DType::Int64)};
  for (int64_t image = 0; image < images && most > 0; ++image) {
    const Tensor own = squeeze(slice(boxes, {0}, {image}, {image + 1}), IntArgs({0}));
    std::vector<Tensor> side = unbind(own, 1);
    if (c.integer("center_point_box", 0) == 1)
      side = {side[0] - side[2] * 0.5, side[1] - side[3] * 0.5, side[0] + side[2] * 0.5,
              side[1] + side[3] * 0.5};
    const Tensor corners = stack({minimum(side[0], side[2]), minimum(side[1], side[3]),
                                  maximum(side[0], side[2]), maximum(side[1], side[3])},
                                 1);
    for (int64_t kind = 0; kind < classes; ++kind) {
      const Tensor score =
          reshape(slice(scores, {0, 1}, {image, kind}, {image + 1, kind + 1}), {-1});
      const Tensor good =
          c.has(4) ? reshape(nonzero(greater_than(score, reshape(c.tensor(4), Shape{}))), {-1})
                   : range(0, score.dim(0).value(), 1, DType::Int64);
      const Tensor kept =
          nms(index_select(corners, good, 0), overlap, index_select(score, good, 0));
      const Tensor best = slice(index_select(good, kept, 0), {0}, {0}, {most});
      rows.push_back(stack({full_like(best, image), full_like(best, kind), best}, 1));
    }
  }
  return {concat(rows, 0)};
}

Values deformed(const Call& c) {
  const List pads = c.list("pads", {0, 0, 0, 0}), ones{1, 1};
  if (c.tensor(0).rank() != 4) c.refuse("it is no convolution of images");
  if (pads[0] != pads[2] || pads[1] != pads[3]) c.refuse("its pads differ at the two ends");
  return {deform_conv2d(c.tensor(0), c.tensor(2), c.tensor(1), c.maybe(3), c.list("strides", ones),
                        List{pads[0], pads[1]}, c.list("dilations", ones),
                        c.integer("offset_group", 1), c.integer("group", 1), c.maybe(4))};
}

// Patches summed at their places. The axes of the blocks are scattered one element of the block at a time.
Values columns_to_image(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List image = c.integers(1), block = c.integers(2);
  const size_t axes = image.size();
  const List ones(axes, 1), stride = c.list("strides", ones), dilation = c.list("dilations", ones),
                            pads = c.list("pads", List(2 * axes, 0));
  if (stride.size() != axes || dilation.size() != axes || pads.size() != 2 * axes ||
      block.size() != axes)
    c.refuse("strides, dilations and pads do not fit");
  int64_t in_block = 1, padded = 1;
  List count(axes), size(axes);
  for (size_t i = 0; i < axes; ++i) {
    size[i] = image[i] + pads[i] + pads[axes + i];
    count[i] = (size[i] - (dilation[i] * (block[i] - 1) + 1)) / stride[i] + 1;
    if (stride[i] < 1 || count[i] < 1 || size[i] > 1 << 24)
      c.refuse("its blocks do not fit the image");
    in_block *= block[i];
    padded *= size[i];
  }
  if (padded > int64_t{1} << 31 || in_block > 1 << 20) c.refuse("its image is too large");
  List place;  // of every element of every block in the padded image
  int64_t blocks = 1;
  for (const int64_t n : count) blocks *= n;
  for (int64_t k = 0; k < in_block; ++k)
    for (int64_t b = 0; b < blocks; ++b) {
      int64_t rest_k = k, rest_b = b, at = 0, step = 1;
      for (size_t i = axes; i-- > 0;) {
        at += step * ((rest_b % count[i]) * stride[i] + (rest_k % block[i]) * dilation[i]);
        step *= size[i];
        rest_k /= block[i];
        rest_b /= count[i];
      }
      place.push_back(at);
    }
  const Dim n = x.dim(0), channels = floor_div(x.dim(1), in_block);
  const Tensor values = reshape(x, {n, channels, in_block * blocks});
  const Tensor index = broadcast_to(
      Tensor::from_vector(place, Shape{1, 1, in_block * blocks}, DType::Int64), values.shape());
  Tensor made =
      put_along_axis(zeros({n, channels, padded}, x.dtype()), index, values, 2, "add", true, false);
  std::vector<Dim> shape{n, channels};
  List cut, starts, ends;
  for (size_t i = 0; i < axes; ++i) {
    shape.push_back(size[i]);
    cut.push_back(static_cast<int64_t>(i) + 2);
    starts.push_back(pads[i]);
    ends.push_back(pads[i] + image[i]);
  }
  return {slice(reshape(made, shape), cut, starts, ends)};
}

Values affine(const Call& c) {
  return {affine_grid(c.tensor(0), c.sizes(1), c.flag("align_corners"))};
}

Values center_crop_pad(const Call& c) {
  Tensor x = c.tensor(0);
  const List wanted = c.integers(1);
  List axes = c.list("axes");
  if (axes.empty())
    for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (axes.size() != wanted.size()) c.refuse("its shape does not fit its axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + x.rank() : axes[i], size = x.dim(axis).value();
    const int64_t first = std::abs(size - wanted[i]) / 2;
    if (wanted[i] < size) {
      x = slice(x, {axis}, {first}, {first + wanted[i]});
    } else {
      List pads(2 * static_cast<size_t>(x.rank()));
      pads.at(2 * static_cast<size_t>(axis)) = first;
      pads.at(2 * static_cast<size_t>(axis) + 1) = wanted[i] - size - first;
      x = pad_constant(x, pads, 0.0);
    }
  }
  return {x};
}

Values pooled_rois(const Call& c) {
  const Tensor &x = c.tensor(0), &rois = c.tensor(1);
  const Tensor batch = cast(reshape(slice(rois, {1}, {0}, {1}), {-1}), DType::Int64);
  const Tensor order = argsort(batch, -1, false, true);
  const Tensor counts = cast(bincount(batch, {}, x.dim(0).value()), DType::Int32);
  const Tensor boxes = index_select(slice(rois, {1}, {1}, {5}), order, 0);
  const Tensor made =
      roi_pool(x, boxes, counts, c.list("pooled_shape"), c.number("spatial_scale", 1));
  return {index_select(made, argsort(order), 0)};
}

// Counts of n-grams of a text of numbers, which the model must know at import.
Values tf_idf(const Call& c) {
  const List pool = c.list("pool_int64s"), starts = c.list("ngram_counts"),
             places = c.list("ngram_indexes");
  if (pool.empty()) c.refuse("its n-grams are strings");
  const std::vector<double> weights = c.number_list("weights");
  const int64_t shortest = c.integer("min_gram_length", 1),
                longest = c.integer("max_gram_length", 1), skips = c.integer("max_skip_count", 0);
  const std::string mode = c.text("mode", "TF");
  int64_t width = 0;
  for (const int64_t p : places) {
    if (p < 0 || p > 1 << 24) c.refuse("an index of its n-grams is impossible");
    width = std::max(width, p + 1);
  }
  const Tensor x = cast(c.tensor(0), DType::Int64);
  const bool batched = x.rank() == 2;
  const Dim steps = x.dim(-1);
  const Dim rows = batched ? x.dim(0) : Dim(1);
  const Tensor text = reshape(x, {rows, steps});
  std::vector<Tensor> columns(static_cast<size_t>(width));
  size_t place = 0;
  for (size_t g = 0; g < starts.size(); ++g) {
    const auto length = static_cast<int64_t>(g) + 1;
    const int64_t begin = starts[g];
    const int64_t end = g + 1 < starts.size() ? starts[g + 1] : static_cast<int64_t>(pool.size());
    for (int64_t at = begin; at + length <= end; at += length, ++place) {
      if (place >= places.size() || begin < 0 || end > static_cast<int64_t>(pool.size()))
        c.refuse("its n-grams do not fit their indices");
      if (length < shortest || length > longest) continue;
      Tensor found = zeros({rows}, DType::Float32);
      for (int64_t step = 1; step <= (length == 1 ? 1 : skips + 1); ++step) {
        const int64_t last = steps.value() - (length - 1) * step;
        if (last <= 0) break;
        Tensor matches;
        for (int64_t k = 0; k < length; ++k) {
          const Tensor part = slice(text, {1}, {k * step}, {k * step + last});
          const Tensor hit = equal(part, full({}, pool[static_cast<size_t>(at + k)], DType::Int64));
          matches = matches.defined() ? logical_and(matches, hit) : hit;
        }
        found = found + sum(cast(matches, DType::Float32), IntArgs({1}), DType::Float32, false);
      }
      const auto column = static_cast<size_t>(places[place]);
      if (mode != "TF") {
        if (mode == "IDF") found = cast(greater_than(found, zeros_like(found)), DType::Float32);
        if (place < weights.size()) found = found * weights[place];
      }
      columns[column] = columns[column].defined() ? columns[column] + found : found;
    }
  }
  for (Tensor& column : columns)
    if (!column.defined()) column = zeros({rows}, DType::Float32);
  const Tensor made = stack(columns, 1);
  return {batched ? made : reshape(made, {width})};
}

constexpr Converter kConverters[] = {
    {"NonMaxSuppression", non_maximum}, {"DeformConv", deformed},
    {"Col2Im", columns_to_image},       {"AffineGrid", affine},
    {"CenterCropPad", center_crop_pad}, {"MaxRoiPool", pooled_rois},
    {"TfIdfVectorizer", tf_idf},
};

}  // namespace

std::span<const Converter> detection_converters() { return kConverters; }

}  // namespace oar::onnx
