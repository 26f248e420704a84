// Elements chosen by index or by a mask, and writes.
#include <cmath>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

Value embedded(const Call& c) { return embedding(c.tensor("indices"), c.tensor("weight")); }
Value embedded_bags(const Call& c) {
  const Tensor &indices = c.tensor("indices"), &weight = c.tensor("weight"),
               &offsets = c.tensor("offsets");
  const int64_t mode = c.integer("mode");
  if (mode > 1) c.refuse("it takes maxima");
  if (c.has("per_sample_weights")) c.refuse("its samples have weights");
  const bool ended = c.flag("include_last_offset");
  const Tensor starts = ended ? slice(offsets, {0}, {0}, {offsets.dim(0).value() - 1}) : offsets;
  const Tensor rows = embedding(indices, weight);
  const Tensor at = range(0, indices.dim(0).value(), 1, starts.dtype());
  const Tensor bag = cast(searchsorted(starts, at, false, true), DType::Int64) - 1;
  const List size{starts.dim(0).value(), weight.dim(1).value()};
  Tensor made = index_add(zeros(DimArgs(size), weight.dtype()), bag, 0, rows);
  if (mode == 1) {
    const Tensor counts = cast(bincount(bag, {}, size[0]), weight.dtype());
    made = made / maximum(reshape(counts, {-1, 1}), ones({1, 1}, weight.dtype()));
  }
  const Tensor none = zeros({0}, DType::Int64);
  return c.tuple({made, bag, none, none});
}

Value indexed(const Call& c) { return index_get(c.tensor("self"), c.tensors("indices")); }
Value chosen_slices(const Call& c) {
  const Tensor &x = c.tensor("self"), &index = c.tensor("index");
  return index_select(x, index.rank() == 0 ? reshape(index, {1}) : index, c.axis("dim", x.rank()));
}
Value gathered(const Call& c) {
  const Tensor& x = c.tensor("self");
  return take_along(x, c.tensor("index"), c.axis("dim", x.rank()));
}
Value taken_along(const Call& c) {
  const Tensor &x = c.tensor("self"), &index = c.tensor("indices");
  if (!c.has("dim")) return take_along(reshape(x, {-1}), reshape(index, {-1}), 0);
  return take_along_axis(x, index, c.axis("dim", x.rank()), true);
}
Value taken(const Call& c) { return take(c.tensor("self"), c.tensor("index")); }

