// Paddle's C++ names for tensors, as users' kernels write them, over Oar's tensors.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/trigonometry.h"
#include "oar/tensor/element.h"

namespace OAR_API paddle {

using float16 = ::oar::float16;
using bfloat16 = ::oar::bfloat16;
template <class T>
using complex = std::complex<T>;

// The same numbers as Oar's.
enum class DataType : uint8_t {
  BOOL = OAR_BOOL,
  UINT8 = OAR_UINT8,
  INT8 = OAR_INT8,
  INT16 = OAR_INT16,
  INT32 = OAR_INT32,
  INT64 = OAR_INT64,
  FLOAT16 = OAR_FLOAT16,
  BFLOAT16 = OAR_BFLOAT16,
  FLOAT32 = OAR_FLOAT32,
  FLOAT64 = OAR_FLOAT64,
  COMPLEX64 = OAR_COMPLEX64,
  COMPLEX128 = OAR_COMPLEX128,
};

class Place {
 public:
  Place() = default;
  explicit Place(::oar::Device device) : device_(device) {}
  ::oar::Device device() const { return device_; }
  bool operator==(const Place&) const = default;

 private:
  ::oar::Device device_;
};
class CPUPlace : public Place {};

template <class T>
class optional : public std::optional<T> {
 public:
  using std::optional<T>::optional;
  const T& get() const { return this->value(); }
  T& get() { return this->value(); }
  const T* get_ptr() const { return *this ? &**this : nullptr; }
  bool is_initialized() const { return this->has_value(); }
};
inline constexpr std::nullopt_t none = std::nullopt;

class Tensor {
 public:
  Tensor() = default;
  Tensor(::oar::Tensor tensor) : tensor_(std::move(tensor)) {}  // one is the other
  const ::oar::Tensor& native() const { return tensor_; }

  bool defined() const { return tensor_.defined(); }
  bool initialized() const { return tensor_.defined() && tensor_.is_dense(); }
  std::vector<int64_t> shape() const {
    std::vector<int64_t> sizes;
    for (const ::oar::Dim d : tensor_.dims()) sizes.push_back(d.value());
    return sizes;
  }
  std::vector<int64_t> dims() const { return shape(); }
  int64_t numel() const { return tensor_.numel().value(); }
  int64_t size() const { return numel(); }
  DataType dtype() const { return static_cast<DataType>(tensor_.dtype()); }
  DataType type() const { return dtype(); }
  Place place() const { return Place(tensor_.device()); }
  bool is_cpu() const { return tensor_.device().is_cpu(); }
  bool is_gpu() const { return false; }
  bool is_xpu() const { return false; }
  bool is_gpu_pinned() const { return false; }
  bool is_custom_device() const { return !is_cpu(); }

  // The elements, contiguous. T must be the type of the elements.
  template <class T>
  T* data() const {
    check_content(holds<std::remove_cv_t<T>>());
    return tensor_.data<T>();
  }
  template <class T>
  T* mutable_data() const {
    return data<T>();
  }
  template <class T>
  T* mutable_data(const Place&) const {
    return data<T>();
  }
  const void* data() const {
    check_content(true);
    return tensor_.data<void>();
  }

  Tensor cast(DataType type) const { return ::oar::cast(tensor_, static_cast<::oar::DType>(type)); }
  Tensor reshape(const std::vector<int64_t>& shape) const {
    return compact(::oar::reshape(tensor_, ::oar::DimArgs(::oar::as_dims(shape))));
  }
  // Rows begin to end of the first axis.
  Tensor slice(int64_t begin, int64_t end) const;
  template <class T>
  Tensor copy_to(const Place&) const {
    return ::oar::assign(tensor_);
  }
  Tensor copy_to(const Place&, bool) const { return ::oar::assign(tensor_); }
  Tensor contiguous() const { return compact(tensor_); }

  Tensor abs() const { return ::oar::abs(tensor_); }
  Tensor exp() const { return ::oar::exp(tensor_); }
  Tensor log() const { return ::oar::log(tensor_); }
  Tensor sqrt() const { return ::oar::sqrt(tensor_); }
  Tensor tanh() const { return ::oar::tanh(tensor_); }
  Tensor pow(double exponent) const { return ::oar::pow(tensor_, ::oar::literal(exponent)); }

  // Contiguous memory: kernels iterate from the first element to the last.
  static Tensor compact(const ::oar::Tensor& tensor) {
    return tensor.is_contiguous() ? tensor : ::oar::assign(tensor);
  }

 private:
  template <class T>
  bool holds() const {
    return ::oar::visit_dtype(tensor_.dtype(), [](auto tag) {
      using E = typename decltype(tag)::type;
      return std::is_same_v<E, T> ||
             (std::is_integral_v<E> && std::is_integral_v<T> && !std::is_same_v<E, bool> &&
              sizeof(E) == sizeof(T) && std::is_signed_v<E> == std::is_signed_v<T>);
    });
  }
  void check_content(bool holds_type) const;

