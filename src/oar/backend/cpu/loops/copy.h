// Copies between tensors of one shape, and views for use inside kernels.
#pragma once

#include <cstring>

#include "oar/backend/cpu/loops/compact.h"
#include "oar/ops/core/op_def.h"

namespace oar::cpu {

// A copy of elements where one of the dtypes is packed below a byte.
void copy_quantised(const oar_tensor& to, const oar_tensor& from);

// A tensor as kernels see it, over memory that it does not own. Not copyable: it points into
// itself.
class LocalTensor : public oar_tensor {
 public:
  LocalTensor(void* data_at, DType type, Dims sizes, Ints steps)
      : oar_tensor{}, sizes_(sizes.begin(), sizes.end()), steps_(steps.begin(), steps.end()) {
    data = data_at;
    shape = as_words({sizes_.data(), sizes_.size()}).data();
    strides = steps_.data();
    numel = 1;
    for (Dim d : sizes_) numel *= d.word();
    ndim = static_cast<int32_t>(sizes_.size());
    dtype = static_cast<uint8_t>(type);
  }
  // The part of `base` that a view describes.
  LocalTensor(const oar_tensor& base, const ViewSpec& spec)
      : LocalTensor(static_cast<char*>(base.data) +
                        byte_offset(spec.offset, static_cast<DType>(base.dtype)),
                    static_cast<DType>(base.dtype), spec.shape,
                    {spec.strides.data(), spec.strides.size()}) {}
  // `x` broadcast to a shape.
  static LocalTensor broadcast(const oar_tensor& x, Dims shape) {
    SmallVector<int64_t, 6> steps(shape.size(), 0);
    const size_t added = shape.size() - static_cast<size_t>(x.ndim);
    for (size_t i = added; i < shape.size(); ++i)
      if (x.shape[i - added] != 1) steps[i] = x.strides[i - added];
    return LocalTensor(x.data, static_cast<DType>(x.dtype), shape, {steps.data(), steps.size()});
  }
  LocalTensor(const LocalTensor&) = delete;
  LocalTensor& operator=(const LocalTensor&) = delete;

 private:
  SmallVector<Dim, 6> sizes_;
  SmallVector<int64_t, 6> steps_;
};

inline Dims dims_of(const oar_tensor& t) { return as_dims({t.shape, static_cast<size_t>(t.ndim)}); }
inline Ints strides_of(const oar_tensor& t) { return {t.strides, static_cast<size_t>(t.ndim)}; }
inline DType dtype_of(const oar_tensor& t) { return static_cast<DType>(t.dtype); }
inline int64_t element_size(const oar_tensor& t) {
  return static_cast<int64_t>(size_of(dtype_of(t)));
}

// A contiguous tensor for the duration of a kernel.
class TemporaryTensor {
 public:
  TemporaryTensor(Dims dims, DType dtype)
      : steps_(contiguous_strides(dims)),
        memory_(byte_count(Shape(dims).numel().word(), dtype)),
        tensor_(memory_.data(), dtype, dims, {steps_.data(), steps_.size()}) {}
  const oar_tensor& operator*() const { return tensor_; }
  template <class T>
  T* data() const {
    return static_cast<T*>(tensor_.data);
  }

 private:
  SmallVector<int64_t, 6> steps_;
  Scratch<char, 256> memory_;
  LocalTensor tensor_;
};

// The elements, contiguous, for kernels that only move them: a copy if they are not.
class Packed {
 public:
  explicit Packed(const oar_tensor& t) : memory_(is_contiguous(t) ? 0 : t.numel * element_size(t)) {
    data_ = is_contiguous(t) ? static_cast<const char*>(t.data) : memory_.data();
    if (!is_contiguous(t)) copy_elements(FlatTensor(t, memory_.data(), dtype_of(t)).get(), t);
  }
  template <class Word = char>
  const Word* data() const {
    return reinterpret_cast<const Word*>(data_);
  }

 private:
  Scratch<char, 256> memory_;
  const char* data_;
};

// Do the byte ranges of both overlap?
bool ranges_meet(const oar_tensor& a, const oar_tensor& b);

// Calls body with an integer type as wide as the element: for kernels that only move elements.
struct Wide {
  uint64_t words[2];
};
template <class F>
void visit_width(const oar_tensor& t, F&& body) {
  switch (element_size(t)) {
    case 1:
      return body(uint8_t{});
    case 2:
      return body(uint16_t{});
    case 4:
      return body(uint32_t{});
    case 8:
      return body(uint64_t{});
    default:
      return body(Wide{});
  }
}

// A result of at least this many bytes bypasses the caches: it would be evicted before it is
// read.
inline constexpr int64_t kStreamedFrom = int64_t{16} << 20;
// n contiguous bytes, bypassing the caches. stream_fence() must follow before others read them.
void stream_bytes(char* to, const char* from, int64_t n);
void stream_fence();

// n contiguous elements; a short run costs no call.
template <class Word>
void copy_packed(Word* to, const Word* from, int64_t n) {
  constexpr int64_t kBlock = 32, kLong = 512, size = sizeof(Word);
  if (n * size > kLong) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n * size));
  } else if (n * size < kBlock) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
  } else {
    auto* t = reinterpret_cast<char*>(to);
    const auto* f = reinterpret_cast<const char*>(from);
    const int64_t last = n * size - kBlock;  // the last block may overlap the one before it
    for (int64_t i = 0; i < last; i += kBlock) std::memcpy(t + i, f + i, kBlock);
    std::memcpy(t + last, f + last, kBlock);
  }
}

}  // namespace oar::cpu
