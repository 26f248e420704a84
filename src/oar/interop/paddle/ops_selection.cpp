// Slices, gathers, sorting, lookups.
#include <limits>

#include "oar/interop/paddle/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/all.h"

namespace oar::paddle {
namespace {

using List = std::vector<int64_t>;

int64_t from_end(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// A slice of sizes is a list of sizes.
std::vector<Dim> slice_of(const std::vector<Dim>& list, int64_t start, int64_t end) {
  const auto count = static_cast<int64_t>(list.size());
  const auto bound = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + count : at, 0, count);
  };
  std::vector<Dim> taken;
  for (int64_t i = bound(start); i < bound(end); ++i) taken.push_back(list[static_cast<size_t>(i)]);
  return taken;
}

// An end that is the size of the axis, whatever that is, is its end.
List ends_of(const Call& c, const Tensor& x, const List& axes, size_t operand) {
  List ends;
  const std::vector<Dim> given = c.sizes(operand, "ends");
  for (size_t i = 0; i < given.size() && i < axes.size(); ++i) {
    if (given[i].is_symbolic() && given[i] == x.dim(axes[i]))
      ends.push_back(std::numeric_limits<int32_t>::max());
    else if (given[i].is_symbolic())
      c.refuse("its end depends on the sizes of a run");
    else
      ends.push_back(given[i].value());
  }
  return ends;
}

Values sliced(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List axes = c.list("axes"), starts = c.integers(1, "starts");
  const List ends = ends_of(c, x, axes, 2), dropped = c.list("decrease_axis");
  if (starts.size() != axes.size() || ends.size() != axes.size())
    c.refuse("starts and ends do not fit the axes");
  // The last element alone is x[-1:0] in Paddle's files.
  List stops = ends;
  for (size_t i = 0; i < axes.size(); ++i)
    if (starts[i] == -1 && stops[i] == 0 &&
        std::find(dropped.begin(), dropped.end(), axes[i]) != dropped.end())
      stops[i] = std::numeric_limits<int32_t>::max();
  Tensor result = slice(x, axes, starts, stops);
  if (!dropped.empty()) result = squeeze(result, IntArgs(dropped));
  const auto sizes = is_integral(x.dtype()) && x.rank() == 1 ? c.maybe_sizes(0) : std::nullopt;
  if (!sizes || axes != List{0}) return {result};
  return {Item(result, slice_of(*sizes, starts[0], stops[0]))};
}
Values strided(const Call& c) {
  const List axes = c.list("axes"), dropped = c.list("decrease_axis");
  Tensor result = strided_slice(c.tensor(0), axes, c.integers(1, "starts"), c.integers(2, "ends"),
                                c.integers(3, "strides"));
  if (!dropped.empty()) result = squeeze(result, IntArgs(dropped));
  return {result};
}

// Elements of a slice replaced by those of a tensor, or by numbers that the file has.
Values slice_replaced(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List axes = c.list("axes"), dropped = c.list("decrease_axes");
  if (!c.list("none_axes").empty()) c.refuse("its index adds axes");
  const std::vector<Dim> starts = c.sizes(2, "starts"), ends = c.sizes(3, "ends");
  const List steps = c.integers(4, "steps");
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
    c.refuse("starts, ends and steps do not fit the axes");
  SliceIndex index;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto i = static_cast<size_t>(std::find(axes.begin(), axes.end(), axis) - axes.begin());
    if (i == axes.size())
      index.all();
    else if (std::find(dropped.begin(), dropped.end(), axis) != dropped.end())
      index.at(starts[i]);
    else
      index.range(starts[i], ends[i], steps[i]);
  }
  if (c.has(1)) return {slice_put(x, c.tensor(1), index)};
  const std::vector<double> values = c.number_list("values");
  const List shape = c.list("shape");
  int64_t count = 1;
  for (const int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) c.refuse("its shape is no shape");
  if (values.empty() || count != static_cast<int64_t>(values.size())) c.refuse("it has no values");
  return {slice_put(
      x,
      Tensor::from_vector(values, Shape(std::vector<Dim>(shape.begin(), shape.end())), x.dtype()),
      index)};
}
// The same without a tensor among the operands.
Values slice_filled(const Call& c) {
  std::vector<Item> operands{c.item(0), Item()};
  for (size_t i = 1; i < c.count(); ++i) operands.push_back(c.item(i));
  return slice_replaced(Call(c.node, std::move(operands)));
}

