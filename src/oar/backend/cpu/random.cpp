// Random numbers from the counter-based stream: an element takes the numbers of its index in the whole
// tensor, however the work and the tensor are cut.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/random/normal.h"
#include "oar/backend/cpu/random/random_stream.h"
#include "oar/device/generator.h"

namespace oar::cpu {
namespace {

// The largest value of T below `limit`, which rounding must not reach.
template <class T>
T below(T value, double limit, double low) {
  if (static_cast<double>(static_cast<compute_t<T>>(value)) < limit) return value;
  if constexpr (is_small_float<T>) {
    if (sizeof(T) == 2) {  // one step towards zero or away from it, whichever is down
      T next = value;
      const float as_float = value;
      next.bits = static_cast<decltype(next.bits)>(as_float > 0 ? value.bits - 1 : value.bits + 1);
      if (as_float != 0) return next;
    }
    return T(static_cast<float>(low));
  } else {
    return std::nextafter(static_cast<T>(limit), static_cast<T>(low));
  }
}

void uniform(KernelCall& call) {
  const oar_tensor& out = call.out();
  const Part part(call);
  const double low = call.arg(2).as_double(), high = call.arg(3).as_double();
  visit<kFloats>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const auto numbers = static_cast<uint64_t>(part.whole_numel()) * (sizeof(C) / 4);
    const Stream stream = take(call, numbers, call.arg(4).as_int());
    const C from = static_cast<C>(low), width = static_cast<C>(high - low);
    // The limit for rounding.
    const C top = low < high
                      ? static_cast<C>(below(convert_element<T>(static_cast<C>(high)), high, low))
                      : from;
    fill_blocks<T, C>(out, part, stream, [=](const Block* bits, C* made) {
      units_of(bits, made);
      for (int64_t k = 0; k < kGroup * kPerBlock<C>; ++k) {
        const C value = from + made[k] * width;
        made[k] = value > top ? top : value;
      }
    });
  });
}

void gaussian(KernelCall& call) {
  const oar_tensor& out = call.out();
  const Part part(call);
  visit<kFloats>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C mean = static_cast<C>(call.arg(1).as_double()),
            std = static_cast<C>(call.arg(2).as_double());
    const auto numbers = static_cast<uint64_t>(part.whole_numel()) * (sizeof(C) / 4);
    const Stream stream = take(call, numbers, call.arg(3).as_int());
    fill_blocks<T, C>(out, part, stream, [=](const Block* bits, C* made) {
      units_of(bits, made);
      normals_of<kGroup * kPerBlock<C>>(made);
      for (int64_t k = 0; k < kGroup * kPerBlock<C>; ++k) made[k] = made[k] * std + mean;
    });
  });
}

// An integer below `width` from 64 random bits: the high half of the product.
uint64_t scaled(uint64_t bits, uint64_t width) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * width) >> 64);
}

void randint(KernelCall& call) {
  const oar_tensor& out = call.out();
  const bool bounded = call.has(1);
  const int64_t low = bounded ? call.arg(0).as_int() : 0;
  const int64_t high = bounded ? call.arg(1).as_int() : call.arg(0).as_int();
  const uint64_t width = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  // 32 random bits for an element of a narrow range, whose integers they hit nearly as often.
  const bool narrow = width <= uint64_t{1} << 16;
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()) * (narrow ? 1 : 2));
  visit<kAllTypes>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (narrow)
      return fill_blocks<T, int64_t, 4>(out, part, stream, [&](const Block* bits, int64_t* made) {
        for (size_t k = 0; k < 4 * kGroup; ++k)
          made[k] = low + static_cast<int64_t>(bits[k / 4][k % 4] * width >> 32);
      });
    fill_blocks<T, int64_t>(out, part, stream, [&](const Block* bits, int64_t* made) {
      for (size_t k = 0; k < 2 * kGroup; ++k) {
        const size_t half = k % 2 * 2;
        const uint64_t drawn = joined(bits[k / 2][half], bits[k / 2][half + 1]);
        made[k] = static_cast<int64_t>(static_cast<uint64_t>(low) + scaled(drawn, width));
      }
    });
  });
}

