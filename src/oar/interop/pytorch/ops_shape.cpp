// Shapes, views, joins and parts.
#include <limits>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

// ---- sizes -------------------------------------------------------------------------------------

Value sizes_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (c.has("dim")) return Value::of(x.dim(c.axis("dim", x.rank())).value());
  std::vector<Value> sizes;
  for (const Dim d : x.dims()) sizes.push_back(Value::of(d.value()));
  return c.list_of(std::move(sizes));
}
Value strides_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  std::vector<Value> strides(static_cast<size_t>(x.rank()));
  int64_t step = 1;
  for (int64_t i = x.rank(); i-- > 0; step *= x.dim(i).value())
    strides[static_cast<size_t>(i)] = Value::of(step);
  if (c.has("dim")) return strides.at(static_cast<size_t>(c.axis("dim", x.rank())));
  return c.list_of(std::move(strides));
}
Value count_of(const Call& c) { return Value::of(c.tensor("self").numel().value()); }
Value rank_of(const Call& c) { return Value::of(int64_t{c.tensor("self").rank()}); }
Value shape_tensor(const Call& c) {
  List sizes;
  for (const Dim d : c.tensor("self").dims()) sizes.push_back(d.value());
  return Tensor::from_vector(sizes, Shape{static_cast<int64_t>(sizes.size())}, DType::Int64);
}

// ---- shapes ------------------------------------------------------------------------------------

Tensor shaped(const Tensor& x, const List& shape) { return reshape(x, DimArgs(shape)); }
Value reshaped(const Call& c) {
  return shaped(c.tensor("self"), c.list(c.takes("shape") ? "shape" : "size"));
}
Value read_as_type(const Call& c) { return bitcast(c.tensor("self"), *c.dtype("dtype")); }
Value shaped_like(const Call& c) {
  return reshape(c.tensor("self"), DimArgs(c.tensor("other").dims()));
}
Value flattened(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (x.rank() == 0) return reshape(x, {1});
  return flatten(x, c.axis("start_dim", x.rank()), c.axis("end_dim", x.rank()));
}
Value unflattened(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List sizes = c.list("sizes");
  return unflatten(x, c.axis("dim", x.rank()), DimArgs(sizes));
}
Value permuted(const Call& c) {
  const Tensor& x = c.tensor("self");
  List order = c.list("dims");
  for (int64_t& axis : order)
    if (axis < 0) axis += x.rank();
  return transpose(x, order);
}
Value swapped(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (x.rank() == 0) return x;
  return swapaxes(x, c.axis(c.takes("dim0") ? "dim0" : "axis0", x.rank()),
                  c.axis(c.takes("dim1") ? "dim1" : "axis1", x.rank()));
}
Value matrix_flipped(const Call& c) {
  const Tensor& x = c.tensor("self");
  return x.rank() < 2 ? x : swapaxes(x, -2, -1);
}
Value all_flipped(const Call& c) {
  const Tensor& x = c.tensor("self");
  List order;
  for (int64_t i = x.rank(); i-- > 0;) order.push_back(i);
  return transpose(x, order);
}
Value moved(const Call& c) {
  return moveaxis(c.tensor("self"), c.list("source"), c.list("destination"));
}
// Axes of another size than one stay.
Value squeezed(const Call& c) {
  const Tensor& x = c.tensor("self");
  if (!c.has("dim")) return squeeze(x);
  List axes;
  for (const int64_t given : c.list("dim")) {
    const int64_t axis = given < 0 ? given + x.rank() : given;
    if (axis < x.rank() && x.dim(axis) == Dim(1)) axes.push_back(axis);
  }
  return axes.empty() ? x : squeeze(x, IntArgs(axes));
}
Value unsqueezed(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List axes{c.axis("dim", x.rank() + 1)};
  return unsqueeze(x, axes);
}
Tensor expanded_to(const Call& c, const Tensor& x, const List& given) {
  std::vector<Dim> shape(given.begin(), given.end());
  const auto rank = static_cast<size_t>(x.rank());
  if (shape.size() < rank) c.refuse("its shape has fewer axes than the tensor");
  for (size_t i = 0; i < rank; ++i) {
    Dim& wanted = shape[shape.size() - rank + i];
    if (wanted == Dim(-1)) wanted = x.dim(static_cast<int64_t>(i));
  }
  return broadcast_to(x, shape);
}
Value expanded(const Call& c) { return expanded_to(c, c.tensor("self"), c.list("size")); }
Value expanded_like(const Call& c) {
  return broadcast_to(c.tensor("self"), DimArgs(c.tensor("other").dims()));
}
Value repeated(const Call& c) {
  const Tensor& x = c.tensor("self");
  const List times = c.list(c.takes("repeats") ? "repeats" : "dims");
  return tile(x, DimArgs(times));
}
Value repeated_each(const Call& c) {
  const Tensor& x = c.tensor("self");
  std::optional<int64_t> axis;
  if (c.has("dim")) axis = c.axis("dim", x.rank());
  const Value& repeats = c.value("repeats");
  if (repeats.is_tensor() && repeats.tensor.rank() > 0)
    return repeat_interleave_by(x, repeats.tensor, axis);
  return repeat_interleave(x, c.integer("repeats"), axis);
}
Value rolled(const Call& c) {
  const List axes = c.list("dims");
  if (axes.empty()) return roll(c.tensor("self"), c.list("shifts"));
  return roll(c.tensor("self"), c.list("shifts"), IntArgs(axes));
}
Value flipped(const Call& c) { return flip(c.tensor("self"), c.list("dims")); }
Value turned(const Call& c) { return rot90(c.tensor("self"), c.integer("k"), c.list("dims")); }
Value windows(const Call& c) {
  const Tensor& x = c.tensor("self");
  return unfold(x, c.axis("dimension", x.rank()), c.integer("size"), c.integer("step"));
}
Value strided(const Call& c) {
  const List size = c.list("size");
  return as_strided(c.tensor("self"), DimArgs(size), c.list("stride"),
                    c.has("storage_offset") ? c.integer("storage_offset") : 0);
}
Value same(const Call& c) { return c.tensor("self"); }
Value copied(const Call& c) { return assign(c.tensor("self")); }