Tensor scattered(const Call& c, const Tensor& source, const std::string& how, bool include_self) {
  const Tensor& x = c.tensor("self");
  return put_along_axis(x, c.tensor("index"), source, c.axis("dim", x.rank()), how, include_self,
                        false);
}
// The source may be larger than the index.
Tensor source_of(const Call& c) {
  const Tensor &index = c.tensor("index"), &source = c.tensor("src");
  List axes, starts, ends;
  for (int64_t i = 0; i < index.rank(); ++i) {
    if (index.dim(i) == source.dim(i)) continue;
    axes.push_back(i);
    starts.push_back(0);
    ends.push_back(index.dim(i).value());
  }
  return axes.empty() ? source : slice(source, axes, starts, ends);
}
Value scattered_values(const Call& c) {
  const Tensor& x = c.tensor("self");
  const bool number = c.takes("value");
  const Tensor source =
      number ? full(DimArgs(c.tensor("index").dims()), Scalar(c.number("value")), x.dtype())
             : source_of(c);
  std::string how = "assign";
  if (c.has("reduce")) how = c.text("reduce") == "multiply" ? "mul" : c.text("reduce");
  return scattered(c, source, how, true);
}
Value scattered_sums(const Call& c) { return scattered(c, source_of(c), "add", true); }
Value scattered_reduced(const Call& c) {
  const std::string given = c.text("reduce");
  const std::string how = given == "sum" ? "add" : given == "prod" ? "mul" : given;
  return scattered(c, source_of(c), how, c.flag("include_self"));
}
Value added_slices(const Call& c) {
  const Tensor& x = c.tensor("self");
  const Tensor& source = c.tensor("source");
  return index_add(x, c.tensor("index"), c.axis("dim", x.rank()),
                   c.number("alpha") == 1 ? source : source * c.operand("alpha"));
}
Value filled_slices(const Call& c) {
  const Tensor& x = c.tensor("self");
  return index_fill(x, c.tensor("index"), c.axis("dim", x.rank()),
                    cast(c.operand("value"), x.dtype()));
}
Value copied_slices(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  std::vector<Tensor> indices(static_cast<size_t>(axis) + 1);
  indices.back() = c.tensor("index");
  if (axis == 0) return index_put(x, indices, c.tensor("source"));
  const Tensor moved = swapaxes(x, 0, axis);
  return swapaxes(index_put(moved, std::vector<Tensor>{c.tensor("index")},
                            swapaxes(c.tensor("source"), 0, axis)),
                  0, axis);
}
Value put_at(const Call& c) {
  const Tensor& x = c.tensor("self");
  const Tensor values = cast(c.operand("values"), x.dtype());
  return index_put(x, c.tensors("indices"), values, c.flag("accumulate"));
}
Value masked_filled(const Call& c) {
  const Tensor& x = c.tensor("self");
  return masked_fill(x, c.tensor("mask"), cast(c.operand("value"), x.dtype()));
}
Value masked_chosen(const Call& c) { return masked_select(c.tensor("self"), c.tensor("mask")); }
Value masked_scattered(const Call& c) {
  return masked_scatter(c.tensor("self"), c.tensor("mask"), c.tensor("source"));
}
Value places(const Call& c) { return nonzero(c.tensor("self")); }
Value places_by_axis(const Call& c) {
  const Tensor found = nonzero(c.tensor("self"));
  std::vector<Tensor> all;
  for (int64_t i = 0; i < c.tensor("self").rank(); ++i)
    all.push_back(squeeze(slice(found, {1}, {i}, {i + 1}), IntArgs({1})));
  return c.listed(all);
}
Value distinct_values(const Call& c) {
  const Tensor& x = c.tensor("self");
  const auto [values, first, inverse, counts] = unique_flat(x, false, true, true);
  return c.tuple({values, reshape(cast(inverse, DType::Int64), DimArgs(x.dims())),
                  cast(counts, DType::Int64)});
}
Value one_hot_of(const Call& c) {
  if (c.integer("num_classes") < 0) c.refuse("its number of classes depends on values");
  return cast(one_hot(c.tensor("self"), c.integer("num_classes")), DType::Int64);
}
Value is_in(const Call& c) {
  return isin(c.tensor("elements"), c.tensor("test_elements"), false, c.flag("invert"));
}
Value found_in_sorted(const Call& c) {
  return searchsorted(c.tensor("sorted_sequence"), c.tensor("self"), c.flag("out_int32"),
                      c.flag("right") || (c.has("side") && c.text("side") == "right"));
}
Value in_buckets(const Call& c) {
  return bucketize(c.tensor("self"), c.tensor("boundaries"), c.flag("out_int32"), c.flag("right"));
}

// ---- parts that are replaced -------------------------------------------------------------------

Value slice_replaced(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), size = x.dim(axis).value();
  const auto within = [&](const char* name, int64_t otherwise) {
    int64_t at = c.has(name) ? c.integer(name) : otherwise;
    if (at < 0) at += size;
    return std::clamp<int64_t>(at, 0, size);
  };
  return slice_scatter(x, c.tensor("src"), {axis}, {within("start", 0)}, {within("end", size)},
                       {c.integer("step")});
}
Value select_replaced(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), at = c.integer("index");
  return select_scatter(x, c.tensor("src"), axis, at < 0 ? at + x.dim(axis).value() : at);
}

// ---- writes ------------------------------------------------------------------------------------

Value written(const Call& c) {
  const Tensor& x = c.tensor("self");
  copy_into(x, c.operand("src"));
  return x;
}
Value overwritten(const Call& c) {
  const Tensor& x = c.tensor("self");
  copy_into(x, cast(c.operand("value"), x.dtype()));
  return x;
}
Value zeroed(const Call& c) {
  const Tensor& x = c.tensor("self");
  copy_into(x, zeros_like(x));
  return x;
}
Value replaced(const Call& c) {
  const Tensor& x = c.tensor("self");
  return broadcast_to(cast(c.operand("src"), x.dtype()), DimArgs(x.dims()));
}
Value refilled(const Call& c) {
  const Tensor& x = c.tensor("self");
  return broadcast_to(cast(c.operand("value"), x.dtype()), DimArgs(x.dims()));
}

// ---- boxes -------------------------------------------------------------------------------------

