// Random numbers from distributions other than the uniform and the normal one.
#include <cmath>
#include <limits>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/random/gamma.h"
#include "oar/backend/cpu/random/normal.h"
#include "oar/backend/cpu/random/random_stream.h"
#include "oar/backend/cpu/simd/logarithms.h"

namespace oar::cpu {
namespace {

void exponential(KernelCall& call) {
  const oar_tensor& out = call.out();
  const double lam = call.arg(1).as_double();
  visit<kFloats>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Part part(call);
    const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()) * (sizeof(C) / 4));
    const C scale = static_cast<C>(1 / lam);
    fill_blocks<T, C>(out, part, stream, [=](const Block* bits, C* made) {
      units_of(bits, made);
      for (int64_t k = 0; k < kGroup * kPerBlock<C>; ++k)
        made[k] = 0 - scale * functions::log(1 - made[k]);  // a difference, so that 0 is not -0
    });
  });
}

void truncated_normal(KernelCall& call) {
  const oar_tensor& out = call.out();
  const double mean = call.arg(1).as_double(), std = call.arg(2).as_double(),
               a = call.arg(3).as_double(), b = call.arg(4).as_double();
  const auto share = [](double v) { return std::erfc(-v * (std::numbers::sqrt2 / 2)) / 2; };
  const double low = share(a), width = share(b) - low;
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()) * 2);
  visit<kFloats>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    fill_blocks<T, double>(out, part, stream, [=](const Block* bits, double* made) {
      units_of(bits, made);
      for (int64_t k = 0; k < kGroup * kPerBlock<double>; ++k) {
        const double v = normal_quantile(low + made[k] * width);
        made[k] = mean + std * std::min(std::max(v, a), b);
      }
    });
  });
}

// Elements that may need any number of tries have a part of the stream each, with a limit that is
// practically never reached.
constexpr uint64_t kBlocks = 129;
constexpr int kTries = 84;

// make(i, supply) for every element.
template <class T, class Make>
void fill_each(KernelCall& call, Make&& make) {
  const oar_tensor& out = call.out();
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()) * kBlocks * 4);
  auto* o = static_cast<T*>(out.data);
  parallel_for(0, out.numel, kGrain / 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Supply supply(stream, static_cast<uint64_t>(part.index(i)) * kBlocks, kBlocks);
      o[i] = convert_element<T>(make(i, supply));
    }
  });
}

void standard_gamma(KernelCall& call) {
  const oar_tensor& out = call.out();
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Converted<C> shape(&call.in(0));
    for (int64_t i = 0; i < out.numel; ++i)
      user_check(shape[i] >= 0, ErrorKind::InvalidArgument,
                 "x holds {}; the shape of a gamma distribution is not negative.", shape[i]);
    const Part part(call);
    const uint64_t blocks = static_cast<uint64_t>(part.whole_numel()) * GammaDraw<C>::kBlocks;
    const GammaDraw<C> draw(take(call, blocks * 4));
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, out.numel, kGrain / 64, [&](int64_t begin, int64_t end) {
      part.runs(begin, end, [&](int64_t first, int64_t at, int64_t count) {
        for (int64_t i = 0; i < count; i += kGroup) {
          const int64_t n = std::min(kGroup, count - i);
          C made[kGroup];
          draw.group(at + i, shape.data() + first + i, n, made);
          for (int64_t k = 0; k < n; ++k) o[first + i + k] = convert_element<T>(made[k]);
        }
      });
    });
  });
}

// Few successes are counted from one to the next, by geometric gaps; many come by rejection from a
// transformed uniform number ("BTRS", Hormann 1993).
double binomial_number(double n, double p, Supply& supply) {
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1) return n;
  if (p > 0.5) return n - binomial_number(n, 1 - p, supply);
  const double mean = n * p;
  if (mean < 10) {
    const double log_q = std::log1p(-p);
    double count = 0, passed = 0;
    for (int i = 0; i < 2 * kTries; ++i, ++count) {
      passed += std::ceil(std::log(1 - supply.unit()) / log_q);
      if (passed > n) break;
    }
    return std::min(count, n);
  }
  const double spread = std::sqrt(mean * (1 - p)), b = 1.15 + 2.53 * spread;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, c = mean + 0.5, v_r = 0.92 - 4.2 / b;
  const double alpha = (2.83 + 5.1 / b) * spread, odds = std::log(p / (1 - p));
  const double mode = std::floor((n + 1) * p);
  const double h = std::lgamma(mode + 1) + std::lgamma(n - mode + 1);
  double k = mode;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const double u = supply.unit() - 0.5, v = 1 - supply.unit(), us = 0.5 - std::fabs(u);
    k = std::floor((2 * a / us + b) * u + c);
    if (k < 0 || k > n) continue;
    if (us >= 0.07 && v <= v_r) return k;
    const double bound = h - std::lgamma(k + 1) - std::lgamma(n - k + 1) + (k - mode) * odds;
    if (std::log(v * alpha / (a / (us * us) + b)) <= bound) return k;
  }
  return std::min(std::max(k, 0.0), n);
}

void binomial(KernelCall& call) {
  const Converted<double> count(&call.in(0)), prob(&call.in(1));
  fill_each<int64_t>(call, [&](int64_t i, Supply& supply) {
    user_check(count[i] >= 0, ErrorKind::InvalidArgument,
               "count holds {}; a number of trials is not negative.", count[i]);
    user_check(prob[i] >= 0 && prob[i] <= 1, ErrorKind::InvalidArgument,
               "prob holds {}; a probability is between 0 and 1.", prob[i]);
    return binomial_number(count[i], prob[i], supply);
  });
}

}  // namespace

KernelList distribution_kernels() {
  static const oar_kernel list[] = {
      {"exponential", 1, "cpu:generic", nullptr, kernel_entry<exponential>},
      {"truncated_normal", 1, "cpu:generic", nullptr, training_entry<truncated_normal>},
      {"standard_gamma", 1, "cpu:generic", nullptr, training_entry<standard_gamma>},
      {"binomial", 1, "cpu:generic", nullptr, training_entry<binomial>},
  };
  return list;
}

}  // namespace oar::cpu
