// Angles and their hyperbolic counterparts.
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;

struct Sin {
  template <class T>
  T operator()(T v) const {
    return std::sin(v);
  }
};
struct Cos {
  template <class T>
  T operator()(T v) const {
    return std::cos(v);
  }
};
struct Tan {
  template <class T>
  T operator()(T v) const {
    return std::tan(v);
  }
};
struct Asin {
  template <class T>
  T operator()(T v) const {
    return std::asin(v);
  }
};
struct Acos {
  template <class T>
  T operator()(T v) const {
    return std::acos(v);
  }
};
struct Atan {
  template <class T>
  T operator()(T v) const {
    return std::atan(v);
  }
};
struct Sinh {
  template <class T>
  T operator()(T v) const {
    return std::sinh(v);
  }
};
struct Cosh {
  template <class T>
  T operator()(T v) const {
    return std::cosh(v);
  }
};
struct Tanh {
  template <class T>
  T operator()(T v) const {
    return std::tanh(v);
  }
};
struct TanhGrad {
  template <class T>
  T operator()(T out, T grad) const {
    if constexpr (is_complex_type<T>)
      return grad * std::conj(T(1) - out * out);
    else
      return grad * (1 - out * out);
  }
};
struct Atan2 {
  template <class T>
  T operator()(T x, T y) const {
    return std::atan2(x, y);
  }
};
struct Asinh {
  template <class T>
  T operator()(T v) const {
    return std::asinh(v);
  }
};
struct Acosh {
  template <class T>
  T operator()(T v) const {
    return std::acosh(v);
  }
};
struct Atanh {
  template <class T>
  T operator()(T v) const {
    return std::atanh(v);
  }
};

}  // namespace

KernelList trigonometry_kernels() {
  static const oar_kernel list[] = {
      {"sin", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Sin>>},
      {"cos", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Cos>>},
      {"tan", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Tan>>},
      {"asin", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Asin>>},
      {"acos", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Acos>>},
      {"atan", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Atan>>},
      {"sinh", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Sinh>>},
      {"cosh", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Cosh>>},
      {"tanh", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Tanh>>},
      {"tanh_grad", 1, "cpu:generic", nullptr, training_entry<binary<kMath, TanhGrad>>},
      {"atan2", 1, "cpu:generic", nullptr, kernel_entry<binary<kFloats, Atan2>>},
      {"asinh", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Asinh>>},
      {"acosh", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Acosh>>},
      {"atanh", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Atanh>>},
  };
  return list;
}

}  // namespace oar::cpu