  ::oar::Tensor tensor_;
};

// ---- Creating tensors

inline Tensor empty(const std::vector<int64_t>& shape, DataType type = DataType::FLOAT32,
                    const Place& place = {}) {
  return ::oar::Tensor::empty(::oar::as_dims(shape), static_cast<::oar::DType>(type),
                              place.device());
}
inline Tensor full(const std::vector<int64_t>& shape, double value,
                   DataType type = DataType::FLOAT32, const Place& = {}) {
  return ::oar::full(::oar::DimArgs(::oar::as_dims(shape)), value, static_cast<::oar::DType>(type));
}
inline Tensor zeros(const std::vector<int64_t>& shape, DataType type = DataType::FLOAT32,
                    const Place& place = {}) {
  return full(shape, 0, type, place);
}
inline Tensor ones(const std::vector<int64_t>& shape, DataType type = DataType::FLOAT32,
                   const Place& place = {}) {
  return full(shape, 1, type, place);
}
inline Tensor empty_like(const Tensor& x) { return empty(x.shape(), x.dtype(), x.place()); }
inline Tensor full_like(const Tensor& x, double value) { return full(x.shape(), value, x.dtype()); }
inline Tensor zeros_like(const Tensor& x) { return full_like(x, 0); }
inline Tensor ones_like(const Tensor& x) { return full_like(x, 1); }

// ---- Operators. Both sides may be tensors or numbers.

#define OAR_PADDLE_OPERATOR(symbol)                                 \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { \
    return a.native() symbol b.native();                            \
  }                                                                 \
  template <::oar::Number N>                                        \
  Tensor operator symbol(const Tensor& a, N b) {                    \
    return a.native() symbol b;                                     \
  }                                                                 \
  template <::oar::Number N>                                        \
  Tensor operator symbol(N a, const Tensor& b) {                    \
    return a symbol b.native();                                     \
  }
OAR_PADDLE_OPERATOR(+)
OAR_PADDLE_OPERATOR(-)
OAR_PADDLE_OPERATOR(*)
OAR_PADDLE_OPERATOR(/)
#undef OAR_PADDLE_OPERATOR
inline Tensor operator-(const Tensor& a) { return -a.native(); }

// ---- Functions of tensors

#define OAR_PADDLE_UNARY(name) \
  inline Tensor name(const Tensor& x) { return ::oar::name(x.native()); }
OAR_PADDLE_UNARY(abs)
OAR_PADDLE_UNARY(exp)
OAR_PADDLE_UNARY(log)
OAR_PADDLE_UNARY(relu)
OAR_PADDLE_UNARY(sigmoid)
OAR_PADDLE_UNARY(sqrt)
OAR_PADDLE_UNARY(square)
OAR_PADDLE_UNARY(tanh)
#undef OAR_PADDLE_UNARY

#define OAR_PADDLE_BINARY(name)                          \
  inline Tensor name(const Tensor& x, const Tensor& y) { \
    return ::oar::name(x.native(), y.native());          \
  }
OAR_PADDLE_BINARY(add)
OAR_PADDLE_BINARY(divide)
OAR_PADDLE_BINARY(maximum)
OAR_PADDLE_BINARY(minimum)
OAR_PADDLE_BINARY(multiply)
OAR_PADDLE_BINARY(subtract)
#undef OAR_PADDLE_BINARY

inline Tensor matmul(const Tensor& x, const Tensor& y, bool transpose_x = false,
                     bool transpose_y = false) {
  return ::oar::matmul(x.native(), y.native(), transpose_x, transpose_y);
}
inline Tensor sum(const Tensor& x, const std::vector<int64_t>& axis = {}, bool keepdim = false) {
  const auto axes = axis.empty() ? std::nullopt : std::optional<::oar::IntArgs>(::oar::Ints(axis));
  return ::oar::sum(x.native(), axes, std::nullopt, keepdim);
}
inline Tensor transpose(const Tensor& x, const std::vector<int64_t>& perm) {
  return Tensor::compact(::oar::transpose(x.native(), ::oar::Ints(perm)));
}

// ---- Errors

namespace detail {
[[noreturn]] void fail(const std::string& text);

template <class... A>
std::string joined(const A&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    if constexpr (requires { std::to_string(part); })
      text += std::to_string(part);
    else
      text += part;
  };
  (add(parts), ...);
  return text;
}
}  // namespace detail

}  // namespace paddle

#define PD_THROW(...) ::paddle::detail::fail(::paddle::detail::joined(__VA_ARGS__))
#define PD_CHECK(condition, ...)                               \
  do {                                                         \
    if (!(condition)) PD_THROW("" __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)
