// Gated activations.
#include "oar/backend/cpu/apply.h"
#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/vector_math.h"

namespace oar::cpu {
namespace {

template <class C>
C sigmoid_of(C v) {
  return 1 / (1 + exp_of(-v));
}

// body(first half, second half, their counterpart of half the length, count) for every stretch of
// memory in which both halves lie side by side.
template <class Body>
void for_each_half(const oar_tensor& x, int64_t axis, Body&& body) {
  const AxisSpan span(x, axis);
  const int64_t run = span.length / 2 * span.inner;
  if (run == 0) return;
  const int64_t piece = std::min<int64_t>(run, 4096), pieces = (run + piece - 1) / piece;
  parallel_for(0, span.outer * pieces, std::max<int64_t>(1, kGrain / 8 / piece),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t row = i / pieces, at = i % pieces * piece;
                   body(row * 2 * run + at, (row * 2 + 1) * run + at, row * run + at,
                        std::min(piece, run - at));
                 }
               });
}

void glu(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    for_each_half(call.in(0), call.arg(1).as_int(),
                  [&](int64_t first, int64_t second, int64_t to, int64_t n) {
                    const T *a = x.data() + first, *b = x.data() + second;
                    fill_groups(out + to, n, [=](int64_t i) {
                      return static_cast<C>(a[i]) * sigmoid_of(static_cast<C>(b[i]));
                    });
                  });
  });
}

void glu_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0)), grad(call.in(1));
    auto* out = static_cast<T*>(call.out().data);
    for_each_half(call.in(0), call.arg(2).as_int(),
                  [&](int64_t first, int64_t second, int64_t from, int64_t n) {
                    const T *a = x.data() + first, *b = x.data() + second, *g = grad.data() + from;
                    fill_groups(out + first, n, [=](int64_t i) {
                      return static_cast<C>(g[i]) * sigmoid_of(static_cast<C>(b[i]));
                    });
                    fill_groups(out + second, n, [=](int64_t i) {
                      const C open = sigmoid_of(static_cast<C>(b[i]));
                      return static_cast<C>(g[i]) * open * (1 - open) * static_cast<C>(a[i]);
                    });
                  });
  });
}

struct GatedSilu {
  template <class T>
  T operator()(T x, T y) const {
    return x * sigmoid_of(x) * y;
  }
};

void gated_silu_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto& x = call.in(0);
    map_ternary<T>(call.out(0), x, call.in(1), call.in(2), [](auto v, auto y, auto grad) {
      const auto s = sigmoid_of(v);
      return grad * y * s * (1 + v * (1 - s));
    });
    map_binary<T, T>(call.out(1), x, call.in(2),
                     [](auto v, auto grad) { return grad * v * sigmoid_of(v); });
  });
}

}  // namespace

KernelList gates_kernels() {
  static const oar_kernel list[] = {
      {"glu", 1, "cpu:ref", nullptr, kernel_entry<glu>},
      {"glu_grad", 1, "cpu:ref", nullptr, kernel_entry<glu_grad>},
      {"gated_silu", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, GatedSilu>>},
      {"gated_silu_grad", 1, "cpu:ref", nullptr, kernel_entry<gated_silu_grad>},
  };
  return list;
}

}  // namespace oar::cpu
