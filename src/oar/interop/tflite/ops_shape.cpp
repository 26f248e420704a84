// Operators that move elements, and sizes.
#include <algorithm>
#include <limits>

#include "oar/interop/tensorflow_math.h"
#include "oar/interop/tflite/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tflite {
namespace {

using List = std::vector<int64_t>;

std::vector<Dim> dims_of(const Call& c, const List& sizes) {
  std::vector<Dim> dims;
  for (const int64_t size : sizes) {
    if (size < -1) c.refuse("a size is negative");
    dims.push_back(size);
  }
  return dims;
}

// The shape is an input, or in old files an option.
Tensors reshaped(const Call& c) {
  List sizes;
  if (c.has(1)) {
    sizes = c.integers(1);
  } else {
    const auto given = c.options().numbers<int32_t>(0);
    sizes.assign(given.begin(), given.end());
  }
  return {reshape(c.tensor(0), dims_of(c, sizes))};
}

Tensors transposed(const Call& c) { return {transpose(c.tensor(0), c.integers(1))}; }

Tensors squeezed(const Call& c) {
  const auto given = c.options().numbers<int32_t>(0);
  List axes;
  for (const int32_t axis : given) axes.push_back(c.axis(axis));
  if (axes.empty())
    for (int64_t i = 0; i < c.tensor(0).rank(); ++i)
      if (c.tensor(0).dim(i) == Dim(1)) axes.push_back(i);
  return {axes.empty() ? c.tensor(0) : squeeze(c.tensor(0), IntArgs(axes))};
}
Tensors expanded(const Call& c) { return {unsqueeze(c.tensor(0), c.integers(1))}; }

Tensors concatenated(const Call& c) {
  const int64_t axis = c.axis(c.options().number<int32_t>(0, 0));
  return {c.activated(concat(c.tensors(), axis), c.options().number<int8_t>(1, 0))};
}
Tensors packed(const Call& c) { return {stack(c.tensors(), c.options().number<int32_t>(1, 0))}; }
Tensors unpacked(const Call& c) {
  return unstack(c.tensor(0), c.axis(c.options().number<int32_t>(1, 0)));
}

Tensors split_of(const Call& c) {
  const auto count = static_cast<int64_t>(c.op.outputs.size());
  const int64_t axis = c.axis(c.integer(0), 1), size = c.tensor(1).dim(axis).value();
  if (count < 1 || size % count != 0) c.refuse("its input is not divided evenly");
  return split(c.tensor(1), List(static_cast<size_t>(count), size / count), axis);
}
Tensors split_by_sizes(const Call& c) {
  return split(c.tensor(0), c.integers(1), c.axis(c.integer(2)));
}

Tensors sliced(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List begin = c.integers(1), sizes = c.integers(2);
  if (static_cast<int64_t>(begin.size()) != x.rank() || sizes.size() != begin.size())
    c.refuse("its begin and size do not fit the input");
  List axes, ends;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t size = x.dim(static_cast<int64_t>(i)).value();
    const int64_t end = sizes[i] == -1 ? size : begin[i] + sizes[i];
    if (begin[i] < 0 || end < begin[i] || end > size) c.refuse("it reaches beyond its input");
    axes.push_back(static_cast<int64_t>(i));
    ends.push_back(end);
  }
  return {slice(x, axes, begin, ends)};
}

Tensors sliced_with_masks(const Call& c) {
  const FlatTable& o = c.options();
  if (o.flag(5)) c.refuse("its ends are offsets");
  List end = c.integers(2);
  return {interop::slice_with_masks(
      c.tensor(0), c.integers(1), end, c.integers(3),
      {o.number<int32_t>(0, 0), o.number<int32_t>(1, 0), o.number<int32_t>(2, 0),
       o.number<int32_t>(3, 0), o.number<int32_t>(4, 0)})};
}

