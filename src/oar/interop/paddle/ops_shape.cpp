// Shapes, joins, constants, and integers that are sizes.
#include <cmath>

#include "oar/interop/paddle/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::paddle {
namespace {

using List = std::vector<int64_t>;

int64_t from_end(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

Item with_sizes_of(const Call& c, const Tensor& result) {
  return {result, is_integral(result.dtype()) ? c.maybe_sizes(0) : std::nullopt};
}

Values shape_in(const Call& c, DType dtype) {
  const Tensor& x = c.tensor(0);
  std::vector<Dim> sizes(x.dims().begin(), x.dims().end());
  return {Item(as_tensor(sizes, dtype), sizes)};
}
Values shape_of(const Call& c) { return shape_in(c, DType::Int32); }
Values shape_of_64(const Call& c) { return shape_in(c, DType::Int64); }
Values count_of(const Call& c) {
  const Dim size = c.tensor(0).numel();
  return {Item(product_of({size}, DType::Int64), std::vector<Dim>{size})};
}

Values reshaped(const Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<Dim> shape = c.sizes(1, "shape");
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == Dim(0) && i < static_cast<size_t>(x.rank()))
      shape[i] = x.dim(static_cast<int64_t>(i));
  return {with_sizes_of(c, reshape(x, shape))};
}
Values squeezed(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List axes = c.integers(1, "axis");
  return {with_sizes_of(c, axes.empty() ? squeeze(x) : squeeze(x, IntArgs(axes)))};
}
// Axes are inserted one after the other.
Values unsqueezed(const Call& c) {
  Tensor x = c.tensor(0);
  for (const int64_t axis : c.integers(1, "axis")) x = unsqueeze(x, {axis});
  return {with_sizes_of(c, x)};
}
Values flattened(const Call& c) {
  return {flatten(c.tensor(0), c.integer("start_axis", 1), c.integer("stop_axis", 1))};
}
Tensor as_matrix(const Tensor& x, int64_t axis) {
  Dim rows = 1, columns = 1;
  for (int64_t i = 0; i < axis; ++i) rows = rows * x.dim(i);
  for (int64_t i = axis; i < x.rank(); ++i) columns = columns * x.dim(i);
  return reshape(x, {rows, columns});
}
Values flattened_at(const Call& c) { return {as_matrix(c.tensor(0), c.integer("axis", 1))}; }
Values transposed(const Call& c) { return {transpose(c.tensor(0), c.list("perm"))}; }

Values expanded(const Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<Dim> shape = c.sizes(1, "shape");
  const auto rank = static_cast<size_t>(x.rank());
  if (shape.size() < rank) c.refuse("its shape has fewer axes than the tensor");
  for (size_t i = 0; i < rank; ++i) {
    Dim& wanted = shape[shape.size() - rank + i];
    if (wanted == Dim(-1)) wanted = x.dim(static_cast<int64_t>(i));
  }
  return {broadcast_to(x, shape)};
}
Values expanded_as(const Call& c) {
  List target = c.list("target_shape");
  if (c.has(1)) return {broadcast_to(c.tensor(0), DimArgs(c.tensor(1).dims()))};
  return {broadcast_to(c.tensor(0), DimArgs(target))};
}
Values tiled(const Call& c) { return {tile(c.tensor(0), c.sizes(1, "repeat_times"))}; }

Item joined_sizes(const Call& c, const Tensor& result) {
  if (!is_integral(result.dtype())) return {result};
  return {result, c.maybe_sizes(0)};
}
Values joined(const Call& c) {
  std::vector<Tensor> parts = c.tensors(0);
  const int64_t axis = c.integer(1, "axis", 0);
  // An empty list of no axes joins nothing; Paddle leaves such parts out.
  const Tensor result = concat(parts, axis);
  return {result.rank() == 1 ? joined_sizes(c, result) : Item(result)};
}
Values stacked(const Call& c) {
  const Tensor result = stack(c.tensors(0), c.integer("axis", 0));
  return {result.rank() == 1 ? joined_sizes(c, result) : Item(result)};
}

Values list_of(const std::vector<Tensor>& parts) {
  std::vector<Item> items(parts.begin(), parts.end());
  return {Item::of_list(std::move(items))};
}
Values split_evenly(const Call& c) {
  const int64_t axis = from_end(c.integer(1, "axis", 0), c.tensor(0).rank());
  return list_of(chunk(c.tensor(0), c.integer("num", 1), axis));
}
// In sections (PIR), or in a number of parts (legacy).
Values split_up(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = from_end(c.integer(2, "axis", 0), x.rank());
  if (c.integer("num", 0) > 0) return list_of(chunk(x, c.integer("num", 1), axis));
  List sections = c.integers(1, "sections");
  int64_t rest = -1, sum = 0;
  for (size_t i = 0; i < sections.size(); ++i)
    sections[i] < 0 ? rest = static_cast<int64_t>(i) : sum += sections[i];
  if (rest >= 0) {
    const Dim whole = x.dim(axis);
    if (whole.is_symbolic()) c.refuse("a section depends on the sizes of a run");
    sections[static_cast<size_t>(rest)] = whole.value() - sum;
  }
  return list_of(split_sections(x, sections, axis));
}
Values unbound(const Call& c) { return list_of(unbind(c.tensor(0), c.integer("axis", 0))); }
Values unstacked(const Call& c) { return list_of(unbind(c.tensor(0), c.integer("axis", 0))); }

// Lists of values, which PIR has as values of their own.
Values combined(const Call& c) {
  std::vector<Item> items;
  for (size_t i = 0; i < c.count(); ++i) items.push_back(c.item(i));
  return {Item::of_list(std::move(items))};
}
Values taken_apart(const Call& c) { return c.items(0); }
Values taken_from_list(const Call& c) {
  const std::vector<Item> items = c.items(0);
  const auto at = static_cast<size_t>(c.integer("index", 0));
  if (at >= items.size()) c.refuse("its index is out of range");
  return {items[at]};
}

Scalar scalar_for(DType dtype, double value) {
  if (is_integral(dtype) && std::fabs(value) < 9e18) return Scalar(static_cast<int64_t>(value));
  return Scalar(value);
}

// Of integers that text holds exactly.
Scalar value_of(const Call& c, DType dtype) {
  const std::string exact = c.text("str_value", "");
  if (exact.empty()) return scalar_for(dtype, c.number("value", 0));
  try {
    if (is_integral(dtype) && exact.find_first_of(".eE") == std::string::npos)
      return Scalar(static_cast<int64_t>(std::stoll(exact)));
    return scalar_for(dtype, std::stod(exact));
  } catch (const std::exception&) {
    c.refuse("its value is no number: " + exact);
  }
}

Values filled(const Call& c) {
  const DType dtype = c.dtype("dtype").value_or(DType::Float32);
  const std::vector<Dim> shape = c.sizes(1, "shape");
  if (c.has(0)) return {broadcast_to(reshape(cast(c.tensor(0), dtype), {}), shape)};
  const Tensor made = full(shape, value_of(c, dtype), dtype);
  if (!is_integral(dtype) || made.numel().is_symbolic() || made.numel().value() > Item::kFew)
    return {made};
  return {made};
}
Values filled_like(const Call& c) {
  const Tensor& x = c.tensor(0);
  const DType dtype = c.dtype("dtype").value_or(x.dtype());
  if (c.has(1) && !c.item(1).numbers)
    return {broadcast_to(reshape(cast(c.tensor(1), dtype), {}), DimArgs(x.dims()))};
  return {full_like(x, scalar_for(dtype, c.number(1, "value", 0)), dtype)};
}
Values filled_like_batch(const Call& c) {
  const DType dtype = c.dtype("dtype").value_or(DType::Float32);
  std::vector<Dim> shape;
  for (const int64_t size : c.list("shape")) shape.emplace_back(size);
  shape.at(static_cast<size_t>(c.integer("output_dim_idx", 0))) =
      c.tensor(0).dim(c.integer("input_dim_idx", 0));
  return {full(shape, value_of(c, dtype), dtype)};
}
Values integer_array(const Call& c) {
  const List values = c.list("value");
  return {
      cast(Tensor::from_vector(values, Shape{static_cast<int64_t>(values.size())}, DType::Int64),
           c.dtype("dtype").value_or(DType::Int64))};
}
Values assigned(const Call& c) {
  const DType dtype = c.dtype("dtype").value_or(DType::Float32);
  std::vector<Dim> shape;
  for (const int64_t size : c.list("shape")) shape.emplace_back(size);
  for (const char* name : {"values", "fp32_values", "fp64_values"})
    if (const auto values = c.number_list(name); !values.empty() && !is_integral(dtype))
      return {Tensor::from_vector(values, Dims(shape), dtype)};
  for (const char* name : {"values", "int32_values", "int64_values", "int8_values", "bool_values"})
    if (const auto values = c.list(name); !values.empty()) {
      std::vector<int64_t> integers = values;
      const std::vector<double> numbers = c.number_list(name);
      for (size_t i = 0; i < integers.size() && i < numbers.size(); ++i)
        if (integers[i] == 0) integers[i] = static_cast<int64_t>(numbers[i]);
      return {cast(Tensor::from_vector(integers, Dims(shape), DType::Int64), dtype)};
    }
  return {zeros(shape, dtype)};
}
Values numbers_between(const Call& c) {
  const DType dtype = c.dtype("dtype").value_or(c.tensor(0).dtype());
  const auto number = [&](size_t i) {
    return is_integral(dtype) ? Scalar(c.integer(i, "", 0)) : Scalar(c.number(i, "", 0));
  };
  return {range(number(0), number(1), number(2), dtype)};
}
Values evenly_spaced(const Call& c) {
  const double from = c.number(0, "", 0), to = c.number(1, "", 0);
  const int64_t count = c.integer(2, "", 1);
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(count == 1 ? from
                                : from + (to - from) * static_cast<double>(i) /
                                             static_cast<double>(count - 1));
  return {Tensor::from_vector(values, Shape{count}, c.dtype("dtype").value_or(DType::Float32))};
}
Values identity_matrix(const Call& c) {
  const int64_t rows = c.integer(0, "num_rows", 1);
  int64_t columns = c.integer(1, "num_columns", rows);
  if (columns < 0) columns = rows;
  const Tensor ones_ = ones({rows, columns}, DType::Float32);
  return {cast(triu(tril(ones_, 0), 0), c.dtype("dtype").value_or(DType::Float32))};
}
Values lower(const Call& c) { return {tril(c.tensor(0), c.integer("diagonal", 0))}; }
Values upper(const Call& c) { return {triu(c.tensor(0), c.integer("diagonal", 0))}; }
Values triangle(const Call& c) { return c.flag("lower", true) ? lower(c) : upper(c); }
Values grid(const Call& c) { return list_of(meshgrid(c.tensors(0))); }

constexpr Converter kConverters[] = {
    {"shape", shape_of},
    {"shape64", shape_of_64},
    {"numel", count_of},
    {"reshape", reshaped},
    {"squeeze", squeezed},
    {"unsqueeze", unsqueezed},
    {"flatten", flattened},
    {"flatten_at", flattened_at},
    {"transpose", transposed},
    {"expand", expanded},
    {"expand_as", expanded_as},
    {"tile", tiled},
    {"concat", joined},
    {"stack", stacked},
    {"split", split_up},
    {"split_with_num", split_evenly},
    {"unbind", unbound},
    {"unstack", unstacked},
    {"combine", combined},
    {"vector_split", taken_apart},
    {"slice_list", taken_from_list},
    {"full", filled},
    {"full_with_tensor", filled},
    {"full_like", filled_like},
    {"full_batch_size_like", filled_like_batch},
    {"full_int_array", integer_array},
    {"assign_value", assigned},
    {"arange", numbers_between},
    {"linspace", evenly_spaced},
    {"eye", identity_matrix},
    {"tril", lower},
    {"triu", upper},
    {"tril_triu", triangle},
    {"meshgrid", grid},
};

}  // namespace

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::paddle
