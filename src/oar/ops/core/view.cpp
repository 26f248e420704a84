#include "oar/ops/core/view.h"

#include <algorithm>
#include <utility>

namespace oar {

Shape broadcast_target(const Tensor& x, Dims shape) {
  const size_t rank = static_cast<size_t>(x.rank());
  const auto refuse = [&] {
    fail(
        ErrorKind::InvalidArgument,
        "a tensor of shape {} does not broadcast to {}.\nhint: Sizes must be equal from the right, "
        "or 1 in the tensor.",
        to_string(x.dims()), to_string(shape));
  };
  if (shape.size() < rank) refuse();
  Shape out(shape);
  const size_t added = shape.size() - rank;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (out[i] == Dim(-1)) {
      if (i < added) refuse();
      out[i] = x.dims()[i - added];
    }
    if (out[i].is_known() && out[i].word() < 0) refuse();
    if (i < added) continue;
    const Dim size = x.dims()[i - added];
    if (!(size == Dim(1)) && !same(size, out[i]) && !same(size, Dim(1))) refuse();
  }
  return out;
}

SmallVector<int64_t, 6> checked_permutation(Ints perm, int rank) {
  user_check(static_cast<int>(perm.size()) == rank, ErrorKind::InvalidArgument,
             "perm {} has {} axes; the tensor has {}.", to_string(perm), perm.size(), rank);
  SmallVector<int64_t, 6> axes;
  for (int64_t p : perm) {
    const int64_t axis = normalise_axis(p, rank, "perm");
    user_check(std::find(axes.begin(), axes.end(), axis) == axes.end(), ErrorKind::InvalidArgument,
               "perm {} names axis {} twice.", to_string(perm), axis);
    axes.push_back(axis);
  }
  return axes;
}

std::optional<ViewSpec> reshape_view(const Tensor& x, const Shape& shape) {
  ViewSpec spec{shape, {}, 0};
  if (x.is_contiguous()) {
    spec.strides = contiguous_strides(shape);
    return spec;
  }
  // Walk both shapes from the right in groups of equal element count; inside a group the source must
  // be evenly spaced.
  spec.strides.resize(shape.size());
  int64_t source = x.rank() - 1, target = static_cast<int64_t>(shape.size()) - 1;
  while (target >= 0) {
    while (source >= 0 && x->shape[source] == 1) --source;
    if (source < 0) {
      for (; target >= 0; --target) spec.strides[static_cast<size_t>(target)] = 1;
      break;
    }
    int64_t stride = x->strides[source];
    int64_t available = x->shape[source];
    --source;
    int64_t wanted = 1;
    while (target >= 0) {
      const int64_t size = shape[static_cast<size_t>(target)].value();
      while (wanted * size > available) {  // join the next source axis if it continues this one
        while (source >= 0 && x->shape[source] == 1) --source;
        if (source < 0 || x->strides[source] != stride * available) return std::nullopt;
        available *= x->shape[source];
        --source;
      }
      spec.strides[static_cast<size_t>(target)] = stride * wanted;
      wanted *= size;
      --target;
      if (wanted == available) break;
    }
    if (wanted != available) return std::nullopt;
  }
  return spec;
}