// ---- joins -------------------------------------------------------------------------------------

// Empty tensors with one axis join anything.
Value joined(const Call& c) {
  const std::vector<Tensor> given = c.tensors("tensors");
  std::vector<Tensor> parts;
  DType dtype = DType::Bool;
  for (const Tensor& t : given) {
    if (!t.defined()) c.refuse("a part is missing");
    if (t.rank() == 1 && t.dim(0) == Dim(0) && given.size() > 1) continue;
    dtype = parts.empty() ? t.dtype() : promote(dtype, t.dtype());
    parts.push_back(t);
  }
  if (parts.empty()) return given.empty() ? zeros({0}, DType::Float32) : given[0];
  for (Tensor& t : parts)
    if (t.dtype() != dtype) t = cast(t, dtype);
  return concat(parts, c.axis("dim", parts[0].rank()));
}
Value stacked(const Call& c) {
  const std::vector<Tensor> parts = c.tensors("tensors");
  if (parts.empty()) c.refuse("it has no tensors");
  return stack(parts, c.axis("dim", parts[0].rank() + 1));
}
Value joined_beside(const Call& c) { return hstack(c.tensors("tensors")); }
Value joined_below(const Call& c) { return vstack(c.tensors("tensors")); }

// ---- parts -------------------------------------------------------------------------------------

Value in_pieces(const Call& c, const Tensor& x, int64_t axis, const List& sizes) {
  if (sizes.size() > 100000) c.refuse("it has too many parts");
  std::vector<Tensor> parts;
  int64_t from = 0;
  for (const int64_t size : sizes) {
    parts.push_back(slice(x, {axis}, {from}, {from + size}));
    from += size;
  }
  return c.listed(parts);
}
Value split_up(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank());
  const char* name = c.takes("split_size") ? "split_size" : "split_sizes";
  if (c.value(name).is_list()) return in_pieces(c, x, axis, c.list(name));
  const int64_t size = c.integer(name), whole = x.dim(axis).value();
  if (size <= 0) c.refuse(format("its parts have the size {}", size));
  List sizes;
  for (int64_t from = 0; from < whole || sizes.empty(); from += size)
    sizes.push_back(std::min(size, whole - from));
  return in_pieces(c, x, axis, sizes);
}
Value in_chunks(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), count = c.integer("chunks"),
                whole = x.dim(axis).value();
  if (count <= 0) c.refuse(format("it makes {} parts", count));
  const int64_t size = std::max<int64_t>((whole + count - 1) / count, 1);
  List sizes;
  for (int64_t from = 0; from < whole; from += size) sizes.push_back(std::min(size, whole - from));
  return in_pieces(c, x, axis, sizes);
}
Value split_evenly(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), whole = x.dim(axis).value();
  List sizes;
  if (c.takes("sections")) {
    const int64_t count = c.integer("sections");
    if (count <= 0 || count > 100000) c.refuse(format("it makes {} parts", count));
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(whole / count + (i < whole % count ? 1 : 0));
  } else {
    int64_t from = 0;
    for (const int64_t at : c.list("indices")) {
      sizes.push_back(std::max<int64_t>(std::min(at, whole) - from, 0));
      from = std::max(from, std::min(at, whole));
    }
    sizes.push_back(whole - from);
  }
  return in_pieces(c, x, axis, sizes);
}
Value unbound(const Call& c) {
  const Tensor& x = c.tensor("self");
  return c.listed(unbind(x, c.axis("dim", x.rank())));
}

