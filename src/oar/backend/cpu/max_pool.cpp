// The largest elements of windows, and reading by their mask. Loops run over adjacent elements: windows of a
// row, or channels if they are last.
#include <limits>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/pool/pool_max.h"

namespace oar::cpu {
namespace {

Windows fractional_windows(const KernelCall& call) {
  const double u = *static_cast<const double*>(call.in(1).data);
  user_check(u >= 0 && u <= 1, ErrorKind::InvalidArgument, "u must be between 0 and 1, not {}.", u);
  return {call.in(0), call.out(), false, [&](int axis, int64_t size, int64_t count) {
            const int64_t window =
                call.has(3) ? call.arg(3).as_ints()[static_cast<size_t>(axis)] : 0;
            return fractional_spans(size, count, window, static_cast<float>(u));
          }};
}

void max_pool_over(KernelCall& call, const Windows& w) {
  user_check(w.pixels() <= std::numeric_limits<int32_t>::max(), ErrorKind::InvalidArgument,
             "an image of {} x {} x {} has more pixels than its mask can number.", w.size[0],
             w.size[1], w.size[2]);
  visit_wide<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    const Result<T> result(call.out(0));
    max_pool_of<T>(w, lowest_of<T>(call.dtype()), x.data(), result.data(),
                   static_cast<int32_t*>(call.out(1).data));
    result.finish();
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

// body(index among the pixels of all images, index in the mask), one plane's in the mask's order.
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
  visit_wide<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    std::fill(result.data(), result.data() + call.out().numel, T(0));
    for_each_named(call.in(1), mask.data(), call.out(), call.arg(3).as_bool(),
                   [&](int64_t pixel, int64_t i) {
                     T& to = result.data()[pixel];
                     to = to + grad.data()[i];
                   });
    result.finish();
  });
}

void max_pool_gather(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Copied<int32_t> mask(call.in(1));
  const Packed x(call.in(0));
  visit_width(call.in(0), [&](auto word) {
    using Word = decltype(word);
    auto* out = static_cast<Word*>(call.out().data);
    std::fill(out, out + call.out().numel, Word{});
    for_each_named(call.in(1), mask.data(), call.in(0), call.arg(2).as_bool(),
                   [&](int64_t pixel, int64_t i) { out[i] = x.data<Word>()[pixel]; });
  });
}

}  // namespace

KernelList max_pool_kernels() {
  static const oar_kernel list[] = {
      {"max_pool", 1, "cpu:generic", nullptr, kernel_entry<max_pool>},
      {"adaptive_max_pool", 1, "cpu:generic", nullptr, kernel_entry<adaptive_max_pool>},
      {"fractional_max_pool", 1, "cpu:generic", nullptr, kernel_entry<fractional_max_pool>},
      {"max_pool_scatter", 1, "cpu:generic", nullptr, training_entry<max_pool_scatter>},
      {"max_pool_gather", 1, "cpu:generic", nullptr, training_entry<max_pool_gather>},
  };
  return list;
}

}  // namespace oar::cpu
