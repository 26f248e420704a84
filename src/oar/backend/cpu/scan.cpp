// Running sums, products and recurrences along an axis. Lines are independent: they run in
// parallel, and neighbouring ones together, so that memory is read in order.
#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/reduce.h"
#include "oar/backend/cpu/vector_math.h"

namespace oar::cpu {
namespace {

// body(first element, count) over groups of neighbouring lines; elements of a line are `inner`
// apart.
template <class Body>
void for_lines(const AxisSpan& span, Body&& body) {
  constexpr int64_t kWidth = 64;
  const int64_t blocks = (span.inner + kWidth - 1) / kWidth;
  const int64_t work = std::max<int64_t>(1, std::min(kWidth, span.inner) * span.length);
  if (span.length == 0) return;
  parallel_for(
      0, span.outer * blocks, std::max<int64_t>(1, kGrain / work), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t at = b % blocks * kWidth;
          body(b / blocks * span.length * span.inner + at, std::min(kWidth, span.inner - at));
        }
      });
}

// Lines one behind the other, walked together: a step waits for the one before it, but not for
// those of other lines.
template <int kLines, class T, class Acc, class Step>
void scan_line(const T* in, T* out, int64_t n, bool exclusive, bool reverse, Acc identity,
               Step step) {
  Acc acc[kLines];
  std::fill_n(acc, kLines, identity);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = reverse ? n - 1 - i : i;
#pragma GCC unroll 4
    for (int64_t l = 0; l < kLines; ++l) {
      const Acc next = step(acc[l], convert_element<Acc>(in[l * n + at]));
      out[l * n + at] = convert_element<T>(exclusive ? acc[l] : next);
      acc[l] = next;
    }
  }
}

template <class T, class Acc, class Step>
void scan_rows(const T* in, T* out, int64_t rows, int64_t n, bool exclusive, bool reverse,
               Acc identity, Step step) {
  constexpr int64_t kTogether = 4;
  parallel_for(0, rows, std::max<int64_t>(kTogether, kGrain / std::max<int64_t>(n, 1)),
               [&](int64_t begin, int64_t end) {
                 int64_t r = begin;
                 for (; r + kTogether <= end; r += kTogether)
                   scan_line<kTogether>(in + r * n, out + r * n, n, exclusive, reverse, identity,
                                        step);
                 for (; r < end; ++r)
                   scan_line<1>(in + r * n, out + r * n, n, exclusive, reverse, identity, step);
               });
}

// Lines that stand side by side are walked together, with one accumulator each.
template <class T, class Acc, class Step>
void scan_lines(const oar_tensor& out, const oar_tensor& x, int64_t axis, bool exclusive,
                bool reverse, Acc identity, Step step) {
  const AxisSpan span(x, axis);
  const Contiguous<T> in(x);
  auto* o = static_cast<T*>(out.data);
  if (span.inner == 1)
    return scan_rows(in.data(), o, span.outer, span.length, exclusive, reverse, identity, step);
  for_lines(span, [&](int64_t first, int64_t width) {
    Acc acc[64];
    for (int64_t c = 0; c < width; ++c) acc[c] = identity;
    for (int64_t i = 0; i < span.length; ++i) {
      const int64_t at = first + (reverse ? span.length - 1 - i : i) * span.inner;
      const T* line = in.data() + at;
      T* to = o + at;
      if (exclusive)
        for (int64_t c = 0; c < width; ++c) to[c] = convert_element<T>(acc[c]);
      fill_groups(acc, width,
                  [&](int64_t c) { return step(acc[c], convert_element<Acc>(line[c])); });
      if (!exclusive)
        for (int64_t c = 0; c < width; ++c) to[c] = convert_element<T>(acc[c]);
    }
  });
}

// float32 carries its running sum in double: a chain cannot be summed pairwise.
template <class T>
using scan_t =
    std::conditional_t<std::is_integral_v<T>, int64_t,
                       std::conditional_t<is_complex_type<T>, std::complex<double>, double>>;

void cumsum_along(KernelCall& call) {
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = scan_t<T>;
    scan_lines<T, Acc>(call.out(), call.in(0), call.arg(1).as_int(), call.arg(2).as_bool(),
                       call.arg(3).as_bool(), Acc(0),
                       [](Acc a, Acc v) { return wrapping_add(a, v); });
  });
}

void cumprod_along(KernelCall& call) {
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = std::conditional_t<std::is_integral_v<T>, int64_t, compute_t<T>>;
    scan_lines<T, Acc>(call.out(), call.in(0), call.arg(1).as_int(), call.arg(2).as_bool(), false,
                       Acc(1), [](Acc a, Acc v) { return wrapping_multiply(a, v); });
  });
}

