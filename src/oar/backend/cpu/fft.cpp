// Fourier transforms: one axis after another.
#include <cmath>
#include <string_view>

#include "oar/backend/cpu/fft/transform.h"
#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/loops/copy.h"

namespace oar::cpu {
namespace {

using Axes = SmallVector<int64_t, 6>;

Axes axes_of(const KernelCall& call) {
  Axes axes;
  for (int64_t axis : call.arg(1).as_ints()) axes.push_back(normalise_axis(axis, call.in(0).ndim));
  return axes;
}

fft::Lines lines_of(const oar_tensor& x, int64_t axis) {
  fft::Lines lines{1, x.shape[axis], 1};
  for (int i = 0; i < x.ndim; ++i)
    if (i != axis) (i < axis ? lines.outer : lines.inner) *= x.shape[i];
  return lines;
}

// What the result of all transforms is multiplied by, where `whole` has the lengths of the lines.
double factor_of(const KernelCall& call, const oar_tensor& whole, Ints axes) {
  const std::string_view normalization = call.arg(2).as_string();
  const bool forward = call.arg(3).as_bool();
  double count = 1;
  for (int64_t axis : axes) count *= static_cast<double>(whole.shape[axis]);
  if (normalization == "ortho") return 1 / std::sqrt(count);
  return (normalization == "forward") == forward ? 1 / count : 1;
}

template <class T>
T* numbers(std::complex<T>* pairs) {
  return reinterpret_cast<T*>(pairs);
}
template <class T>
const T* numbers(const std::complex<T>* pairs) {
  return reinterpret_cast<const T*>(pairs);
}

template <class C>
void complex_to_complex(KernelCall& call) {
  using T = typename C::value_type;
  const oar_tensor& x = call.in(0);
  const Axes axes = axes_of(call);
  const bool inverse = !call.arg(3).as_bool();
  if (axes.empty()) return copy_elements(call.out(), x);
  const Flat<C> in(x);
  const Result<C> result(call.out());
  const T* from = numbers(in.data());
  double factor = factor_of(call, x, axes);
  for (size_t i = axes.size(); i-- > 0;) {
    fft::complex_to_complex(from, numbers(result.data()), lines_of(x, axes[i]), inverse,
                            static_cast<T>(factor));
    from = numbers(result.data());
    factor = 1;
  }
  result.finish();
}

void fft_c2c(KernelCall& call) {
  if (call.in(0).numel == 0) return;
  visit_wide<kComplexes>(call.dtype(),
                         [&](auto tag) { complex_to_complex<typename decltype(tag)::type>(call); });
}

void fft_r2c(KernelCall& call) {
  const oar_tensor& out = call.out();
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::complex<T>;
    const Result<C> result(out);
    if (call.in(0).numel == 0) {  // the sum of no numbers
      std::fill_n(result.data(), out.numel, C(0));
      return result.finish();
    }
    const Flat<T> in(call.in(0));
    const Axes axes = axes_of(call);
    const bool inverse = !call.arg(3).as_bool();
    const auto factor = static_cast<T>(factor_of(call, call.in(0), axes));
    fft::real_to_complex(in.data(), lines_of(call.in(0), axes.back()), numbers(result.data()),
                         lines_of(out, axes.back()), inverse, factor);
    for (size_t i = axes.size() - 1; i-- > 0;)
      fft::complex_to_complex(numbers(result.data()), numbers(result.data()),
                              lines_of(out, axes[i]), inverse, T(1));
    result.finish();
  });
}

void fft_c2r(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  if (out.numel == 0) return;
  visit_wide<kComplexes>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    using T = typename C::value_type;
    const Flat<C> in(x);
    const Result<T> result(out);
    const Axes axes = axes_of(call);
    const bool inverse = !call.arg(3).as_bool();
    const auto factor = static_cast<T>(factor_of(call, out, axes));
    Scratch<C, 64> between(axes.size() > 1 ? x.numel : 0);
    const T* from = numbers(in.data());
    for (size_t i = axes.size() - 1; i-- > 0;) {
      fft::complex_to_complex(from, numbers(between.data()), lines_of(x, axes[i]), inverse, T(1));
      from = numbers(between.data());
    }
    fft::complex_to_real(from, lines_of(x, axes.back()), result.data(), lines_of(out, axes.back()),
                         inverse, factor);
    result.finish();
  });
}

}  // namespace

KernelList fft_kernels() {
  static const oar_kernel list[] = {
      {"fft_c2c", 1, "cpu:generic", nullptr, kernel_entry<fft_c2c>},
      {"fft_r2c", 1, "cpu:generic", nullptr, kernel_entry<fft_r2c>},
      {"fft_c2r", 1, "cpu:generic", nullptr, kernel_entry<fft_c2r>},
  };
  return list;
}

}  // namespace oar::cpu
