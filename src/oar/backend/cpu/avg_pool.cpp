// Means of windows, and the reverse way.
#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/pool/pool_mean.h"

namespace oar::cpu {
namespace {

void average(KernelCall& call, const Windows& w, const Divisor& divisor) {
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> x(call.in(0));
    const Result<T> result(call.out());
    average_of<T>(w, divisor, x.data(), result.data());
    result.finish();
  });
}

void spread(KernelCall& call, const Windows& w, const Divisor& divisor) {
  const Runs runs = runs_of(w.spans[2]);
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = T;
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

KernelList avg_pool_kernels() {
  static const oar_kernel list[] = {
      {"avg_pool", 1, "cpu:generic", nullptr, kernel_entry<avg_pool>},
      {"avg_pool_grad", 1, "cpu:generic", nullptr, training_entry<avg_pool_grad>},
      {"adaptive_avg_pool", 1, "cpu:generic", nullptr, kernel_entry<adaptive_avg_pool>},
      {"adaptive_avg_pool_grad", 1, "cpu:generic", nullptr, training_entry<adaptive_avg_pool_grad>},
  };
  return list;
}

}  // namespace oar::cpu