void logcumsumexp_along(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto step = [](double a, double v) {
      const double high = std::max(a, v), low = std::min(a, v);
      if (a != a || v != v) return a + v;
      return std::isinf(high) ? high : high + std::log1p(std::exp(low - high));
    };
    scan_lines<T, double>(call.out(), call.in(0), call.arg(1).as_int(), false,
                          call.arg(2).as_bool(), -std::numeric_limits<double>::infinity(), step);
  });
}

// The largest (smallest) element so far and its place, the last of equals; from a NaN on, the NaN.
template <bool kLargest, class T>
void extremes_so_far(const AxisSpan& span, const T* in, T* values, int64_t* places) {
  // A NaN is neither below nor above, so it replaces any number; and nothing replaces it.
  const auto replaces = [](auto value, auto best) {
    return !(kLargest ? value < best : value > best) && best == best;
  };
  for_lines(span, [&](int64_t first, int64_t width) {
    if (span.inner == 1) {
      auto best = static_cast<compute_t<T>>(in[first]);
      for (int64_t i = 0, place = 0; i < span.length; ++i) {
        const auto value = static_cast<compute_t<T>>(in[first + i]);
        if (replaces(value, best)) best = value, place = i;
        values[first + i] = static_cast<T>(best);
        places[first + i] = place;
      }
      return;
    }
    compute_t<T> best[64];
    int64_t place[64] = {};
    for (int64_t c = 0; c < width; ++c) best[c] = static_cast<compute_t<T>>(in[first + c]);
    for (int64_t i = 0; i < span.length; ++i) {
      const int64_t at = first + i * span.inner;
      for (int64_t c = 0; c < width; ++c) {
        const auto value = static_cast<compute_t<T>>(in[at + c]);
        const bool better = replaces(value, best[c]);
        best[c] = better ? value : best[c];
        place[c] = better ? i : place[c];
        values[at + c] = static_cast<T>(best[c]);
        places[at + c] = place[c];
      }
    }
  });
}

void extreme_along(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  if (call.in(0).numel == 0) return;
  visit<kBools | kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> in(call.in(0));
    auto* values = static_cast<T*>(call.out(0).data);
    auto* places = static_cast<int64_t*>(call.out(1).data);
    if (call.arg(2).as_bool())
      extremes_so_far<true>(span, in.data(), values, places);
    else
      extremes_so_far<false>(span, in.data(), values, places);
  });
}

void linear_recurrence(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  const bool reverse = call.arg(3).as_bool();
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = scan_t<T>;
    const Contiguous<T> a(call.in(0)), b(call.in(1));
    auto* o = static_cast<T*>(call.out().data);
    for_lines(span, [&](int64_t first, int64_t width) {
      Acc h[64];
      for (int64_t c = 0; c < width; ++c) h[c] = Acc(0);
      for (int64_t i = 0; i < span.length; ++i) {
        const int64_t at = first + (reverse ? span.length - 1 - i : i) * span.inner;
        for (int64_t c = 0; c < width; ++c) {
          // The first one has nothing before it; its coefficient may be anything, even infinite.
          if (i > 0) h[c] *= convert_element<Acc>(a.data()[at + c + (reverse ? span.inner : 0)]);
          h[c] += convert_element<Acc>(b.data()[at + c]);
          o[at + c] = convert_element<T>(h[c]);
        }
      }
    });
  });
}

void shift_along(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  const int64_t by = std::clamp(call.arg(2).as_int(), -span.length, span.length);
  visit<kAllTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> in(call.in(0));
    auto* o = static_cast<T*>(call.out().data);
    const int64_t line = span.length * span.inner, moved = std::abs(by) * span.inner;
    parallel_for(0, span.outer, std::max<int64_t>(1, kGrain / std::max<int64_t>(line, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const T* from = in.data() + i * line;
                     T* to = o + i * line;
                     if (by >= 0) {
                       std::fill_n(to, moved, T{});
                       std::copy_n(from, line - moved, to + moved);
                     } else {
                       std::copy_n(from + moved, line - moved, to);
                       std::fill_n(to + line - moved, moved, T{});
                     }
                   }
                 });
  });
}

}  // namespace

KernelList scan_kernels() {
  static const oar_kernel list[] = {
      {"cumsum_along", 1, "cpu:ref", nullptr, kernel_entry<cumsum_along>},
      {"cumprod_along", 1, "cpu:ref", nullptr, kernel_entry<cumprod_along>},
      {"logcumsumexp_along", 1, "cpu:ref", nullptr, kernel_entry<logcumsumexp_along>},
      {"extreme_along", 1, "cpu:ref", nullptr, kernel_entry<extreme_along>},
      {"linear_recurrence", 1, "cpu:ref", nullptr, kernel_entry<linear_recurrence>},
      {"shift_along", 1, "cpu:ref", nullptr, kernel_entry<shift_along>},
  };
  return list;
}

}  // namespace oar::cpu