// Swaps each element, the last one first, with one that is not after it. The partners of some
// elements are drawn in advance, so that they can be prefetched.
template <class Place>
void shuffle(Place* order, int64_t n, const Stream& stream) {
  constexpr int64_t kAhead = 8 * 2 * kGroup;
  uint64_t partner[kAhead];
  for (int64_t first = (n - 1) / kAhead * kAhead; first >= 0; first -= kAhead) {
    const int64_t count = std::min(kAhead, n - first);
    stream.blocks(first / 2, (first + count + 1) / 2, [&](int64_t b, const Block& bits) {
      for (int64_t k = 0; k < 2; ++k) {
        const auto half = static_cast<size_t>(2 * k);
        const auto choices = static_cast<uint64_t>(2 * b + k) + 1;
        partner[2 * b + k - first] = scaled(joined(bits[half], bits[half + 1]), choices);
        __builtin_prefetch(order + partner[2 * b + k - first], 1);
      }
    });
    for (int64_t i = first + count - 1; i >= std::max<int64_t>(first, 1); --i)
      std::swap(order[i], order[partner[i - first]]);
  }
}

void randperm(KernelCall& call) {
  const oar_tensor& out = call.out();
  const int64_t n = out.numel;
  const Stream stream = take(call, static_cast<uint64_t>(n) * 2);
  if (n == 0) return;
  const auto write = [&](auto place) {
    using Place = decltype(place);
    const Scratch<Place> order(n);
    std::iota(order.data(), order.data() + n, Place(0));
    shuffle(order.data(), n, stream);
    visit<kNumbers>(static_cast<DType>(out.dtype), [&](auto tag) {
      using T = typename decltype(tag)::type;
      std::transform(order.data(), order.data() + n, static_cast<T*>(out.data),
                     [](Place v) { return convert_element<T>(static_cast<int64_t>(v)); });
    });
  };
  if (n <= int64_t{UINT32_MAX})
    write(uint32_t{});
  else
    write(int64_t{});
}

void bernoulli(KernelCall& call) {
  const oar_tensor& out = call.out();
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()) * 2);
  const Converted<double> p(&call.in(0));
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* o = static_cast<T*>(out.data);
    each_block<2>(out, part, stream, kGrain / 4, [&](int64_t i, size_t k, const Block& bits) {
      user_check(p[i] >= 0 && p[i] <= 1, ErrorKind::InvalidArgument,
                 "x holds {}; a probability is between 0 and 1.", p[i]);
      o[i] = convert_element<T>(unit_double(bits[2 * k], bits[2 * k + 1]) < p[i]);
    });
  });
}

// Small means by multiplying uniform numbers (Knuth); large ones by rejection from a transformed
// uniform ("PTRS", Hormann 1993).
double poisson_number(double mean, Supply& supply) {
  if (mean <= 0) return 0;
  if (mean < 10) {
    const double limit = std::exp(-mean);
    double product = supply.unit();
    int64_t count = 0;
    for (; product > limit && count < 200; ++count) product *= supply.unit();
    return static_cast<double>(count);
  }
  const double root = std::sqrt(mean), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inv_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  double k = mean;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const double u = supply.unit() - 0.5, v = supply.unit(), us = 0.5 - std::fabs(u);
    k = std::floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inv_alpha) - std::log(a / (us * us) + b) <=
        -mean + k * std::log(mean) - std::lgamma(k + 1))
      return k;
  }
  return std::max(k, 0.0);
}

void poisson(KernelCall& call) {
  constexpr uint64_t kBlocks = 101;  // the most that an element uses
  const oar_tensor& out = call.out();
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()) * kBlocks * 4);
  const Converted<double> mean(&call.in(0));
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, out.numel, kGrain / 64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        user_check(!std::isnan(mean[i]), ErrorKind::InvalidArgument, "x holds NaN as a mean.");
        Supply supply(stream, static_cast<uint64_t>(part.index(i)) * kBlocks, kBlocks);
        o[i] = convert_element<T>(poisson_number(std::max(mean[i], 0.0), supply));
      }
    });
  });
}

template <class C>
void check_weights(const C* weights, int64_t n, int64_t needed) {
  int64_t good = 0, positive = 0;
  for (int64_t i = 0; i < n; ++i) {
    good += weights[i] >= 0 && weights[i] < std::numeric_limits<C>::infinity();
    positive += weights[i] > 0;
  }
  for (int64_t i = 0; good < n && i < n; ++i)
    user_check(weights[i] >= 0 && std::isfinite(weights[i]), ErrorKind::InvalidArgument,
               "x holds {}; a weight is finite and not negative.", weights[i]);
  user_check(positive >= needed, ErrorKind::InvalidArgument,
             "a row of x has {} positive weights; {} are needed.\nhint: Pass replacement=True, or "
             "fewer num_samples.",
             positive, needed);
}

