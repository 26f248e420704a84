// Differences of neighbours along an axis.
#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loops/groups.h"

namespace oar::cpu {
namespace {

// Larger results should bypass the caches, which the decomposition does.
const char* accepts_difference(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  const bool large = c.out().numel * static_cast<int64_t>(size_of(c.dtype())) >= 16 << 20;
  return c.arg(2).as_bool() || !large ? nullptr : "a large result";
}

void difference_along(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(1).as_int());
  const bool transposed = call.arg(2).as_bool();
  const int64_t step = span.inner, from = span.length * step;
  const int64_t to = (span.length + (transposed ? 1 : -1)) * step;
  if (call.out().numel == 0) return;
  // Complex numbers are rare here: those of 64 bits are copied to 128.
  const DType wide = call.dtype() == DType::Complex64 ? DType::Complex128 : call.dtype();
  visit_wide<kNumbers>(wide, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    const auto less = [](T a, T b) {
      return static_cast<T>(static_cast<C>(a) - static_cast<C>(b));
    };
    const Contiguous<T> in(call.in(0));
    const Result<T> result(call.out());
    T* o = result.data();
    parallel_for(0, span.outer, std::max<int64_t>(1, kGrain / to), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* x = in.data() + i * from;
        T* y = o + i * to;
        if (!transposed) {
          fill_groups(y, to, [=](int64_t k) { return less(x[k + step], x[k]); });
        } else if (from == 0) {
          std::fill_n(y, to, T{});
        } else {
          fill_groups(y, step, [=](int64_t k) { return less(T{}, x[k]); });
          fill_groups(y + step, from - step, [=](int64_t k) { return less(x[k], x[k + step]); });
          std::copy_n(x + from - step, step, y + from);
        }
      }
    });
    result.finish();
  });
}

}  // namespace

KernelList difference_kernels() {
  static const oar_kernel list[] = {
      {"difference_along", 1, "cpu:generic", accepts_difference, kernel_entry<difference_along>},
  };
  return list;
}

}  // namespace oar::cpu
