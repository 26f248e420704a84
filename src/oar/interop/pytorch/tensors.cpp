#include "oar/interop/pytorch/tensors.h"

#include <algorithm>

#include "oar/base/error.h"

namespace oar::pytorch {
namespace {

// A view may repeat its elements, but a file does not decide how much memory is taken.
constexpr int64_t kMostRepeated = int64_t{1} << 26;

[[noreturn]] void damaged(const char* what) {
  fail(ErrorKind::InvalidArgument, "the archive is damaged: {}.", what);
}

// How many elements of the storage the tensor spans, and how many it has.
std::pair<int64_t, int64_t> extent_of(const Layout& t) {
  int64_t last = t.offset, count = 1;
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    if (t.sizes[i] < 0 || t.strides[i] < 0) damaged("a tensor has a negative size");
    if (__builtin_mul_overflow(count, t.sizes[i], &count)) damaged("a tensor is too large");
  }
  if (count == 0) return {0, 0};
  for (size_t i = 0; i < t.sizes.size(); ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(t.sizes[i] - 1, t.strides[i], &step) ||
        __builtin_add_overflow(last, step, &last))
      damaged("a tensor is too large");
  }
  return {last + 1, count};
}

bool is_dense(const Layout& t) {
  int64_t step = 1;
  for (size_t i = t.sizes.size(); i-- > 0; step *= t.sizes[i])
    if (t.sizes[i] != 1 && t.strides[i] != step) return false;
  return true;
}

void copy_strided(const Layout& t, std::string_view from, char* to, int64_t count, size_t width) {
  std::vector<int64_t> at(t.sizes.size(), 0);
  int64_t place = t.offset;
  for (int64_t i = 0; i < count; ++i) {
    to = std::copy_n(from.begin() + place * static_cast<int64_t>(width), width, to);
    for (size_t axis = at.size(); axis-- > 0;) {
      place += t.strides[axis];
      if (++at[axis] < t.sizes[axis]) break;
      place -= t.strides[axis] * t.sizes[axis];
      at[axis] = 0;
    }
  }
}

}  // namespace

Tensor tensor_in(std::string_view bytes, const Layout& layout) {
  if (layout.sizes.size() != layout.strides.size() || layout.sizes.size() > 32)
    damaged("a tensor has not one stride for each axis");
  if (layout.offset < 0) damaged("a tensor begins before its storage");
  const size_t width = size_of(layout.dtype);
  const auto [span, count] = extent_of(layout);
  const auto stored = static_cast<int64_t>(bytes.size() / width);
  if (span > stored) damaged("a tensor is larger than its storage");
  if (count > std::max(stored, kMostRepeated)) damaged("a tensor is too large");
  Shape shape;
  for (const int64_t size : layout.sizes) shape.push_back(size);
  const Tensor made = Tensor::empty(shape, layout.dtype);
  if (count == 0) return made;
  auto* to = static_cast<char*>(made->data);
  if (is_dense(layout))
    std::copy_n(bytes.begin() + layout.offset * static_cast<int64_t>(width),
                count * static_cast<int64_t>(width), to);
  else
    copy_strided(layout, bytes, to, count, width);
  return made;
}

}  // namespace oar::pytorch