Shape logical_strides(Dims shape) {
  Shape strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

void check_strided_bounds(Dims shape, Ints strides, int64_t offset, Dim numel) {
  user_check(shape.size() == strides.size(), ErrorKind::InvalidArgument,
             "shape {} has {} sizes and stride {} has {}.\nhint: Give one stride per axis.",
             to_string(shape), shape.size(), to_string(strides), strides.size());
  int64_t low = offset, high = offset;
  bool empty = false, known = numel.is_known() && Dim::from_word(offset).is_known();
  for (size_t i = 0; i < shape.size(); ++i) {
    known &= shape[i].is_known() && Dim::from_word(strides[i]).is_known();
    if (!known) continue;
    user_check(shape[i].word() >= 0, ErrorKind::InvalidArgument, "shape {} has a negative size.",
               to_string(shape));
    empty |= shape[i].word() == 0;
    int64_t reach = 0;
    const bool overflows =
        __builtin_mul_overflow(shape[i].word() - 1, strides[i], &reach) ||
        __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    user_check(!overflows || empty, ErrorKind::OutOfRange,
               "shape {} with stride {} reaches beyond 64-bit offsets.", to_string(shape),
               to_string(strides));
  }
  if (!known) return;
  if (empty) {  // nothing is read, but it starts somewhere
    user_check(offset >= 0 && offset <= numel.word(), ErrorKind::OutOfRange,
               "offset {} is outside the tensor, which has {} elements.", offset, numel.word());
    return;
  }
  user_check(
      low >= 0 && high < numel.word(), ErrorKind::OutOfRange,
      "shape {} with stride {} and offset {} reaches from element {} to {}; the tensor has {} "
      "elements.",
      to_string(shape), to_string(strides), offset, low, high, numel.word());
}

int64_t specialised(Dim size) {
  const int64_t number = size.hint();
  static_cast<void>(same(size, number));
  return number;
}

namespace {

// The arithmetic of an index is written once, for sizes that are expressions and for plain numbers:
// eager mode has only the latter and runs it on every x[...].
bool known_less(int64_t a, int64_t b) { return a < b; }
int64_t min_of(int64_t a, int64_t b) { return std::min(a, b); }
int64_t max_of(int64_t a, int64_t b) { return std::max(a, b); }
// Most slices have step 1, and a division costs more than the rest of one.
int64_t ceil_div(int64_t a, int64_t b) {
  if (b == 1) return a;
  return a <= 0 ? -(-a / b) : (a - 1) / b + 1;
}

// n >= k: known, or true for the hint (which is then recorded). False leaves it open.
bool at_least(int64_t n, int64_t k) { return n >= k; }
bool at_least(Dim n, Dim k) {
  if (n.is_known() && k.is_known()) return n.word() >= k.word();
  return n.hint() >= k.hint() && !known_less(n, k);
}

// What an index does to one axis.
template <class Size>
struct SlicedAxis {
  int64_t source;  // the axis of the tensor; -1 for a new one
  bool kept;       // an integer drops its axis
  Size start = 0;
  int64_t step = 1;
  Size length = 1;
};

// A slice's end in [low, high]. A lower end, or one that was computed, is assumed to be inside if it
// is for the hint: x[1:] then has n - 1 elements, not n - min(1, n). x[:5] has min(5, n).
template <class Size>
Size clamped_end(int64_t word, Size size, Size low, Size high, bool lower_end) {
  const bool computed = Dim::from_word(word).is_symbolic();
  if (!computed && word <= kOpenLow) return low;
  if (word == kOpenHigh) return high;
  const Size end = word;
  if (known_less(end, Size(0)))
    return at_least(end + size, low) ? end + size : max_of(end + size, low);
  const bool inside = lower_end || computed;
  return inside && at_least(high, end) ? end : min_of(end, high);
}

template <class Size>
SlicedAxis<Size> resolve_slice(int64_t axis, Size size, Ints item) {
  const int64_t step =
      std::clamp<int64_t>(Dim::from_word(item[3]).value(), -kOpenHigh / 4, kOpenHigh / 4);
  user_check(step != 0, ErrorKind::InvalidArgument, "the step of the slice of axis {} is 0.", axis);
  const bool forward = step > 0;
  const Size low = forward ? 0 : -1, high = forward ? size : size - 1;
  const Size start = clamped_end(item[1], size, low, high, forward);
  const Size stop = clamped_end(item[2], size, low, high, !forward);
  const Size span = forward ? stop - start : start - stop;
  const Size length = ceil_div(span, Size(forward ? step : -step));
  return {axis, true, start, step, at_least(span, Size(0)) ? length : max_of(length, Size(0))};
}

template <class Size>
SlicedAxis<Size> resolve_integer(int64_t axis, Size size, Size at) {
  const Size place = known_less(at, Size(0)) ? at + size : at;
  const Dim known_place = place, known_size = size;
  if (known_place.is_known() && known_size.is_known())
    user_check(known_place.word() >= 0 && known_place.word() < known_size.word(),
               ErrorKind::OutOfRange, "index {} is out of range for axis {} of size {}.",
               Dim(at).str(), axis, known_size.str());
  return {axis, false, place};
}

// How many axes the ellipsis stands for; without one, how many follow the items.
int64_t unnamed_axes(Ints index, int64_t rank) {
  user_check(index.size() % 4 == 0, ErrorKind::InvalidArgument,
             "an index has {} numbers; it consists of (kind, start, stop, step).", index.size());
  int64_t named = 0, ellipses = 0;
  for (size_t i = 0; i < index.size(); i += 4) {
    user_check(index[i] >= kSliceItem && index[i] <= kEllipsisItem, ErrorKind::InvalidArgument,
               "an index has an item of unknown kind {}.", index[i]);
    named += index[i] <= kIntegerItem;
    ellipses += index[i] == kEllipsisItem;
  }
  user_check(ellipses <= 1, ErrorKind::InvalidArgument,
             "an index has {} ellipses (...).\nhint: "
             "Only one is allowed; write out the others as ':'.",
             ellipses);
  user_check(named <= rank, ErrorKind::OutOfRange,
             "an index names {} axes; the tensor has {}.\nhint: Remove the last {} of them.", named,
             rank, named - rank);
  return rank - named;
}

// body(axis) for what the index does, axis by axis of the result and of those that it drops.
template <class Size, class Body>
void resolve_index(std::span<const Size> shape, Ints index, Body&& body) {
  int64_t unnamed = unnamed_axes(index, static_cast<int64_t>(shape.size()));
  size_t axis = 0;
  const auto number = [&] { return static_cast<int64_t>(axis); };
  const auto whole = [&](int64_t count) {
    for (; count > 0; --count, ++axis) body(SlicedAxis<Size>{number(), true, 0, 1, shape[axis]});
  };
  for (size_t i = 0; i < index.size(); i += 4) {
    const Ints item = index.subspan(i, 4);
    switch (item[0]) {
      case kSliceItem:
        body(resolve_slice<Size>(number(), shape[axis], item));
        ++axis;
        break;
      case kIntegerItem:
        body(resolve_integer<Size>(number(), shape[axis], item[1]));
        ++axis;
        break;
      case kNewAxisItem:
        body(SlicedAxis<Size>{-1, true});
        break;
      default:
        whole(std::exchange(unnamed, 0));
    }
  }
  whole(unnamed);
}

}  // namespace

Shape sliced_shape(Dims shape, Ints index) {
  Shape out;
  resolve_index<Dim>(shape, index, [&](const SlicedAxis<Dim>& axis) {
    if (axis.kept) out.push_back(axis.length);
  });
  return out;
}

void sliced_view(Ints shape, Ints strides, Ints index, ViewSpec& spec) {
  for (const int64_t word : index) static_cast<void>(Dim::from_word(word).value());
  resolve_index<int64_t>(shape, index, [&](const SlicedAxis<int64_t>& axis) {
    const int64_t stride = axis.source < 0 ? 1 : strides[static_cast<size_t>(axis.source)];
    // An empty or single slice may have a start or step that would point outside.
    if (axis.length > 0) spec.offset += axis.start * stride;
    if (!axis.kept) return;
    spec.shape.push_back(axis.length);
    spec.strides.push_back(axis.length > 1 ? stride * axis.step : stride);
  });
}

}  // namespace oar