// A start or an end as Python has it, within the axis.
int64_t within(int64_t at, int64_t size) {
  if (at < 0) at += size;
  return std::clamp<int64_t>(at, 0, size);
}
Value sliced(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), step = c.integer("step");
  const auto bound_of = [&](const char* name, int64_t otherwise) {
    return c.has(name) ? c.integer(name) : otherwise;
  };
  const int64_t last = std::numeric_limits<int64_t>::max();
  if (step <= 0) c.refuse(format("its step is {}", step));
  const int64_t given_start = bound_of("start", 0), given_end = bound_of("end", last);
  if (given_start == 0 && given_end == last && step == 1) return x;
  const int64_t size = x.dim(axis).value();
  const int64_t start = within(given_start, size), end = std::max(within(given_end, size), start);
  if (step == 1) return slice(x, {axis}, {start}, {end});
  return strided_slice(x, {axis}, {start}, {end}, {step});
}
Value selected(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), size = x.dim(axis).value();
  const int64_t given = c.integer("index"), at = given < 0 ? given + size : given;
  if (at < 0 || at >= size) c.refuse(format("its index {} is beyond the size {}", given, size));
  return squeeze(slice(x, {axis}, {at}, {at + 1}), IntArgs({axis}));
}
Value narrowed(const Call& c) {
  const Tensor& x = c.tensor("self");
  const int64_t axis = c.axis("dim", x.rank()), size = x.dim(axis).value();
  const int64_t start = within(c.integer("start"), size);
  return slice(x, {axis}, {start}, {std::min(start + c.integer("length"), size)});
}
Value diagonal_of(const Call& c) {
  return diagonal(c.tensor("self"), c.integer("offset"), c.integer("dim1"), c.integer("dim2"));
}
Value as_diagonal(const Call& c) { return diag(c.tensor("self"), c.integer("diagonal")); }
Value as_diagonals(const Call& c) {
  return diag_embed(c.tensor("self"), c.integer("offset"), c.integer("dim1"), c.integer("dim2"));
}
Value lower(const Call& c) { return tril(c.tensor("self"), c.integer("diagonal")); }
Value upper(const Call& c) { return triu(c.tensor("self"), c.integer("diagonal")); }
Value grid(const Call& c) {
  std::vector<Tensor> made = meshgrid(c.tensors("tensors"));
  if (c.has("indexing") && c.text("indexing") == "xy" && made.size() > 1) {
    std::vector<Tensor> lines = c.tensors("tensors");
    std::swap(lines[0], lines[1]);
    made = meshgrid(lines);
    std::swap(made[0], made[1]);
  }
  return c.listed(made);
}
Value broadcast_all(const Call& c) { return c.listed(broadcast_tensors(c.tensors("tensors"))); }
Value as_pairs(const Call& c) { return as_real(c.tensor("self")); }
Value from_pairs(const Call& c) { return as_complex(c.tensor("self")); }

