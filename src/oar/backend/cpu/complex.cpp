// Complex numbers and their parts.
#include <cmath>
#include <numbers>

#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

struct Conj {
  template <class T>
  T operator()(T v) const {
    return std::conj(v);
  }
};

struct Real {
  template <class T>
  auto operator()(T v) const {
    if constexpr (is_complex_type<T>)
      return v.real();
    else
      return v;
  }
};
struct Imag {
  template <class T>
  auto operator()(T v) const {
    if constexpr (is_complex_type<T>)
      return v.imag();
    else
      return T(0);
  }
};
struct Angle {
  template <class T>
  auto operator()(T v) const {
    if constexpr (is_complex_type<T>)
      return std::atan2(v.imag(), v.real());
    else
      return v < 0 ? std::numbers::pi_v<T> : v != v ? v : T(0);
  }
};

template <unsigned kTypes, class F>
void part(KernelCall& call) {
  visit_wide<kTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_type<T>)
      map_unary<typename T::value_type, T>(call.out(), call.in(0), F{});
    else
      map_unary<T, T>(call.out(), call.in(0), F{});
  });
}

void complex(KernelCall& call) {
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    map_binary<std::complex<C>, C>(call.out(), call.in(0), call.in(1),
                                   [](C re, C im) { return std::complex<C>(re, im); });
  });
}

// A complex tensor as its numbers: one axis more, of size 2.
class Pairs {
 public:
  explicit Pairs(const oar_tensor& complex) : tensor_(complex) {
    for (int axis = 0; axis < complex.ndim; ++axis) {
      shape_.push_back(complex.shape[axis]);
      strides_.push_back(complex.strides[axis] * 2);
    }
    shape_.push_back(2);
    strides_.push_back(1);
    tensor_.shape = shape_.data();
    tensor_.strides = strides_.data();
    tensor_.ndim += 1;
    tensor_.numel *= 2;
    tensor_.dtype = static_cast<uint8_t>(real_type_of(static_cast<DType>(complex.dtype)));
  }
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;
  const oar_tensor& numbers() const { return tensor_; }

 private:
  oar_tensor tensor_;
  SmallVector<int64_t, 8> shape_, strides_;
};

void as_complex(KernelCall& call) { copy_elements(Pairs(call.out()).numbers(), call.in(0)); }
void as_real(KernelCall& call) { copy_elements(call.out(), Pairs(call.in(0)).numbers()); }

}  // namespace

KernelList complex_kernels() {
  static const oar_kernel list[] = {
      {"complex_conj", 1, "cpu:generic", nullptr, kernel_entry<unary<kComplexes, Conj>>},
      {"real", 1, "cpu:generic", nullptr, kernel_entry<part<kNumbers, Real>>},
      {"imag", 1, "cpu:generic", nullptr, kernel_entry<part<kNumbers, Imag>>},
      {"angle", 1, "cpu:generic", nullptr, kernel_entry<part<kFloats | kComplexes, Angle>>},
      {"complex", 1, "cpu:generic", nullptr, kernel_entry<complex>},
      {"as_complex", 1, "cpu:generic", nullptr, kernel_entry<as_complex>},
      {"as_real", 1, "cpu:generic", nullptr, kernel_entry<as_real>},
  };
  return list;
}

}  // namespace oar::cpu
