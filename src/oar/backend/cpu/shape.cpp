// Joining, padding, writing to views, and triangles.
#include <cstring>
#include <limits>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/ops/core/view.h"
#include "oar/tensor/strides.h"

namespace oar::cpu {

bool ranges_meet(const oar_tensor& a, const oar_tensor& b) {
  if (a.numel == 0 || b.numel == 0) return false;
  const auto extent = [](const oar_tensor& t) {
    int64_t low = 0, high = 1;
    for (int i = 0; i < t.ndim; ++i) {
      const int64_t reach = (t.shape[i] - 1) * t.strides[i];
      (reach < 0 ? low : high) += reach;
    }
    auto* data = static_cast<char*>(t.data);
    return std::pair{data + low * element_size(t), data + high * element_size(t)};
  };
  const auto [a_low, a_high] = extent(a);
  const auto [b_low, b_high] = extent(b);
  return a_low < b_high && b_low < a_high;
}

namespace {

// Writes `value`, broadcast, to the view; from a copy if they share memory.
void write_broadcast(const oar_tensor& view, const oar_tensor& value) {
  const LocalTensor stretched = LocalTensor::broadcast(value, dims_of(view));
  if (!ranges_meet(view, value)) return copy_elements(view, stretched);
  const TemporaryTensor copied(dims_of(value), dtype_of(value));
  copy_elements(*copied, value);
  copy_elements(view, LocalTensor::broadcast(*copied, dims_of(view)));
}

void write_slice(const oar_tensor& out, const oar_tensor& value, Ints index) {
  ViewSpec part;
  sliced_view(as_words(dims_of(out)), strides_of(out), index, part);
  write_broadcast(LocalTensor(out, part), value);
}

void slice_put(KernelCall& call) {
  copy_elements(call.out(), call.in(0));
  write_slice(call.out(), call.in(1), call.arg(2).as_ints());
}

void slice_put_inplace(KernelCall& call) {
  write_slice(call.in(0), call.in(1), call.arg(2).as_ints());
}

void concat(KernelCall& call) {
  const oar_tensor& out = call.out();
  const auto axis = static_cast<size_t>(normalise_axis(call.arg(1).as_int(), out.ndim));
  ViewSpec spec{Shape(dims_of(out)), {out.strides, out.strides + out.ndim}, 0};
  for (const Tensor& part : call.arg(0).as_tensors()) {
    spec.shape[axis] = part.dims()[axis];
    copy_elements(LocalTensor(out, spec), *part.impl());
    spec.offset += part->shape[axis] * out.strides[axis];
  }
}

template <class T>
T element_of(const Scalar& value) {
  return value.kind() <= Scalar::Int ? convert_element<T>(value.to_int())
                                     : convert_element<T>(value.to_complex());
}

// Where the elements along an axis of a padded result come from: the middle part directly from x.
struct PaddedAxis {
  int64_t begin, end;                    // the middle part
  SmallVector<int64_t, 12> left, right;  // indices in x of the elements around it; -1: the border
  int64_t first;                         // index in x of the middle part's first element

