// Elements chosen by indices, by order, by truth; boxes.
#include <algorithm>

#include "oar/interop/tensorflow/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

using List = std::vector<int64_t>;

Tensor gathered_along(const Tensor& x, const Tensor& places, int64_t axis) {
  const Tensor rows = index_select(x, reshape(cast(places, DType::Int64), {-1}), axis);
  std::vector<Dim> shape(x.dims().begin(), x.dims().begin() + axis);
  shape.insert(shape.end(), places.dims().begin(), places.dims().end());
  shape.insert(shape.end(), x.dims().begin() + axis + 1, x.dims().end());
  return reshape(rows, shape);
}

// Within batches: the first axes of both inputs become one, whose elements have indices of their own.
Tensor gathered_in_batches(const Call& c, int64_t axis, int64_t batches) {
  const Tensor &x = c.tensor(0), &places = c.tensor(1);
  if (batches > places.rank() || axis != batches) c.refuse("it gathers behind other axes");
  int64_t count = 1;
  for (int64_t i = 0; i < batches; ++i) count *= x.dim(i).value();
  const int64_t size = x.dim(axis).value();
  std::vector<Dim> joined{Dim(count * size)}, shape(places.dims().begin(), places.dims().end());
  joined.insert(joined.end(), x.dims().begin() + axis + 1, x.dims().end());
  shape.insert(shape.end(), x.dims().begin() + axis + 1, x.dims().end());
  const Tensor first = reshape(range(Scalar(int64_t{0}), Scalar(count * size),
                                     Scalar(std::max<int64_t>(size, 1)), DType::Int64),
                               {count, 1});
  const Tensor flat = reshape(cast(places, DType::Int64), {count, -1}) + first;
  return reshape(index_select(reshape(x, joined), reshape(flat, {-1}), 0), shape);
}

Items gathered(const Call& c) {
  const int64_t axis = c.axis(c.has(2) ? c.integer(2) : 0);
  int64_t batches = c.integer("batch_dims", 0);
  if (batches < 0) batches += c.tensor(1).rank();
  if (batches < 0 || batches > axis) c.refuse("it has an impossible number of batch axes");
  if (batches > 0) return {gathered_in_batches(c, axis, batches)};
  return {gathered_along(c.tensor(0), c.tensor(1), axis)};
}
Items gathered_nd(const Call& c) {
  return {gather_nd(c.tensor(0), cast(c.tensor(1), DType::Int64))};
}
// Rows of a variable.
Items gathered_of_variable(const Call& c) {
  const Item variable = c.around.variable(c.item(0).variable);
  return c.around.compute(c.node, c.known(1),
                          [&] { return Items{gathered_along(variable.tensor, c.tensor(1), 0)}; });
}

Items scattered(const Call& c) {
  return {scatter_nd(cast(c.tensor(0), DType::Int64), c.tensor(1), dims_of(c, c.integers(2)))};
}
Items scatter_added(const Call& c) {
  return {scatter_nd_add(c.tensor(0), cast(c.tensor(1), DType::Int64), c.tensor(2))};
}

// Values at these places of a tensor that holds the same number elsewhere.
Items dense_of(const Call& c) {
  const Tensor& places = c.tensor(0);
  const std::vector<Dim> shape = dims_of(c, c.integers(1));
  const auto rank = static_cast<int64_t>(shape.size());
  const Tensor index = reshape(cast(places, DType::Int64), {-1, rank});
  const Tensor values = broadcast_to(c.tensor(2), {index.dim(0)});
  const Tensor hit = scatter_nd(index, ones_like(values), shape);
  return {where(not_equal(hit, zeros_like(hit)), scatter_nd(index, values, shape), c.tensor(3))};
}

Items one_hot_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t depth = c.integer(1), axis = c.integer("axis", -1);
  if (depth < 0 || depth > (1 << 24)) c.refuse("its depth is impossible");
  const Tensor classes = range(Scalar(int64_t{0}), Scalar(depth), Scalar(int64_t{1}), x.dtype());
  Tensor hot = equal(unsqueeze(x, {-1}), classes);
  if (axis != -1) {
    if (axis < 0 || axis > x.rank()) c.refuse("it has an impossible axis");
    hot = moveaxis(hot, {-1}, {axis});
  }
  return {where(hot, c.tensor(2), c.tensor(3))};
}

Items largest(const Call& c) {
  const int64_t k = c.has(1) ? c.integer(1) : c.integer("k", 0);
  const Tensor& x = c.tensor(0);
  if (x.rank() < 1 || k < 0 || k > x.dim(-1).value()) c.refuse(format("its k is {}", k));
  // Of equal elements the first ones come first.
  const Tensor order = slice(argsort(x, -1, true, true), {x.rank() - 1}, {0}, {k});
  return {take_along_axis(x, order, -1), cast(order, c.dtype("index_type", DType::Int32))};
}