// Running sums of four parts at once: within a part each sum depends on the one before it.
template <class C>
void running_sums(const C* x, int64_t n, double* sums) {
  constexpr int64_t kParts = 4;
  const int64_t part = n / kParts;
  double total[kParts] = {};
  for (int64_t i = 0; i < part; ++i)
#pragma GCC unroll 4
    for (int64_t p = 0; p < kParts; ++p) sums[p * part + i] = total[p] += x[p * part + i];
  double before = 0;
  for (int64_t p = 0; p < kParts; ++p) {
    for (int64_t i = 0; i < part; ++i) sums[p * part + i] += before;
    before += total[p];
  }
  for (int64_t i = kParts * part; i < n; ++i) sums[i] = before += x[i];
}

// Where a random share of the total falls.
template <class C>
void draw_again(const C* weights, int64_t n, int64_t count, const Stream& stream,
                int64_t first_block, int64_t* to) {
  check_weights(weights, n, 1);
  const Scratch<double> sums(n);
  running_sums(weights, n, sums.data());
  const auto draw = [&](double unit) {
    const double* place = std::upper_bound(sums.data(), sums.data() + n, unit * sums[n - 1]);
    int64_t i = std::min<int64_t>(place - sums.data(), n - 1);
    while (weights[i] == 0) --i;  // rounding may pass the last one
    return i;
  };
  stream.blocks(first_block, first_block + (count + 1) / 2, [&](int64_t b, const Block& bits) {
    const int64_t k = 2 * (b - first_block);
    to[k] = draw(unit_double(bits[0], bits[1]));
    if (k + 1 < count) to[k + 1] = draw(unit_double(bits[2], bits[3]));
  });
}

// The smallest of exponential numbers divided by the weights, which draws without replacement
// (Efraimidis and Spirakis, 2006).
template <class C>
void draw_once(const C* weights, int64_t n, int64_t count, Supply supply, int64_t* to) {
  check_weights(weights, n, count);
  std::vector<std::pair<double, int64_t>> keys;
  for (int64_t i = 0; i < n; ++i) {
    const double e = -std::log(1 - supply.unit());
    if (weights[i] > 0) keys.emplace_back(e / weights[i], i);
  }
  std::partial_sort(keys.begin(), keys.begin() + count, keys.end());
  for (int64_t k = 0; k < count; ++k) to[k] = keys[static_cast<size_t>(k)].second;
}

void multinomial(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  const int64_t n = x.shape[x.ndim - 1], rows = n ? x.numel / n : 0, count = call.arg(1).as_int();
  const bool replacement = call.arg(2).as_bool();
  const int64_t blocks = (replacement ? count : n) / 2 + 1;
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel() / count * blocks * 4));
  auto* o = static_cast<int64_t*>(call.out().data);
  const auto draw_rows = [&](const auto* weights) {
    parallel_for(0, rows, std::max<int64_t>(1, kGrain / 16 / std::max<int64_t>(n, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     // A row's numbers are those of its index in the whole.
                     const int64_t first = part.index(r * count) / count * blocks;
                     const Supply supply(stream, static_cast<uint64_t>(first),
                                         static_cast<uint64_t>(blocks));
                     if (replacement)
                       draw_again(weights + r * n, n, count, stream, first, o + r * count);
                     else
                       draw_once(weights + r * n, n, count, supply, o + r * count);
                   }
                 });
  };
  visit<kFloats>(call.dtype(),
                 [&](auto tag) { draw_rows(Compact<typename decltype(tag)::type>(x).data()); });
}

}  // namespace

KernelList random_kernels() {
  static const oar_kernel list[] = {
      {"uniform", 1, "cpu:generic", nullptr, kernel_entry<uniform>},
      {"gaussian", 1, "cpu:generic", nullptr, kernel_entry<gaussian>},
      {"randint", 1, "cpu:generic", nullptr, kernel_entry<randint>},
      {"randperm", 1, "cpu:generic", nullptr, kernel_entry<randperm>},
      {"bernoulli", 1, "cpu:generic", nullptr, kernel_entry<bernoulli>},
      {"poisson", 1, "cpu:generic", nullptr, kernel_entry<poisson>},
      {"multinomial", 1, "cpu:generic", nullptr, kernel_entry<multinomial>},
  };
  return list;
}

}  // namespace oar::cpu