  PaddedAxis(int64_t size, int64_t before, int64_t after, std::string_view mode)
      : begin(std::max<int64_t>(before, 0)), first(std::max<int64_t>(-before, 0)) {
    const int64_t kept =
        std::max<int64_t>(size + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0), 0);
    end = begin + kept;
    const auto place =
        [&](int64_t i) {  // of the i-th element, counted from the middle part's first
          if (mode == "constant") return int64_t{-1};
          if (mode == "replicate") return first + std::clamp<int64_t>(i, 0, kept - 1);
          if (mode == "circular") return first + (i + kept) % kept;
          return first + (i < 0 ? -i : 2 * (kept - 1) - i);
        };
    for (int64_t i = -begin; i < 0; ++i) left.push_back(place(i));
    for (int64_t i = kept; i < kept + after; ++i) right.push_back(place(i));
  }
  int64_t size() const { return end + static_cast<int64_t>(right.size()); }
  int64_t source(int64_t i) const {
    return i < begin ? left[static_cast<size_t>(i)]
           : i < end ? first + i - begin
                     : right[static_cast<size_t>(i - end)];
  }
};

// One row of the result from the row of x that starts at `from`.
template <class T>
void pad_row(T* to, const T* from, int64_t step, const PaddedAxis& axis, T element) {
  const auto edge = [=](int64_t place) { return place < 0 ? element : from[place * step]; };
  for (int64_t place : axis.left) *to++ = edge(place);
  const int64_t count = axis.end - axis.begin;
  if (step == 1)
    copy_packed(to, from + axis.first, count);
  else
    for (int64_t k = 0; k < count; ++k) to[k] = from[(axis.first + k) * step];
  to += count;
  for (int64_t place : axis.right) *to++ = edge(place);
}

// Iterates over the planes of the result, which its last two axes span, with the start of the corresponding
// plane of x.
class PaddedPlanes {
 public:
  PaddedPlanes(std::span<const PaddedAxis> axes, const int64_t* strides, int64_t plane)
      : axes_(axes), strides_(strides), index_(axes.size(), 0) {
    for (size_t i = axes.size(); i-- > 0; plane /= axes[i].size())
      index_[i] = plane % axes[i].size();
    place();
  }
  bool is_border() const { return border_; }
  int64_t offset() const { return offset_; }
  void next() {
    for (size_t i = index_.size(); i-- > 0;) {
      if (++index_[i] < axes_[i].size()) break;
      index_[i] = 0;
    }
    place();
  }

 private:
  void place() {
    offset_ = 0;
    border_ = false;
    for (size_t i = 0; i < index_.size(); ++i) {
      const int64_t source = axes_[i].source(index_[i]);
      offset_ += source * strides_[i];
      border_ |= source < 0;
    }
  }
  std::span<const PaddedAxis> axes_;
  const int64_t* strides_;
  SmallVector<int64_t, 6> index_;
  int64_t offset_;
  bool border_;
};

template <class T>
void pad_rows(const oar_tensor& x, const oar_tensor& out, Ints paddings, std::string_view mode,
              T element) {
  SmallVector<PaddedAxis, 6> axes;
  if (x.ndim == 1) axes.push_back({1, 0, 0, mode});  // a plane of one row
  for (int i = 0; i < x.ndim; ++i)
    axes.push_back({x.shape[i], paddings[2 * static_cast<size_t>(i)],
                    paddings[2 * static_cast<size_t>(i) + 1], mode});
  const size_t outer = axes.size() - 2;
  const PaddedAxis &down = axes[outer], &along = axes[outer + 1];
  const int64_t height = down.size(), length = along.size(), step = x.strides[x.ndim - 1];
  constexpr int64_t kBorder = std::numeric_limits<int64_t>::min();
  const Scratch<int64_t> starts(height);  // of the rows in a plane of x
  for (int64_t r = 0; r < height; ++r) {
    const int64_t source = down.source(r);
    starts[r] = source < 0 ? kBorder : x.ndim == 1 ? 0 : source * x.strides[x.ndim - 2];
  }
  parallel_for(0, out.numel / length, std::max<int64_t>(1, kGrain / length),
               [&](int64_t begin, int64_t end) {
                 PaddedPlanes planes({axes.data(), outer}, x.strides, begin / height);
                 const auto* from = static_cast<const T*>(x.data);
                 T* to = static_cast<T*>(out.data) + begin * length;
                 for (int64_t row = begin, r = begin % height; row < end; ++row, to += length) {
                   if (planes.is_border() || starts[r] == kBorder)
                     std::fill_n(to, length, element);
                   else
                     pad_row(to, from + planes.offset() + starts[r], step, along, element);
                   if (++r < height) continue;
                   r = 0;
                   planes.next();
                 }
               });
}

void pad_constant(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  if (out.numel == 0) return;
  if (x.ndim == 0) return copy_elements(out, x);
  const Scalar value = call.arg(2).as_scalar();
  visit_dtype(dtype_of(out), [&](auto tag) {
    using T = typename decltype(tag)::type;
    pad_rows<T>(x, out, call.arg(1).as_ints(), "constant", element_of<T>(value));
  });
}

void pad_edges(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  if (out.numel == 0) return;
  if (x.ndim == 0) return copy_elements(out, x);
  visit_width(x, [&](auto word) {
    pad_rows(x, out, call.arg(1).as_ints(), call.arg(2).as_string(), word);
  });
}

// One row at a time: the kept part is a prefix (tril) or a suffix (triu).
template <bool kLower>
void triangle(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const int64_t diagonal = call.arg(1).as_int();
  const int64_t rows = out.shape[out.ndim - 2], columns = out.shape[out.ndim - 1];
  copy_elements(out, x);
  const int64_t size = element_size(out);
  parallel_for(
      0, columns ? out.numel / columns : 0,
      std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1)),
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          auto* row = static_cast<char*>(out.data) + r * columns * size;
          const int64_t from = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
          const int64_t edge = std::clamp<int64_t>(r % rows + from + (kLower ? 1 : 0), 0, columns);
          if (kLower)
            std::memset(row + edge * size, 0, static_cast<size_t>((columns - edge) * size));
          else
            std::memset(row, 0, static_cast<size_t>(edge * size));
        }
      });
}

