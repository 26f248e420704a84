// An operand as a flat array in another type, copied only if its layout or dtype requires it.
#pragma once

#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/scratch.h"

namespace oar::cpu {

inline bool is_contiguous(const oar_tensor& t) {
  int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

// A description of flat memory with the shape of `like`.
class FlatTensor {
 public:
  FlatTensor(const oar_tensor& like, void* data, DType dtype) : tensor_(like) {
    strides_.resize(static_cast<size_t>(like.ndim));
    int64_t step = 1;
    for (int i = like.ndim - 1; i >= 0; --i) {
      strides_[static_cast<size_t>(i)] = step;
      step *= like.shape[i];
    }
    tensor_.data = data;
    tensor_.strides = strides_.data();
    tensor_.dtype = static_cast<uint8_t>(dtype);
  }
  const oar_tensor& get() const { return tensor_; }

 private:
  oar_tensor tensor_;
  SmallVector<int64_t, 6> strides_;
};

// Any dtypes and strides; the values are converted where the dtypes differ.
void copy_elements(const oar_tensor& to, const oar_tensor& from);

// A run of n elements from p[1] to p[0], with steps in bytes.
using ConvertRun = void (*)(const std::array<char*, 2>& p, const std::array<int64_t, 2>& steps,
                            int64_t n);
ConvertRun conversion(DType to, DType from);

template <class T>
struct HasNoDType;
template <class T>
inline constexpr DType dtype_for = HasNoDType<T>::value;
template <>
inline constexpr DType dtype_for<float> = DType::Float32;
template <>
inline constexpr DType dtype_for<bool> = DType::Bool;
template <>
inline constexpr DType dtype_for<uint8_t> = DType::UInt8;
template <>
inline constexpr DType dtype_for<int8_t> = DType::Int8;
template <>
inline constexpr DType dtype_for<int16_t> = DType::Int16;
template <>
inline constexpr DType dtype_for<int32_t> = DType::Int32;
template <>
inline constexpr DType dtype_for<int64_t> = DType::Int64;
template <>
inline constexpr DType dtype_for<float16> = DType::Float16;
template <>
inline constexpr DType dtype_for<bfloat16> = DType::BFloat16;
template <>
inline constexpr DType dtype_for<double> = DType::Float64;
template <>
inline constexpr DType dtype_for<std::complex<float>> = DType::Complex64;
template <>
inline constexpr DType dtype_for<std::complex<double>> = DType::Complex128;
template <>
inline constexpr DType dtype_for<float8_e4m3fn> = DType::Float8E4M3FN;
template <>
inline constexpr DType dtype_for<float8_e5m2> = DType::Float8E5M2;

// The elements, contiguous, as `As`, whatever the tensor's dtype.
template <class As>
class Flat {
 public:
  explicit Flat(const oar_tensor& t) : Flat(t, copies(t)) {}
  const As* data() const { return data_; }

 private:
  Flat(const oar_tensor& t, bool copies)
      : buffer_(copies ? t.numel : 0),
        data_(copies ? buffer_.data() : static_cast<const As*>(t.data)) {
    if (copies) copy_elements(FlatTensor(t, buffer_.data(), dtype_for<As>).get(), t);
  }
  static bool copies(const oar_tensor& t) {
    return static_cast<DType>(t.dtype) != dtype_for<As> || !is_contiguous(t);
  }
  Scratch<As, 64> buffer_;
  const As* data_;
};
// In the type of sums, or as it is.
template <class T>
using Compact = Flat<compute_t<T>>;
template <class T>
using Copied = Flat<T>;

// A result computed as a flat array of compute_t<T>, and rounded to its dtype once at the end.
template <class T>
class Result {
 public:
  using Element = compute_t<T>;
  explicit Result(const oar_tensor& out)
      : out_(out),
        copies_(static_cast<DType>(out.dtype) != dtype_for<Element> || !is_contiguous(out)),
        buffer_(copies_ ? out.numel : 0),
        data_(copies_ ? buffer_.data() : static_cast<Element*>(out.data)) {}
  Element* data() const { return data_; }
  bool in_place() const { return !copies_; }
  void finish() const {
    if (copies_) copy_elements(out_, FlatTensor(out_, data_, dtype_for<Element>).get());
  }

 private:
  const oar_tensor& out_;
  const bool copies_;
  Scratch<Element, 64> buffer_;
  Element* data_;
};

}  // namespace oar::cpu