// ---- whose number of results depends on the elements ------------------------------------------

Items true_places(const Call& c) {
  c.need_steps("how many results it has depends on what the model computes");
  const Tensor& x = c.tensor(0);
  return {nonzero(is_bool(x.dtype()) ? x : not_equal(x, zeros_like(x)))};
}

// Those of the first list that are not in the second, and their places.
Items difference(const Call& c) {
  const List x = c.integers(0), y = c.integers(1);
  List kept, places;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::find(y.begin(), y.end(), x[i]) != y.end()) continue;
    kept.push_back(x[i]);
    places.push_back(static_cast<int64_t>(i));
  }
  const Shape shape{static_cast<int64_t>(kept.size())};
  return {Tensor::from_vector(kept, shape, c.tensor(0).dtype()),
          Tensor::from_vector(places, shape, c.dtype("out_idx", DType::Int32))};
}

// The places of boxes that stay, best first. Boxes are (y, x, y, x) of any two opposite corners.
Tensor kept_boxes(const Call& c, double overlap, double least) {
  c.need_steps("how many results it has depends on what the model computes");
  const std::vector<Tensor> side = unbind(c.tensor(0), 1);
  if (side.size() != 4) c.refuse("its boxes have other than four numbers");
  const Tensor corners = stack({minimum(side[0], side[2]), minimum(side[1], side[3]),
                                maximum(side[0], side[2]), maximum(side[1], side[3])},
                               1);
  const Tensor& scores = c.tensor(1);
  const Tensor good = reshape(nonzero(greater_than(scores, full({}, least, scores.dtype()))), {-1});
  const Tensor kept = nms(index_select(corners, good, 0), overlap, index_select(scores, good, 0));
  const int64_t most = std::min(std::max<int64_t>(c.integer(2), 0), kept.dim(0).value());
  return index_select(good, slice(kept, {0}, {0}, {most}), 0);
}
Tensor places_of(const Tensor& kept) { return cast(kept, DType::Int32); }

constexpr double kLowest = -3.4e38;
Items boxes_by_attribute(const Call& c) {
  return {places_of(kept_boxes(c, c.number("iou_threshold", 0.5), kLowest))};
}
Items boxes_by_overlap(const Call& c) { return {places_of(kept_boxes(c, c.number(3), kLowest))}; }
Items boxes_by_score(const Call& c) { return {places_of(kept_boxes(c, c.number(3), c.number(4)))}; }

// As many as are asked for, with zeros after the last one, if the node says so.
struct Padded {
  Tensor kept, count;
};
Padded padded_boxes(const Call& c) {
  const Tensor kept = kept_boxes(c, c.number(3), c.number(4));
  const int64_t count = kept.dim(0).value();
  const Tensor number = Tensor::scalar(count, DType::Int32);
  if (!c.flag("pad_to_max_output_size")) return {kept, number};
  return {pad_constant(kept, {0, c.integer(2) - count}, Scalar(int64_t{0})), number};
}
Items boxes_padded(const Call& c) {
  const auto [kept, count] = padded_boxes(c);
  return {places_of(kept), count};
}
Items boxes_with_scores(const Call& c) {
  if (c.number(5) != 0) c.refuse("it lowers scores instead of dropping boxes");
  const auto [kept, count] = padded_boxes(c);
  return {places_of(kept), index_select(c.tensor(1), kept, 0), count};
}

constexpr Converter kConverters[] = {
    {"Gather", gathered},
    {"GatherV2", gathered},
    {"GatherNd", gathered_nd},
    {"ResourceGather", gathered_of_variable, Converter::Leads},
    {"ScatterNd", scattered},
    {"TensorScatterAdd", scatter_added},
    {"SparseToDense", dense_of},
    {"OneHot", one_hot_of},
    {"TopK", largest, Converter::Computes, "values indices"},
    {"TopKV2", largest, Converter::Computes, "values indices"},
    {"Where", true_places},
    {"ListDiff", difference, Converter::Computes, "out idx"},
    {"NonMaxSuppression", boxes_by_attribute},
    {"NonMaxSuppressionV2", boxes_by_overlap},
    {"NonMaxSuppressionV3", boxes_by_score},
    {"NonMaxSuppressionV4", boxes_padded, Converter::Computes, "selected_indices valid_outputs"},
    {"NonMaxSuppressionV5", boxes_with_scores, Converter::Computes,
     "selected_indices selected_scores valid_outputs"},
};

}  // namespace

std::span<const Converter> selection_converters() { return kConverters; }

}  // namespace oar::tensorflow