// Element by element in order; small floats are summed in float.
template <class T>
void add_strided(const oar_tensor& out, const oar_tensor& value, Ints strides, int64_t offset) {
  using C = compute_t<T>;
  const bool wide = !std::is_same_v<T, C>;
  Scratch<C, 64> sums(wide ? out.numel : 0);
  C* to = wide ? sums.data() : static_cast<C*>(out.data);
  std::fill(to, to + out.numel, C(0));
  SmallVector<int64_t, 6> index(static_cast<size_t>(value.ndim), 0);
  const auto* from = static_cast<const T*>(value.data);
  int64_t read = 0, write = offset;
  for (int64_t n = 0; n < value.numel; ++n) {
    to[write] = static_cast<C>(to[write] + static_cast<C>(from[read]));
    for (int axis = value.ndim - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      read += value.strides[axis];
      write += strides[a];
      if (++index[a] < value.shape[axis]) break;
      read -= value.strides[axis] * value.shape[axis];
      write -= strides[a] * value.shape[axis];
      index[a] = 0;
    }
  }
  if (wide)
    for (int64_t i = 0; i < out.numel; ++i) static_cast<T*>(out.data)[i] = static_cast<T>(sums[i]);
}

void as_strided_grad(KernelCall& call) {
  const oar_tensor &value = call.in(0), &out = call.out();
  const Ints strides = call.arg(2).as_ints();
  const int64_t offset = call.arg(3).as_int();
  if (meets_each_once({value.shape, static_cast<size_t>(value.ndim)}, strides)) {
    if (out.numel > 0) std::memset(out.data, 0, static_cast<size_t>(out.numel * element_size(out)));
    const ViewSpec spec{Shape(dims_of(value)), {strides.begin(), strides.end()}, offset};
    if (value.numel > 0) copy_elements(LocalTensor(out, spec), value);
    return;
  }
  visit<kAllTypes>(dtype_of(out), [&](auto tag) {
    add_strided<typename decltype(tag)::type>(out, value, strides, offset);
  });
}

}  // namespace

KernelList shape_kernels() {
  static const oar_kernel list[] = {
      {"slice_put", 1, "cpu:generic", nullptr, kernel_entry<slice_put>},
      {"slice_put_", 1, "cpu:generic", nullptr, kernel_entry<slice_put_inplace>},
      {"concat", 1, "cpu:generic", nullptr, kernel_entry<concat>},
      {"pad_constant", 1, "cpu:generic", nullptr, kernel_entry<pad_constant>},
      {"pad_edges", 1, "cpu:generic", nullptr, kernel_entry<pad_edges>},
      {"tril", 1, "cpu:generic", nullptr, kernel_entry<triangle<true>>},
      {"triu", 1, "cpu:generic", nullptr, kernel_entry<triangle<false>>},
      {"as_strided_grad", 1, "cpu:generic", nullptr, training_entry<as_strided_grad>},
  };
  return list;
}

}  // namespace oar::cpu
