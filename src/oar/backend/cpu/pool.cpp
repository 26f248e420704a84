// Pooling over windows of images, and the reverse ways. Loops run over what lies side by side: windows
// of a row, or channels where they are last.
#include <limits>

#include "oar/backend/cpu/compact.h"
#include "oar/backend/cpu/pool_max.h"
#include "oar/backend/cpu/pool_mean.h"

namespace oar::cpu {
namespace {

// ---- The windows of a call.

// Arguments from `first` on: kernel_size, stride, padding.
Windows sliding_windows(const KernelCall& call, int first, const oar_tensor& image,
                        const oar_tensor& out, bool channels_last) {
  const Ints window = call.arg(first).as_ints(), stride = call.arg(first + 1).as_ints();
  const Ints padding = call.arg(first + 2).as_ints();
  return {image, out, channels_last, [&](int axis, int64_t size, int64_t count) {
            const auto i = static_cast<size_t>(axis);
            return sliding_spans(size, count, window[i], stride[i], padding[2 * i],
                                 padding[2 * i + 1]);
          }};
}
Windows adaptive_windows(const oar_tensor& image, const oar_tensor& out, bool channels_last) {
  return {image, out, channels_last,
          [](int, int64_t size, int64_t count) { return adaptive_spans(size, count); }};
}
Windows fractional_windows(const KernelCall& call) {
  const double u = *static_cast<const double*>(call.in(1).data);
  user_check(u >= 0 && u <= 1, ErrorKind::InvalidArgument, "u must lie between 0 and 1, not {}.",
             u);
  return {call.in(0), call.out(), false, [&](int axis, int64_t size, int64_t count) {
            const int64_t window =
                call.has(3) ? call.arg(3).as_ints()[static_cast<size_t>(axis)] : 0;
            return fractional_spans(size, count, window, static_cast<float>(u));
          }};
}

// ---- Maxima.

void max_pool_over(KernelCall& call, const Windows& w) {
  user_check(w.pixels() <= std::numeric_limits<int32_t>::max(), ErrorKind::InvalidArgument,
             "an image of {} x {} x {} has more pixels than its mask can number.", w.size[0],
             w.size[1], w.size[2]);
  visit<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    max_pool_of<T>(w, x.data(), static_cast<T*>(call.out(0).data),
                   static_cast<int32_t*>(call.out(1).data));
  });
}

void max_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool_over(call, sliding_windows(call, 1, call.in(0), call.out(), call.arg(5).as_bool()));
}
void adaptive_max_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool_over(call, adaptive_windows(call.in(0), call.out(), call.arg(2).as_bool()));
}
void fractional_max_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool_over(call, fractional_windows(call));
}

// ---- The pixels that a mask names.

// body(place among the pixels of all images, place in the mask), one plane's in the mask's order.
template <class Body>
void for_each_named(const oar_tensor& mask, const int32_t* places, const oar_tensor& image,
                    bool channels_last, Body&& body) {
  const Windows w(image, mask, channels_last,
                  [](int, int64_t, int64_t count) { return adaptive_spans(1, count); });
  const int64_t pixels = w.pixels(), count = w.count();
  w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
    for (int64_t i = piece * count; i < (piece + 1) * count; ++i)
      for (int64_t c = begin; c < end; ++c) {
        const int64_t at = i * w.channels + c;
        if (places[at] == -1) continue;
        user_check(places[at] >= 0 && places[at] < pixels, ErrorKind::OutOfRange,
                   "the mask names pixel {} of an image with {} pixels.", places[at], pixels);
        body((piece * pixels + places[at]) * w.channels + c, at);
      }
  });
}

void max_pool_scatter(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Copied<int32_t> mask(call.in(1));
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    std::fill(result.data(), result.data() + call.out().numel, compute_t<T>(0));
    for_each_named(call.in(1), mask.data(), call.out(), call.arg(3).as_bool(),
                   [&](int64_t pixel, int64_t i) {
                     compute_t<T>& to = result.data()[pixel];
                     to = static_cast<compute_t<T>>(to + grad.data()[i]);
                   });
    result.finish();
  });
}