Value kept_boxes(const Call& c) {
  const Tensor& scores = c.tensor("scores");
  return nms(c.tensor("dets"), c.number("iou_threshold"), scores);
}

// A region has the number of its image before its corners; Oar takes the regions of one image after the other.
Value regions_of_one_size(const Call& c) {
  const Tensor &x = c.tensor("input"), &regions = c.tensor("rois");
  const Tensor image = squeeze(slice(regions, {1}, {0}, {1}), IntArgs({1}));
  const Tensor order = argsort(image, 0, false, true);
  const Tensor boxes = index_select(slice(regions, {1}, {1}, {5}), order, 0);
  const Tensor numbers = range(0, x.dim(0).value(), 1, image.dtype());
  const Tensor counts =
      sum(cast(equal(unsqueeze(image, {1}), unsqueeze(numbers, {0})), DType::Int32), IntArgs({0}));
  const Tensor made =
      roi_align(x, boxes, counts, {c.integer("pooled_height"), c.integer("pooled_width")},
                c.number("spatial_scale"), c.integer("sampling_ratio"), c.flag("aligned"));
  return index_select(made, argsort(order, 0, false, true), 0);
}

constexpr Converter kConverters[] = {
    {"embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
     embedded},
    {"embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, "
     "include_last_offset=False, padding_idx=-1)",
     embedded_bags},
    {"_embedding_bag(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, "
     "include_last_offset=False, padding_idx=-1)",
     embedded_bags},
    {"_embedding_bag_forward_only(weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, "
     "per_sample_weights=None, include_last_offset=False, padding_idx=-1)",
     embedded_bags},
    {"index(self:Tensor, indices)", indexed},
    {"_unsafe_index(self:Tensor, indices)", indexed},
    {"index_select(self, dim, index)", chosen_slices},
    {"gather(self, dim, index, sparse_grad=False)", gathered},
    {"take_along_dim(self, indices, dim=None)", taken_along},
    {"take(self, index)", taken},
    {"scatter(self, dim, index, src:Tensor, reduce=None)", scattered_values},
    {"scatter(self, dim, index, value, reduce=None)", scattered_values},
    {"scatter_add(self, dim, index, src)", scattered_sums},
    {"scatter_reduce(self, dim, index, src, reduce, include_self=True)", scattered_reduced},
    {"index_add(self, dim, index, source, alpha=1)", added_slices},
    {"index_fill(self, dim, index, value)", filled_slices},
    {"index_copy(self, dim, index, source)", copied_slices},
    {"index_put(self, indices, values, accumulate=False)", put_at},
    {"_unsafe_index_put(self, indices, values, accumulate=False)", put_at},
    {"_index_put_impl(self, indices, values, accumulate=False, unsafe=False)", put_at},
    {"masked_fill(self, mask, value)", masked_filled},
    {"masked_select(self, mask)", masked_chosen, Converter::Counts},
    {"masked_scatter(self, mask, source)", masked_scattered},
    {"nonzero(self)", places, Converter::Counts},
    {"nonzero_numpy(self)", places_by_axis, Converter::Counts},
    {"argwhere(self)", places, Converter::Counts},
    {"_unique2(self, sorted=True, return_inverse=False, return_counts=False)", distinct_values,
     Converter::Counts},
    {"one_hot(self, num_classes=-1)", one_hot_of},
    {"isin(elements, test_elements, assume_unique=False, invert=False)", is_in},
    {"searchsorted(sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None)",
     found_in_sorted},
    {"bucketize(self, boundaries, out_int32=False, right=False)", in_buckets},
    {"slice_scatter(self, src, dim=0, start=None, end=None, step=1)", slice_replaced},
    {"select_scatter(self, src, dim, index)", select_replaced},
    {"copy_(self, src, non_blocking=False)", written, Converter::Writes},
    {"fill_(self, value)", overwritten, Converter::Writes},
    {"zero_(self)", zeroed, Converter::Writes},
    {"copy(self:Tensor, src, non_blocking=False)", replaced},
    {"fill(self, value)", refilled},
    {"roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)",
     regions_of_one_size},
    {"nms(dets, scores, iou_threshold)", kept_boxes, Converter::Counts},
};

}  // namespace

std::span<const Converter> selection_converters() { return kConverters; }

}  // namespace oar::pytorch