Values gathered(const Call& c) {
  const Tensor &x = c.tensor(0), &index = c.tensor(1);
  const int64_t axis = from_end(c.integer(2, "axis", 0), x.rank());
  const auto sizes = is_integral(x.dtype()) && x.rank() == 1 ? c.maybe_sizes(0) : std::nullopt;
  const auto places = c.maybe_sizes(1);
  const Tensor result = gather(x, index, axis);
  if (!sizes || !places || !c.item(1).known) return {result};
  std::vector<Dim> taken;
  for (const Dim d : *places) {
    const auto at = static_cast<size_t>(from_end(d.value(), static_cast<int64_t>(sizes->size())));
    if (at >= sizes->size()) c.refuse("an index is out of range");
    taken.push_back((*sizes)[at]);
  }
  return {Item(result, taken)};
}
Values gathered_nd(const Call& c) { return {gather_nd(c.tensor(0), c.tensor(1))}; }
Values selected(const Call& c) {
  return {index_select(c.tensor(0), c.tensor(1), c.integer("axis", 0))};
}
Values sampled(const Call& c) { return {index_sample(c.tensor(0), c.tensor(1))}; }
Values taken_along(const Call& c) {
  return {take_along_axis(c.tensor(0), c.tensor(1), c.integer("axis", 0), false)};
}
Values put_along(const Call& c) {
  const std::string reduce = c.text("reduce", "assign");
  return {put_along_axis(c.tensor(0), c.tensor(1), c.tensor(2), c.integer("axis", 0), reduce,
                         c.flag("include_self", true), false)};
}
Values scattered(const Call& c) {
  return {scatter(c.tensor(0), c.tensor(1), c.tensor(2), c.flag("overwrite", true))};
}
Values scattered_nd(const Call& c) {
  return {scatter_nd_add(c.tensor(0), c.tensor(1), c.tensor(2))};
}
Values chosen(const Call& c) { return {where(c.tensor(0), c.tensor(1), c.tensor(2))}; }
Values masked(const Call& c) { return {masked_select(c.tensor(0), c.tensor(1))}; }
Values places(const Call& c) { return {nonzero(c.tensor(0))}; }
// Of a list of two, by a number: 0 or 1.
Values picked(const Call& c) {
  const std::vector<Tensor> both = c.tensors(0);
  if (both.size() != 2) c.refuse("it does not choose among two");
  const Tensor second = reshape(cast(c.tensor(1), DType::Bool), {});
  return {where(broadcast_to(second, DimArgs(both[0].dims())), both[1], both[0])};
}

Values embedded(const Call& c) {
  const int64_t padding = c.integer("padding_idx", -1);
  if (padding < 0) return {embedding(c.tensor(0), c.tensor(1))};
  return {embedding(c.tensor(0), c.tensor(1), padding)};
}
// Ids have a last axis of size 1, which the result replaces.
Values embedded_v1(const Call& c) {
  const int64_t padding = c.integer("padding_idx", -1);
  const Tensor ids = squeeze(c.tensor(0), IntArgs({-1}));
  if (padding < 0) return {embedding(ids, c.tensor(1))};
  return {embedding(ids, c.tensor(1), padding)};
}
Values one_hot_of(const Call& c) { return {one_hot(c.tensor(0), c.integer(1, "num_classes", 1))}; }

Values largest(const Call& c) {
  const auto [values, indices] = topk(c.tensor(0), c.integer(1, "k", 1), c.integer("axis", -1),
                                      c.flag("largest", true), c.flag("sorted", true));
  return {values, indices};
}
Values kth(const Call& c) {
  const auto [values, indices] =
      kthvalue(c.tensor(0), c.integer("k", 1), c.integer("axis", -1), c.flag("keepdim"));
  return {values, indices};
}
Values sorted(const Call& c) {
  const auto [values, indices] =
      sort_with_indices(c.tensor(0), c.integer("axis", -1), c.flag("descending"));
  return {values, indices};
}
Values found(const Call& c) {
  return {searchsorted(c.tensor(0), c.tensor(1), c.flag("out_int32"), c.flag("right"))};
}
Values flipped(const Call& c) { return {flip(c.tensor(0), c.list("axis"))}; }
Values rolled(const Call& c) {
  const List axes = c.list("axis"), shifts = c.integers(1, "shifts");
  if (axes.empty()) return {roll(c.tensor(0), shifts)};
  return {roll(c.tensor(0), shifts, IntArgs(axes))};
}
Values repeated(const Call& c) {
  return {repeat_interleave(c.tensor(0), c.integer("repeats", 1), c.integer("axis", 0))};
}
Values diagonal_of(const Call& c) {
  return {
      diagonal(c.tensor(0), c.integer("offset", 0), c.integer("axis1", 0), c.integer("axis2", 1))};
}
Values diagonal_matrix(const Call& c) {
  return {diag(c.tensor(0), c.integer("offset", 0), Scalar(c.number("padding_value", 0)))};
}
Values embedded_diagonal(const Call& c) {
  return {diag_embed(c.tensor(0), c.integer("offset", 0), c.integer("dim1", -2),
                     c.integer("dim2", -1))};
}

constexpr Converter kConverters[] = {
    {"set_value", slice_filled},
    {"set_value_with_tensor", slice_replaced},
    {"slice", sliced},
    {"strided_slice", strided},
    {"gather", gathered},
    {"gather_nd", gathered_nd},
    {"index_select", selected},
    {"index_sample", sampled},
    {"take_along_axis", taken_along},
    {"put_along_axis", put_along},
    {"scatter", scattered},
    {"scatter_nd_add", scattered_nd},
    {"where", chosen},
    {"masked_select", masked},
    {"nonzero", places},
    {"select_input", picked},
    {"embedding", embedded},
    {"lookup_table", embedded_v1},
    {"one_hot", one_hot_of},
    {"topk", largest},
    {"kthvalue", kth},
    {"argsort", sorted},
    {"searchsorted", found},
    {"flip", flipped},
    {"roll", rolled},
    {"repeat_interleave", repeated},
    {"diagonal", diagonal_of},
    {"diag", diagonal_matrix},
    {"diag_embed", embedded_diagonal},
};

}  // namespace

std::span<const Converter> selection_converters() { return kConverters; }

}  // namespace oar::paddle
