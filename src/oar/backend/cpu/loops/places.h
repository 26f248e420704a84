// Index tensors turned into memory offsets.
#pragma once

#include <deque>
#include <unordered_set>
#include <vector>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/base/function_ref.h"
#include "oar/ops/families/index_layout.h"
#include "oar/tensor/allocator.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {

// Memory from the caching allocator for a vector: fresh pages would cost more than filling them.
template <class T>
struct CachedMemory {
  using value_type = T;
  CachedMemory() = default;
  template <class U>
  CachedMemory(const CachedMemory<U>&) {}
  T* allocate(size_t n) {
    void* data = cpu_allocator::allocate(n * sizeof(T));
    if (!data) throw std::bad_alloc();
    return static_cast<T*>(data);
  }
  void deallocate(T* data, size_t n) { cpu_allocator::free(data, n * sizeof(T)); }
  bool operator==(const CachedMemory&) const { return true; }
};
// Which of `size` positions were marked. There may be no memory for that many: the size is an attribute.
class NamedPlaces {
 public:
  NamedPlaces(int64_t size, int64_t names) : few_(size > 64 * (names + 16)) {
    if (!few_) bits_.resize(static_cast<size_t>(size), false);
  }
  // False if it was marked before.
  bool add(int64_t place) {
    if (few_) return set_.insert(place).second;
    const auto bit = bits_[static_cast<size_t>(place)];
    const bool fresh = !bit;
    bits_[static_cast<size_t>(place)] = true;
    return fresh;
  }

 private:
  bool few_;
  std::vector<bool> bits_;
  std::unordered_set<int64_t> set_;
};

using Offsets = std::vector<int64_t, CachedMemory<int64_t>>;

template <int64_t kBytes, class Row>
void copy_narrow_rows(char* to, const Row& row, int64_t rows) {
  constexpr int64_t kAhead = 32;
  for (int64_t i = 0; i < rows; ++i) {
    __builtin_prefetch(row(std::min(i + kAhead, rows - 1)));
    std::memcpy(to + i * kBytes, row(i), kBytes);
  }
}
// Copies rows of `bytes` bytes that start at row(i) to contiguous memory. They are anywhere, so they are
// prefetched: short rows further ahead, since there is less to do until they are needed.
template <class Row>
void copy_rows(char* to, const Row& row, int64_t rows, int64_t bytes, bool stream) {
  if (bytes == 16) return copy_narrow_rows<16>(to, row, rows);
  if (bytes == 32) return copy_narrow_rows<32>(to, row, rows);
  if (bytes == 64) return copy_narrow_rows<64>(to, row, rows);
  constexpr int64_t kAhead = 8, kLine = 64;
  const int64_t asked = std::min<int64_t>(bytes, 1024);
  const bool past = stream && bytes >= 4 * kLine;
  for (int64_t i = 0; i < rows; ++i, to += bytes) {
    if (i + kAhead < rows)
      for (int64_t k = 0; k < asked; k += kLine) __builtin_prefetch(row(i + kAhead) + k);
    if (past)
      stream_bytes(to, row(i), bytes);
    else
      copy_packed(to, row(i), bytes);
  }
}

// Axes walked together over N operands, with byte strides, merged where all of them continue.
template <size_t N>
class Walk {
 public:
  using Steps = std::array<int64_t, N>;

  void push(int64_t size, const Steps& steps) {
    count_ *= size;
    if (size == 1) return;
    if (!axes_.empty()) {
      bool merges = true;
      for (size_t k = 0; k < N; ++k) merges &= axes_.back().steps[k] == steps[k] * size;
      if (merges) {
        axes_.back() = {axes_.back().size * size, steps};
        return;
      }
    }
    axes_.push_back({size, steps});
  }
  int64_t count() const { return count_; }
  // One run (or a single element) whose steps are the given ones?
  bool is_run(const Steps& steps) const {
    return axes_.empty() || (axes_.size() == 1 && axes_[0].steps == steps);
  }
  Steps offsets(int64_t index) const {
    Steps at{};
    for (size_t i = axes_.size(); i-- > 0;) {
      for (size_t k = 0; k < N; ++k) at[k] += index % axes_[i].size * axes_[i].steps[k];
      index /= axes_[i].size;
    }
    return at;
  }
  // body(offsets, steps, length) over the innermost runs, in order.
  template <class Body>
  void runs(Body&& body) const {
    if (count_ == 0) return;
    if (axes_.empty()) return body(Steps{}, Steps{}, int64_t{1});
    const int64_t length = axes_.back().size;
    Steps at{};
    SmallVector<int64_t, 6> index(axes_.size(), 0);
    for (int64_t done = 0; done < count_; done += length) {
      body(at, axes_.back().steps, length);
      for (size_t i = axes_.size() - 1; i-- > 0;) {
        for (size_t k = 0; k < N; ++k) at[k] += axes_[i].steps[k];
        if (++index[i] < axes_[i].size) break;
        for (size_t k = 0; k < N; ++k) at[k] -= axes_[i].steps[k] * axes_[i].size;
        index[i] = 0;
      }
    }
  }