void max_pool_gather(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Copied<int32_t> mask(call.in(1));
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Copied<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    std::fill(out, out + call.out().numel, T(0));
    for_each_named(call.in(1), mask.data(), call.in(0), call.arg(2).as_bool(),
                   [&](int64_t pixel, int64_t i) { out[i] = x.data()[pixel]; });
  });
}

// ---- Means.

void average(KernelCall& call, const Windows& w, const Divisor& divisor) {
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    average_of<T>(w, divisor, x.data(), static_cast<T*>(call.out().data));
  });
}

void spread(KernelCall& call, const Windows& w, const Divisor& divisor) {
  const Runs runs = runs_of(w.spans[2]);
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    const std::vector<Real<C>> by = divisor.of_columns<Real<C>>(w.spans[2]);
    w.for_each_piece([&](int64_t piece, int64_t begin, int64_t end) {
      const C* from = grad.data() + piece * w.count() * w.channels + begin;
      C* to = result.data() + piece * w.pixels() * w.channels + begin;
      const Scratch<C> shares(
          std::max<int64_t>(static_cast<int64_t>(w.spans[2].size()), end - begin));
      if (w.channels > 1)
        return spread_channels(w, divisor, by.data(), from, to, end - begin, shares.data());
      const Scratch<C> line(w.size[2]);
      spread_plane(w, divisor, by.data(), runs, from, to, line.data(), shares.data());
    });
    result.finish();
  });
}

// Arguments from `first` on: exclusive, divisor.
Divisor divisor_of(const KernelCall& call, int first) {
  return {call.arg(first).as_bool(), call.has(first + 1) ? call.arg(first + 1).as_double() : 0};
}

void avg_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  average(call, sliding_windows(call, 1, call.in(0), call.out(), call.arg(7).as_bool()),
          divisor_of(call, 5));
}
void avg_pool_grad(KernelCall& call) {
  if (call.out().numel == 0) return;
  spread(call, sliding_windows(call, 2, call.out(), call.in(0), call.arg(8).as_bool()),
         divisor_of(call, 6));
}
void adaptive_avg_pool(KernelCall& call) {
  if (call.out().numel == 0) return;
  average(call, adaptive_windows(call.in(0), call.out(), call.arg(2).as_bool()), {});
}
void adaptive_avg_pool_grad(KernelCall& call) {
  if (call.out().numel == 0) return;
  spread(call, adaptive_windows(call.out(), call.in(0), call.arg(2).as_bool()), {});
}

}  // namespace

KernelList pool_kernels() {
  static const oar_kernel list[] = {
      {"max_pool", 1, "cpu:ref", nullptr, kernel_entry<max_pool>},
      {"adaptive_max_pool", 1, "cpu:ref", nullptr, kernel_entry<adaptive_max_pool>},
      {"fractional_max_pool", 1, "cpu:ref", nullptr, kernel_entry<fractional_max_pool>},
      {"max_pool_scatter", 1, "cpu:ref", nullptr, kernel_entry<max_pool_scatter>},
      {"max_pool_gather", 1, "cpu:ref", nullptr, kernel_entry<max_pool_gather>},
      {"avg_pool", 1, "cpu:ref", nullptr, kernel_entry<avg_pool>},
      {"avg_pool_grad", 1, "cpu:ref", nullptr, kernel_entry<avg_pool_grad>},
      {"adaptive_avg_pool", 1, "cpu:ref", nullptr, kernel_entry<adaptive_avg_pool>},
      {"adaptive_avg_pool_grad", 1, "cpu:ref", nullptr, kernel_entry<adaptive_avg_pool_grad>},
  };
  return list;
}

}  // namespace oar::cpu
