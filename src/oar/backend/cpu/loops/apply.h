// Kernels from functors. A functor is compiled for the types of visit_common; elements of other
// dtypes are converted block by block on the way in and out.
#pragma once

#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {

inline constexpr int64_t kMapped = 256;  // elements that are converted at a time

// body(to, operands, count) over blocks of contiguous elements as Out and In, whatever the
// tensors' dtypes and strides. A block of the result may be one of an operand.
template <class Out, class In, size_t N>
[[gnu::noinline]] void map_blocks(
    const std::array<const oar_tensor*, N + 1>& tensors,
    FunctionRef<void(Out*, const std::array<const In*, N>&, int64_t)> body) {
  const auto type_of = [&](size_t k) { return static_cast<DType>(tensors[k]->dtype); };
  const bool stores = type_of(0) == dtype_for<Out>;
  const ConvertRun store = conversion(type_of(0), dtype_for<Out>);
  std::array<bool, N> reads;
  std::array<ConvertRun, N> load;
  for (size_t k = 0; k < N; ++k) {
    reads[k] = type_of(k + 1) == dtype_for<In>;
    load[k] = conversion(dtype_for<In>, type_of(k + 1));
  }
  StridedLoop<N + 1>(tensors).run([&](const auto& p, const auto& s, int64_t n) {
    Out made[kMapped];
    In buffer[N][kMapped];
    for (int64_t i = 0; i < n; i += kMapped) {
      const int64_t count = std::min(kMapped, n - i);
      std::array<const In*, N> in;
      for (size_t k = 0; k < N; ++k) {
        char* from = p[k + 1] + i * s[k + 1];
        in[k] = reinterpret_cast<const In*>(from);
        if (reads[k] && s[k + 1] == sizeof(In)) continue;
        load[k]({reinterpret_cast<char*>(buffer[k]), from}, {sizeof(In), s[k + 1]}, count);
        in[k] = buffer[k];
      }
      char* to = p[0] + i * s[0];
      if (stores && s[0] == sizeof(Out)) {
        body(reinterpret_cast<Out*>(to), in, count);
      } else {
        body(made, in, count);
        store({to, reinterpret_cast<char*>(made)}, {s[0], sizeof(Out)}, count);
      }
    }
  });
}

// out[i] = f(in[i]).
template <class Out, class In, class F>
void map_unary(const oar_tensor& out, const oar_tensor& in, F f) {
  map_blocks<Out, In, 1>({&out, &in}, [&](Out* o, const auto& a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(f(a[0][i]));
  });
}
// out[i] = f(x[i], y[i]).
template <class Out, class In, class F>
void map_binary(const oar_tensor& out, const oar_tensor& x, const oar_tensor& y, F f) {
  map_blocks<Out, In, 2>({&out, &x, &y}, [&](Out* o, const auto& a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(f(a[0][i], a[1][i]));
  });
}
// out[i] = f(x[i], y[i], z[i]), all of one type.
template <class T, class F>
void map_ternary(const oar_tensor& out, const oar_tensor& x, const oar_tensor& y,
                 const oar_tensor& z, F f) {
  map_blocks<T, T, 3>({&out, &x, &y, &z}, [&](T* o, const auto& a, int64_t n) {
    for (int64_t i = 0; i < n; ++i) o[i] = f(a[0][i], a[1][i], a[2][i]);
  });
}

// The operand's dtype in and out.
template <unsigned kTypes, class F>
void apply_unary(KernelCall& call, F f) {
  visit_common<kTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_unary<T, T>(call.out(), call.in(0), f);
  });
}
template <unsigned kTypes, class F>
void apply_binary(KernelCall& call, F f) {
  visit_common<kTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_binary<T, T>(call.out(), call.in(0), call.in(1), f);
  });
}

// The same for a functor without state, as a kernel of its own.
template <unsigned kTypes, class F>
void unary(KernelCall& call) {
  apply_unary<kTypes>(call, F{});
}
template <unsigned kTypes, class F>
void binary(KernelCall& call) {
  apply_binary<kTypes>(call, F{});
}

// Returns a bool.
template <unsigned kTypes, class F>
void unary_question(KernelCall& call) {
  visit_common<kTypes>(call.dtype(), [&](auto tag) {
    map_unary<bool, typename decltype(tag)::type>(call.out(), call.in(0), F{});
  });
}
template <unsigned kTypes, class F>
void binary_question(KernelCall& call) {
  visit_common<kTypes>(call.dtype(), [&](auto tag) {
    map_binary<bool, typename decltype(tag)::type>(call.out(), call.in(0), call.in(1), F{});
  });
}

// Integers wrap on overflow, as in NumPy: they compute in the unsigned type of the same width.
template <class T, class F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // At least 32 bits wide, since narrower ones would be promoted to a signed int.
    using U = std::common_type_t<std::make_unsigned_t<T>, uint32_t>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return static_cast<T>(f(a, b));
  }
}

// The nearest value of an integer type; NaN becomes 0.
template <class T>
T saturated(double value) {
  if (value != value) return 0;
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

}  // namespace oar::cpu