constexpr Converter kConverters[] = {
    {"size(self, dim=None)", sizes_of},
    {"sym_size(self, dim=None)", sizes_of},
    {"stride(self, dim=None)", strides_of},
    {"sym_stride(self, dim=None)", strides_of},
    {"numel(self)", count_of},
    {"sym_numel(self)", count_of},
    {"dim(self)", rank_of},
    {"ndimension(self)", rank_of},
    {"_shape_as_tensor(self)", shape_tensor},
    {"view(self, dtype:int)", read_as_type},
    {"view(self, size)", reshaped},
    {"reshape(self, shape)", reshaped},
    {"_unsafe_view(self, size)", reshaped},
    {"_reshape_alias(self, size, stride)", reshaped},
    {"view_copy(self, size)", reshaped},
    {"view_as(self, other)", shaped_like},
    {"reshape_as(self, other)", shaped_like},
    {"flatten(self, start_dim=0, end_dim=-1)", flattened},
    {"unflatten(self, dim, sizes)", unflattened},
    {"permute(self, dims)", permuted},
    {"permute_copy(self, dims)", permuted},
    {"transpose(self, dim0, dim1)", swapped},
    {"swapaxes(self, axis0, axis1)", swapped},
    {"swapdims(self, dim0, dim1)", swapped},
    {"t(self)", matrix_flipped},
    {"mT(self)", matrix_flipped},
    {"adjoint(self)", matrix_flipped},
    {"numpy_T(self)", all_flipped},
    {"movedim(self, source, destination)", moved},
    {"moveaxis(self, source, destination)", moved},
    {"squeeze(self, dim=None)", squeezed},
    {"squeeze_copy(self, dim=None)", squeezed},
    {"unsqueeze(self, dim)", unsqueezed},
    {"unsqueeze_copy(self, dim)", unsqueezed},
    {"expand(self, size, implicit=False)", expanded},
    {"expand_copy(self, size, implicit=False)", expanded},
    {"broadcast_to(self, size)", expanded},
    {"expand_as(self, other)", expanded_like},
    {"broadcast_tensors(tensors)", broadcast_all},
    {"repeat(self, repeats)", repeated},
    {"tile(self, dims)", repeated},
    {"repeat_interleave(self, repeats, dim=None, output_size=None)", repeated_each},
    {"roll(self, shifts, dims=None)", rolled},
    {"flip(self, dims)", flipped},
    {"rot90(self, k, dims)", turned},
    {"unfold(self, dimension, size, step)", windows},
    {"as_strided(self, size, stride, storage_offset=None)", strided},
    {"contiguous(self, memory_format=None)", same},
    {"detach(self)", same},
    {"detach_(self)", same},
    {"alias(self)", same},
    {"requires_grad_(self, requires_grad=True)", same},
    {"lift_fresh(self)", same},
    {"positive(self)", same},
    {"resolve_conj(self)", same},
    {"resolve_neg(self)", same},
    {"cpu(self)", same},
    {"cuda(self)", same},
    {"clone(self, memory_format=None)", copied},
    {"lift_fresh_copy(self)", copied},
    {"detach_copy(self)", copied},
    {"alias_copy(self)", copied},
    {"cat(tensors, dim=0)", joined},
    {"concat(tensors, dim=0)", joined},
    {"concatenate(tensors, dim=0)", joined},
    {"stack(tensors, dim=0)", stacked},
    {"hstack(tensors)", joined_beside},
    {"vstack(tensors)", joined_below},
    {"split(self:Tensor, split_size, dim=0)", split_up},
    {"split(self:Tensor, split_sizes, dim=0)", split_up},
    {"split_with_sizes(self, split_sizes, dim=0)", split_up},
    {"split_with_sizes_copy(self, split_sizes, dim=0)", split_up},
    {"unsafe_split(self, split_size, dim=0)", split_up},
    {"split_copy(self, split_size, dim=0)", split_up},
    {"unsafe_split_with_sizes(self, split_sizes, dim=0)", split_up},
    {"chunk(self, chunks, dim=0)", in_chunks},
    {"unsafe_chunk(self, chunks, dim=0)", in_chunks},
    {"tensor_split(self, sections:int, dim=0)", split_evenly},
    {"tensor_split(self, indices, dim=0)", split_evenly},
    {"unbind(self, dim=0)", unbound},
    {"unbind_copy(self, dim=0)", unbound},
    {"slice(self:Tensor, dim=0, start=None, end=None, step=1)", sliced},
    {"slice_copy(self:Tensor, dim=0, start=None, end=None, step=1)", sliced},
    {"select(self:Tensor, dim, index)", selected},
    {"select_copy(self:Tensor, dim, index)", selected},
    {"narrow(self, dim, start, length)", narrowed},
    {"diagonal(self, offset=0, dim1=0, dim2=1)", diagonal_of},
    {"diag(self, diagonal=0)", as_diagonal},
    {"diag_embed(self, offset=0, dim1=-2, dim2=-1)", as_diagonals},
    {"tril(self, diagonal=0)", lower},
    {"triu(self, diagonal=0)", upper},
    {"meshgrid(tensors, indexing=None)", grid},
    {"view_as_real(self)", as_pairs},
    {"view_as_complex(self)", from_pairs},
};

}  // namespace

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::pytorch
