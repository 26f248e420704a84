// Padding. Its gradient is in resample.cpp.
#include <limits>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/scratch.h"

namespace oar::cpu {
namespace {

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

}  // namespace

KernelList pad_kernels() {
  static const oar_kernel list[] = {
      {"pad_constant", 1, "cpu:generic", nullptr, kernel_entry<pad_constant>},
      {"pad_edges", 1, "cpu:generic", nullptr, kernel_entry<pad_edges>},
  };
  return list;
}

}  // namespace oar::cpu