List paddings_of(const Call& c) {
  const List paddings = c.integers(1);
  if (static_cast<int64_t>(paddings.size()) != 2 * c.tensor(0).rank())
    c.refuse("its paddings do not fit the input");
  for (const int64_t p : paddings)
    if (p < 0 || p > (1 << 24)) c.refuse("a padding is negative or too large");
  return paddings;
}
Tensors padded(const Call& c) {
  const List paddings = paddings_of(c);
  const double value = c.has(2) ? c.numbers(2).at(0) : 0;
  if (is_integral(c.tensor(0).dtype()))
    return {pad_constant(c.tensor(0), paddings, Scalar(static_cast<int64_t>(value)))};
  return {pad_constant(c.tensor(0), paddings, Scalar(value))};
}
Tensors mirrored(const Call& c) {
  return {interop::mirror_pad(c.tensor(0), paddings_of(c), c.options().number<int8_t>(0, 0) == 0)};
}

Tensors tiled(const Call& c) { return {tile(c.tensor(0), dims_of(c, c.integers(1)))}; }
Tensors broadcasted(const Call& c) {
  return {broadcast_to(c.tensor(0), dims_of(c, c.integers(1)))};
}

Tensors gathered(const Call& c) {
  if (c.options().number<int32_t>(1, 0) != 0) c.refuse("it gathers within batches");
  const int64_t axis = c.axis(c.options().number<int32_t>(0, 0));
  const Tensor &x = c.tensor(0), &places = c.tensor(1);
  const Tensor rows = index_select(x, reshape(cast(places, DType::Int64), {-1}), axis);
  std::vector<Dim> shape(x.dims().begin(), x.dims().begin() + axis);
  shape.insert(shape.end(), places.dims().begin(), places.dims().end());
  shape.insert(shape.end(), x.dims().begin() + axis + 1, x.dims().end());
  return {reshape(rows, shape)};
}
Tensors gathered_nd(const Call& c) {
  return {gather_nd(c.tensor(0), cast(c.tensor(1), DType::Int64))};
}

Tensors depth_to_space(const Call& c) {
  return {interop::depth_to_space_last(c.tensor(0), c.options().number<int32_t>(0, 0))};
}
Tensors space_to_depth(const Call& c) {
  return {interop::space_to_depth_last(c.tensor(0), c.options().number<int32_t>(0, 0))};
}
Tensors reversed(const Call& c) {
  List axes;
  for (const int64_t axis : c.integers(1)) axes.push_back(c.axis(axis));
  return {flip(c.tensor(0), axes)};
}

// ---- sizes -------------------------------------------------------------------------------------

Tensors shape_of(const Call& c) {
  List sizes;
  for (const Dim d : c.tensor(0).dims()) sizes.push_back(d.value());
  return {Tensor::from_vector(sizes, Shape{c.tensor(0).rank()}, c.result(0).dtype())};
}
Tensors rank_of(const Call& c) {
  return {Tensor::scalar(static_cast<int64_t>(c.tensor(0).rank()), DType::Int32)};
}
Tensors filled(const Call& c) { return {broadcast_to(c.tensor(1), dims_of(c, c.integers(0)))}; }
Tensors range_of(const Call& c) {
  const double first = c.numbers(0).at(0), end = c.numbers(1).at(0), step = c.numbers(2).at(0);
  if (step == 0 || (end - first) / step > (1 << 24)) c.refuse("it has too many elements");
  return {range(Scalar(first), Scalar(end), Scalar(step), c.result(0).dtype())};
}

constexpr Converter kConverters[] = {
    {2, concatenated, Converter::Moves},
    {5, depth_to_space, Converter::Moves},
    {22, reshaped, Converter::Moves},
    {26, space_to_depth, Converter::Moves},
    {34, padded, Converter::Moves},
    {36, gathered, Converter::Moves},
    {39, transposed, Converter::Moves},
    {43, squeezed, Converter::Moves},
    {45, sliced_with_masks, Converter::Moves},
    {49, split_of, Converter::Moves},
    {60, padded, Converter::Moves},
    {65, sliced, Converter::Moves},
    {69, tiled, Converter::Moves},
    {70, expanded, Converter::Moves},
    {77, shape_of, Converter::Sizes},
    {83, packed, Converter::Moves},
    {88, unpacked, Converter::Moves},
    {94, filled, Converter::Moves},
    {96, range_of},
    {100, mirrored, Converter::Moves},
    {102, split_by_sizes, Converter::Moves},
    {105, reversed, Converter::Moves},
    {107, gathered_nd, Converter::Moves},
    {110, rank_of, Converter::Sizes},
    {130, broadcasted, Converter::Moves},
};

}  // namespace

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::tflite