 private:
  struct Axis {
    int64_t size;
    Steps steps;
  };
  SmallVector<Axis, 6> axes_;
  int64_t count_ = 1;
};

// Follows the elements of a tensor in row-major order from any one on.
class Cursor {
 public:
  Cursor(const oar_tensor& x, int64_t start) : x_(x), index_(static_cast<size_t>(x.ndim), 0) {
    for (int axis = x.ndim - 1; axis >= 0; --axis) {
      index_[static_cast<size_t>(axis)] = start % x.shape[axis];
      offset_ += index_[static_cast<size_t>(axis)] * x.strides[axis];
      start /= x.shape[axis];
    }
  }
  int64_t offset() const { return offset_; }  // in elements
  const SmallVector<int64_t, 6>& index() const { return index_; }
  void next() {
    for (int axis = x_.ndim - 1; axis >= 0; --axis) {
      int64_t& i = index_[static_cast<size_t>(axis)];
      offset_ += x_.strides[axis];
      if (++i < x_.shape[axis]) return;
      offset_ -= x_.strides[axis] * x_.shape[axis];
      i = 0;
    }
  }

 private:
  const oar_tensor& x_;
  SmallVector<int64_t, 6> index_;
  int64_t offset_ = 0;
};

// What the list of an op like index_take means for a tensor: which of its axes are indexed and where.
class Places {
 public:
  // Masks are replaced by the positions where they are true.
  Places(Dims shape, Ints strides, const Value& indices);

  const IndexLayout& layout() const { return layout_; }
  const Shape& index_shape() const { return index_; }
  // Sizes and strides (in elements) of the tensor; a 0-d mask has added an axis.
  Dims sizes() const { return sizes_; }
  Ints strides() const { return {strides_.data(), strides_.size()}; }
  Shape result_shape() const { return indexed_shape(layout_, sizes_, index_); }
  // For each element of the indices, the sum of index times step over the taken axes, checked.
  Offsets offsets(Ints steps) const;

 private:
  struct Entry {
    int64_t axis;
    const oar_tensor* index;
  };
  void add_axis(int64_t size, int64_t stride) {
    sizes_.push_back(size);
    strides_.push_back(stride);
  }
  void add_mask(const oar_tensor& mask, Dims shape, Ints strides, size_t first);

  Shape sizes_, index_;
  SmallVector<int64_t, 6> strides_;
  std::vector<Entry> entries_;
  std::deque<Offsets> positions_;  // of masks
  std::deque<LocalTensor> tensors_;
  IndexLayout layout_;
};

// Reads a mask in two passes over fixed pieces of it: after the first, start(how many elements
// are set); in the second, body for each part of a row. Pieces run in parallel.
struct MaskRun {
  int64_t number;       // how many elements are set before the run
  int64_t count;        // … and in it
  const Cursor& row;    // its position on the leading axes
  int64_t first, last;  // its part of the last axis
  const bool* flags;    // of the element `first`, then `step` apart
  int64_t step;
};
void each_mask_run(const oar_tensor& mask, FunctionRef<void(int64_t count)> start,
                   FunctionRef<void(const MaskRun& run)> body);

// The element of x at the start of a run of the mask that covers its leading axes.
template <class Word>
Word* row_of(const oar_tensor& x, const MaskRun& run, const SmallVector<int64_t, 6>& steps) {
  int64_t offset = steps.empty() ? 0 : run.first * steps.back();
  for (size_t i = 0; i < run.row.index().size(); ++i) offset += run.row.index()[i] * steps[i];
  return static_cast<Word*>(x.data) + offset;
}

// Row-major coordinates of the elements that are not zero; make(count) returns memory for [count, rank].
void find_nonzero(const oar_tensor& x, FunctionRef<int64_t*(int64_t count)> make);

}  // namespace oar::cpu
