#include "oar/ops/view.h"

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
               "shape {} with stride {} reaches further than can be counted.", to_string(shape),
               to_string(strides));
  }
  if (!known || empty) return;
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

// n >= k: known, or so at the size at hand (which is then recorded). False leaves it open.
bool at_least(Dim n, Dim k) {
  if (n.is_known() && k.is_known()) return n.word() >= k.word();
  return n.hint() >= k.hint() && !known_less(n, k);
}

// A slice's end in [low, high]. A lower end, or one that was computed, is taken to lie inside if it
// does at the size at hand: x[1:] then has n - 1 elements, not n - min(1, n). x[:5] has min(5, n).
Dim clamped_end(int64_t word, Dim size, Dim low, Dim high, bool lower_end) {
  const Dim end = Dim::from_word(word);
  if (end.is_known() && word <= kOpenLow) return low;
  if (word == kOpenHigh) return high;
  if (known_less(end, 0)) return at_least(end + size, low) ? end + size : max_of(end + size, low);
  const bool inside = lower_end || end.is_symbolic();
  return inside && at_least(high, end) ? end : min_of(end, high);
}

SlicedAxis resolve_slice(int64_t axis, Dim size, Ints item) {
  const int64_t step =
      std::clamp<int64_t>(Dim::from_word(item[3]).value(), -kOpenHigh / 4, kOpenHigh / 4);
  user_check(step != 0, ErrorKind::InvalidArgument, "the step of the slice of axis {} is 0.", axis);
  const bool forward = step > 0;
  const Dim low = forward ? 0 : -1, high = forward ? size : size - 1;
  const Dim start = clamped_end(item[1], size, low, high, forward);
  const Dim stop = clamped_end(item[2], size, low, high, !forward);
  const Dim span = forward ? stop - start : start - stop;
  const Dim length = ceil_div(span, forward ? step : -step);
  return {axis, true, start, step, at_least(span, 0) ? length : max_of(length, 0)};
}

SlicedAxis resolve_integer(int64_t axis, Dim size, Dim at) {
  const Dim place = known_less(at, 0) ? at + size : at;
  if (place.is_known() && size.is_known())
    user_check(place.word() >= 0 && place.word() < size.word(), ErrorKind::OutOfRange,
               "index {} is out of range for axis {} of size {}.", at.str(), axis, size.str());
  return {axis, false, place};
}

// How many axes stand where the ellipsis is; without one, how many are left behind the items.
int64_t unnamed_axes(Ints index, int64_t rank) {
  user_check(index.size() % 4 == 0, ErrorKind::InvalidArgument,
             "an index has {} numbers; it is made of (kind, start, stop, step).", index.size());
  int64_t named = 0, ellipses = 0;
  for (size_t i = 0; i < index.size(); i += 4) {
    user_check(index[i] >= kSliceItem && index[i] <= kEllipsisItem, ErrorKind::InvalidArgument,
               "an index has an item of unknown kind {}.", index[i]);
    named += index[i] <= kIntegerItem;
    ellipses += index[i] == kEllipsisItem;
  }
  user_check(ellipses <= 1, ErrorKind::InvalidArgument,
             "an index has {} ellipses (...).\nhint: "
             "Only one can be told from the rank; write out the others as ':'.",
             ellipses);
  user_check(named <= rank, ErrorKind::OutOfRange,
             "an index names {} axes; the tensor has {}.\nhint: Leave out the last {} of them.",
             named, rank, named - rank);
  return rank - named;
}

}  // namespace

SmallVector<SlicedAxis, 6> resolve_index(Dims shape, Ints index) {
  SmallVector<SlicedAxis, 6> axes;
  int64_t unnamed = unnamed_axes(index, static_cast<int64_t>(shape.size())), axis = 0;
  const auto whole = [&](int64_t count) {
    for (; count > 0; --count, ++axis)
      axes.push_back({axis, true, 0, 1, shape[static_cast<size_t>(axis)]});
  };
  for (size_t i = 0; i < index.size(); i += 4) {
    const Ints item = index.subspan(i, 4);
    switch (item[0]) {
      case kSliceItem:
        axes.push_back(resolve_slice(axis, shape[static_cast<size_t>(axis)], item));
        ++axis;
        break;
      case kIntegerItem:
        axes.push_back(
            resolve_integer(axis, shape[static_cast<size_t>(axis)], Dim::from_word(item[1])));
        ++axis;
        break;
      case kNewAxisItem:
        axes.push_back({-1, true});
        break;
      default:
        whole(std::exchange(unnamed, 0));
    }
  }
  whole(unnamed);
  return axes;
}

Shape sliced_shape(Dims shape, Ints index) {
  Shape out;
  for (const SlicedAxis& axis : resolve_index(shape, index))
    if (axis.kept) out.push_back(axis.length);
  return out;
}

ViewSpec sliced_view(Dims shape, Ints strides, Ints index) {
  ViewSpec spec;
  for (const SlicedAxis& axis : resolve_index(shape, index)) {
    const int64_t stride = axis.source < 0 ? 1 : strides[static_cast<size_t>(axis.source)];
    const int64_t length = axis.length.value();
    // An empty or single slice may name a start or step that would point outside.
    if (length > 0) spec.offset += axis.start.value() * stride;
    if (!axis.kept) continue;
    spec.shape.push_back(axis.length);
    spec.strides.push_back(length > 1 ? stride * axis.step : stride);
  }
  return spec;
}

}  // namespace oar
