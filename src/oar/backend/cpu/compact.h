// An operand as a flat array in another type, copied only where its layout or dtype asks for it.
#pragma once

#include "oar/backend/cpu/loops.h"
#include "oar/backend/cpu/scratch.h"

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

template <class To, class From>
void convert_elements(const oar_tensor& to, const oar_tensor& from) {
  StridedLoop<2>({&to, &from}).run([](const auto& p, const auto& s, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<To*>(p[0] + i * s[0]) =
          convert_element<To>(*reinterpret_cast<const From*>(p[1] + i * s[1]));
  });
}

template <class T>
inline constexpr DType dtype_of = DType::Float32;
template <>
inline constexpr DType dtype_of<bool> = DType::Bool;
template <>
inline constexpr DType dtype_of<float16> = DType::Float16;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::BFloat16;
template <>
inline constexpr DType dtype_of<float8_e4m3fn> = DType::Float8E4M3FN;
template <>
inline constexpr DType dtype_of<float8_e5m2> = DType::Float8E5M2;
template <>
inline constexpr DType dtype_of<double> = DType::Float64;
template <>
inline constexpr DType dtype_of<uint8_t> = DType::UInt8;
template <>
inline constexpr DType dtype_of<int8_t> = DType::Int8;
template <>
inline constexpr DType dtype_of<int16_t> = DType::Int16;
template <>
inline constexpr DType dtype_of<int32_t> = DType::Int32;
template <>
inline constexpr DType dtype_of<int64_t> = DType::Int64;
template <>
inline constexpr DType dtype_of<std::complex<float>> = DType::Complex64;
template <>
inline constexpr DType dtype_of<std::complex<double>> = DType::Complex128;

// Elements of type T read as `As`.
template <class T, class As>
class Flat {
 public:
  explicit Flat(const oar_tensor& t)
      : buffer_(copies(t) ? t.numel : 0),
        data_(copies(t) ? buffer_.data() : static_cast<const As*>(t.data)) {
    if (copies(t)) convert_elements<As, T>(FlatTensor(t, buffer_.data(), dtype_of<As>).get(), t);
  }
  const As* data() const { return data_; }

 private:
  static bool copies(const oar_tensor& t) { return !std::is_same_v<T, As> || !is_contiguous(t); }
  Scratch<As, 64> buffer_;
  const As* data_;
};
// In the type that sums are made in, or as it is.
template <class T>
using Compact = Flat<T, compute_t<T>>;
template <class T>
using Copied = Flat<T, T>;

// A contiguous result, computed as compute_t<T> and rounded once at the end.
template <class T>
class Result {
 public:
  using Element = compute_t<T>;
  explicit Result(oar_tensor& out)
      : out_(out),
        buffer_(kCopies ? out.numel : 0),
        data_(kCopies ? buffer_.data() : static_cast<Element*>(out.data)) {}
  Element* data() const { return data_; }
  void finish() const {
    if constexpr (kCopies)
      convert_elements<T, Element>(out_, FlatTensor(out_, data_, dtype_of<Element>).get());
  }

 private:
  static constexpr bool kCopies = !std::is_same_v<T, Element>;
  oar_tensor& out_;
  Scratch<Element, 64> buffer_;
  Element* data_;
};

}  // namespace oar::cpu
