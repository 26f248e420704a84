// Loops over rows, written once with vector extensions; each file that includes it is compiled for
// another instruction set, so everything here has internal linkage and uses nothing from headers of
// which that is not true. The width of a vector says which one it is: g++ 12 does not define __AVX512F__ for a pragma.
#pragma once

#include "oar/backend/cpu/rows/row_table.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {
namespace {

template <class T, int kBytes>
struct Rows {
  typedef T V __attribute__((vector_size(kBytes)));
  typedef T U __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  using I = decltype(V{} < V{});  // integers of the same width
  static constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  static constexpr int kSums = 256 / static_cast<int>(sizeof(T)), kVectors = kSums / kLanes;
  static constexpr long kBlock = 4096;  // elements that are added up together

  static V load(const T* p) { return *reinterpret_cast<const U*>(p); }
  static void store(T* p, V v) { *reinterpret_cast<U*>(p) = v; }
  // The last vector of a row may be short: missing elements are 0, or the given value.
  static V load(const T* p, long count, T missing = 0) {
    if (count >= kLanes) return load(p);
    V v = V{} + missing;
    if constexpr (kBytes == 64) {
      const unsigned mask = (1u << count) - 1;
      if constexpr (sizeof(T) == 4)
        return __builtin_ia32_loadups512_mask(p, v, static_cast<unsigned short>(mask));
      else
        return __builtin_ia32_loadupd512_mask(p, v, static_cast<unsigned char>(mask));
    } else {
      __builtin_memcpy(&v, p, static_cast<unsigned long>(count) * sizeof(T));
      return v;
    }
  }
  static void store(T* p, V v, long count) {
    if (count >= kLanes) return store(p, v);
    if constexpr (kBytes == 64) {
      const unsigned mask = (1u << count) - 1;
      if constexpr (sizeof(T) == 4)
        return __builtin_ia32_storeups512_mask(p, v, static_cast<unsigned short>(mask));
      else
        return __builtin_ia32_storeupd512_mask(p, v, static_cast<unsigned char>(mask));
    } else {
      __builtin_memcpy(p, &v, static_cast<unsigned long>(count) * sizeof(T));
    }
  }
  static V exp(V x) { return functions::weight_exp(x); }

  // Repeatedly joins lane i with lane i + n / 2.
  template <int kSize, class Join>
  static T folded(const T* lanes, Join join) {
    if constexpr (kSize * sizeof(T) > 16) {
      constexpr int kHalf = kSize / 2;
      typedef T H __attribute__((vector_size(kHalf * sizeof(T)), aligned(alignof(T)), may_alias));
      alignas(64) T half[kHalf];
      *reinterpret_cast<H*>(half) =
          join(*reinterpret_cast<const H*>(lanes), *reinterpret_cast<const H*>(lanes + kHalf));
      return folded<kHalf>(half, join);
    } else if constexpr (kSize == 4) {
      return join(join(lanes[0], lanes[2]), join(lanes[1], lanes[3]));
    } else {
      return join(lanes[0], lanes[1]);
    }
  }
  template <class Join>
  static T joined(V (&lanes)[kVectors], Join join) {
#pragma GCC unroll 8
    for (int width = kVectors / 2; width > 0; width /= 2)
#pragma GCC unroll 8
      for (int v = 0; v < width; ++v) lanes[v] = join(lanes[v], lanes[v + width]);
    alignas(64) T all[kLanes];
    store(all, lanes[0]);
    return folded<kLanes>(all, join);
  }
  // acc[v] = step(acc[v], i, how many) over the elements [begin, end), lane by lane. The indices v are
  // constants, which keeps the accumulators in registers.
  template <class Step>
  static void accumulate(V (&acc)[kVectors], long begin, long end, Step step) {
    long i = begin;
    for (; i + kSums <= end; i += kSums)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[v] = step(acc[v], i + v * kLanes, long(kLanes));
    if (i == end) return;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v, i += kLanes)
      if (i < end) acc[v] = step(acc[v], i, end - i);
  }
  struct Larger {
    template <class A>
    A operator()(A a, A b) const {
      return b > a ? b : a;
    }
  };
  struct Sum {
    template <class A>
    A operator()(A a, A b) const {
      return a + b;
    }
  };

  static T max(const T* x, long n) {
    constexpr T kLowest = T(-__builtin_inf());
    V high[kVectors];
    for (int v = 0; v < kVectors; ++v) high[v] = V{} + kLowest;
    accumulate(high, 0, n,
               [=](V acc, long i, long left) { return Larger{}(acc, load(x + i, left, kLowest)); });
    return joined(high, Larger{});
  }

  // The sum of term(i, how many) over a row: lanes within a block, then block by block.
  template <class Term>
  static T summed(long n, Term term) {
    T total = 0;
    for (long begin = 0; begin < n; begin += kBlock) {
      V sum[kVectors] = {};
      accumulate(sum, begin, n - begin < kBlock ? n : begin + kBlock,
                 [=](V acc, long i, long left) { return acc + term(i, left); });
      total += joined(sum, Sum{});
    }
    return total;
  }
  static T sum(const T* x, long n) {
    return summed(n, [=](long i, long left) { return load(x + i, left); });
  }
  static T dot(const T* x, const T* y, long n) {
    return summed(n, [=](long i, long left) { return load(x + i, left) * load(y + i, left); });
  }
  static T spread(const T* x, long n, T mean) {
    return summed(n, [=](long i, long left) {
      const V d = load(x + i, left, mean) - mean;
      return d * d;
    });
  }
  template <bool kStores>
  static T exp_sum_of(const T* x, T* out, long n, T shift) {
    return summed(n, [=](long i, long left) {
      const V e = exp(load(x + i, left, T(-__builtin_inf())) - shift);
      if (kStores) store(out + i, e, left);
      return e;
    });
  }
  static T exp_sum(const T* x, T* out, long n, T shift) {
    return out ? exp_sum_of<true>(x, out, n, shift) : exp_sum_of<false>(x, nullptr, n, shift);
  }
  // out[i] = value(i, how many).
  template <class Value>
  static void filled(T* out, long n, Value value) {
    long i = 0;
    for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
      const V first = value(i, long(kLanes)), second = value(i + kLanes, long(kLanes));
      store(out + i, first);
      store(out + i + kLanes, second);
    }
    for (; i < n; i += kLanes) store(out + i, value(i, n - i), n - i);
  }
  // The same, bypassing the caches if requested: whole lines, so it starts at one.
  template <class Value>
  static void filled(T* out, long n, [[maybe_unused]] bool stream, Value value) {
#if defined(__AVX__)
    if (stream) {
      const long past = static_cast<long>(__builtin_bit_cast(unsigned long, out) % kBytes);
      const long whole = past == 0 ? 0 : (kBytes - past) / static_cast<long>(sizeof(T));
      long i = whole < n ? whole : n;
      if (i > 0) store(out, value(0, i), i);
      for (; i + kLanes <= n; i += kLanes) store_past_caches(out + i, value(i, long(kLanes)));
      if (i < n) store(out + i, value(i, n - i), n - i);
      return;
    }
#endif
    filled(out, n, value);
  }
#if defined(__AVX__)
  static void store_past_caches(T* p, V v) {
#if defined(__clang__)
    __builtin_nontemporal_store(v, reinterpret_cast<V*>(p));
#else
    if constexpr (kBytes == 64 && sizeof(T) == 4)
      __builtin_ia32_movntps512(p, v);
    else if constexpr (kBytes == 64)
      __builtin_ia32_movntpd512(p, v);
    else if constexpr (kBytes == 32 && sizeof(T) == 4)
      __builtin_ia32_movntps256(p, v);
    else if constexpr (kBytes == 32)
      __builtin_ia32_movntpd256(p, v);
    else
      store(p, v);
#endif
  }
#endif

  static void log_softmax(const T* x, T* out, long n, T high, T log_total) {
    filled(out, n, [=](long i, long left) { return (load(x + i, left) - high) - log_total; });
  }
  static void softmax_grad(const T* out, const T* grad, T* to, long n, T total) {
    filled(to, n,
           [=](long i, long left) { return (load(grad + i, left) - total) * load(out + i, left); });
  }
  static void log_softmax_grad(const T* out, const T* grad, T* to, long n, T total) {
    filled(to, n, [=](long i, long left) {
      return load(grad + i, left) - exp(load(out + i, left)) * total;
    });
  }
  static void normalise(const T* x, T* out, long n, T mean, T inv, const T* weight, const T* bias,
                        bool stream) {
    const auto hat = [=](long i, long left) { return (load(x + i, left) - mean) * inv; };
    if (weight && bias)
      filled(out, n, stream, [=](long i, long left) {
        return hat(i, left) * load(weight + i, left) + load(bias + i, left);
      });
    else if (weight)
      filled(out, n, stream,
             [=](long i, long left) { return hat(i, left) * load(weight + i, left); });
    else if (bias)
      filled(out, n, stream,
             [=](long i, long left) { return hat(i, left) + load(bias + i, left); });
    else
      filled(out, n, stream, hat);
  }
  template <class Weighted>
  static void norm_sums_of(Weighted g, const T* x, long n, T mean, T* level, T* slope) {
    *level = summed(n, g);
    // Beyond the end g is 0, so x - mean does not matter there.
    *slope = summed(n, [=](long i, long left) { return g(i, left) * (load(x + i, left) - mean); });
  }
  static void norm_sums(const T* grad, const T* weight, const T* x, long n, T mean, T* level,
                        T* slope) {
    if (weight)
      norm_sums_of([=](long i, long left) { return load(grad + i, left) * load(weight + i, left); },
                   x, n, mean, level, slope);
    else
      norm_sums_of([=](long i, long left) { return load(grad + i, left); }, x, n, mean, level,
                   slope);
  }
  static void norm_grad(const T* grad, const T* weight, const T* x, T* to, long n, T mean, T inv,
                        T level, T slope, bool stream) {
    const auto rest = [=](long i, long left) { return level + (load(x + i, left) - mean) * slope; };
    if (weight)
      filled(to, n, stream, [=](long i, long left) {
        return inv * (load(grad + i, left) * load(weight + i, left) - rest(i, left));
      });
    else
      filled(to, n, stream,
             [=](long i, long left) { return inv * (load(grad + i, left) - rest(i, left)); });
  }
  static void affine(const T* x, T* out, long n, T mean, T scale, T shift, bool stream) {
    filled(out, n, stream,
           [=](long i, long left) { return (load(x + i, left) - mean) * scale + shift; });
  }
  static void affine_grad(const T* grad, const T* x, T* to, long n, T mean, T of_grad, T of_x,
                          T of_one, bool stream) {
    filled(to, n, stream, [=](long i, long left) {
      return load(grad + i, left) * of_grad + ((load(x + i, left) - mean) * of_x + of_one);
    });
  }
  static void norm_affine(const T* grad, const T* x, long n, T mean, T inv, T* weight, T* bias) {
    for (long i = 0; i < n; i += kLanes) {
      const long left = n - i;
      const V g = load(grad + i, left);
      store(weight + i, load(weight + i, left) + g * ((load(x + i, left) - mean) * inv), left);
      store(bias + i, load(bias + i, left) + g, left);
    }
  }

  static void scale(T* x, long n, T factor) {
    filled(x, n, [=](long i, long left) { return load(x + i, left) * factor; });
  }

  static void attention_grad(T* p, T* dp, long n, T lse, T delta) {
    for (long i = 0; i < n; i += kLanes) {
      const long left = n - i;
      const V e = exp(load(p + i, left) - lse);
      store(p + i, e, left);
      store(dp + i, e * (load(dp + i, left) - delta), left);
    }
  }

  static void head_scores(const T* query, long query_step, const T* key, long key_step, long heads,
                          long width, T* scores, long score_step) {
    for (long h = 0; h < heads; ++h) {
      const T *q = query + h * query_step, *k = key + h * key_step;
      V sum[2] = {};
      for (long i = 0, odd = 0; i < width; i += kLanes, odd ^= 1)
        sum[odd] += load(q + i, width - i) * load(k + i, width - i);
      alignas(64) T all[kLanes];
      store(all, sum[0] + sum[1]);
      scores[h * score_step] = folded<kLanes>(all, Sum{});
    }
  }
  static void head_sums(const T* weights, long weight_step, const T* value, long value_step,
                        long heads, long width, T* sums, long sum_step) {
    for (long h = 0; h < heads; ++h) {
      const T weight = weights[h * weight_step], *v = value + h * value_step;
      T* to = sums + h * sum_step;
      for (long i = 0; i < width; i += kLanes)
        store(to + i, load(to + i, width - i) + load(v + i, width - i) * weight, width - i);
    }
  }

  // ---- cells of recurrent layers

  static V sigmoid(V x) { return 1 / (1 + exp(-x)); }
  static V tanh(V x) { return functions::tanh(x); }
  static V sigmoid_slope(V y) { return y * (1 - y); }
  static V tanh_slope(V y) { return 1 - y * y; }

  static void tanh_cell(const T* x, const T* h, T* state, long n) {
    for (long i = 0; i < n; i += kLanes)
      store(state + i, tanh(load(x + i, n - i) + load(h + i, n - i)), n - i);
  }
  static void tanh_grad(const T* x, const T* h, const T* grad, T* to, long n) {
    for (long i = 0; i < n; i += kLanes) {
      const V y = tanh(load(x + i, n - i) + load(h + i, n - i));
      store(to + i, load(grad + i, n - i) * tanh_slope(y), n - i);
    }
  }

  static void gru_cell(const T* x, const T* h, const T* before, T* state, long n) {
    for (long i = 0; i < n; i += kLanes) {
      const long left = n - i;
      const auto at = [=](const T* p, int gate) { return load(p + gate * n + i, left); };
      const V reset = sigmoid(at(x, 0) + at(h, 0)), update = sigmoid(at(x, 1) + at(h, 1));
      const V candidate = tanh(at(x, 2) + reset * at(h, 2));
      store(state + i, (at(before, 0) - candidate) * update + candidate, left);
    }
  }
  static void gru_grad(const T* x, const T* h, const T* before, T* grad, T* to_x, T* to_h, long n) {
    for (long i = 0; i < n; i += kLanes) {
      const long left = n - i;
      const auto at = [=](const T* p, int gate) { return load(p + gate * n + i, left); };
      const V reset = sigmoid(at(x, 0) + at(h, 0)), update = sigmoid(at(x, 1) + at(h, 1));
      const V candidate = tanh(at(x, 2) + reset * at(h, 2)), g = at(grad, 0);
      const V of_candidate = g * (1 - update) * tanh_slope(candidate);
      const V of_reset = of_candidate * at(h, 2) * sigmoid_slope(reset);
      const V of_update = g * (at(before, 0) - candidate) * sigmoid_slope(update);
      store(to_x + i, of_reset, left), store(to_h + i, of_reset, left);
      store(to_x + n + i, of_update, left), store(to_h + n + i, of_update, left);
      store(to_x + 2 * n + i, of_candidate, left);
      store(to_h + 2 * n + i, of_candidate * reset, left);
      store(grad + i, g * update, left);
    }
  }

  static void lstm_cell(const T* x, const T* h, const T* before, T* cell, T* hidden, long n) {
    for (long i = 0; i < n; i += kLanes) {
      const long left = n - i;
      const auto gate = [=](int k) {
        return load(x + k * n + i, left) + load(h + k * n + i, left);
      };
      const V c = sigmoid(gate(1)) * load(before + i, left) + sigmoid(gate(0)) * tanh(gate(2));
      store(cell + i, c, left);
      store(hidden + i, sigmoid(gate(3)) * tanh(c), left);
    }
  }
  static void lstm_grad(const T* x, const T* h, const T* before, const T* cell, const T* of_hidden,
                        T* grad, T* to, T* hidden, long n) {
    for (long i = 0; i < n; i += kLanes) {
      const long left = n - i;
      const auto gate = [=](int k) {
        return load(x + k * n + i, left) + load(h + k * n + i, left);
      };
      const V in = sigmoid(gate(0)), forget = sigmoid(gate(1)), candidate = tanh(gate(2)),
              out = sigmoid(gate(3)), shown = tanh(load(cell + i, left)),
              g = load(of_hidden + i, left);
      const V of_cell = load(grad + i, left) + g * out * tanh_slope(shown);
      store(to + i, of_cell * candidate * sigmoid_slope(in), left);
      store(to + n + i, of_cell * load(before + i, left) * sigmoid_slope(forget), left);
      store(to + 2 * n + i, of_cell * in * tanh_slope(candidate), left);
      store(to + 3 * n + i, g * shown * sigmoid_slope(out), left);
      store(grad + i, of_cell * forget, left);
      if (hidden) store(hidden + i, out * shown, left);
    }
  }

  static constexpr RowTable<T> table() {
    return {.max = max,
            .exp_sum = exp_sum,
            .scale = scale,
            .sum = sum,
            .dot = dot,
            .log_softmax = log_softmax,
            .softmax_grad = OAR_TRAINING_LOOP(softmax_grad),
            .log_softmax_grad = OAR_TRAINING_LOOP(log_softmax_grad),
            .spread = spread,
            .normalise = normalise,
            .norm_sums = OAR_TRAINING_LOOP(norm_sums),
            .norm_grad = OAR_TRAINING_LOOP(norm_grad),
            .affine = affine,
            .affine_grad = OAR_TRAINING_LOOP(affine_grad),
            .norm_affine = OAR_TRAINING_LOOP(norm_affine),
            .attention_grad = OAR_TRAINING_LOOP(attention_grad),
            .head_scores = head_scores,
            .head_sums = head_sums,
            .tanh_cell = tanh_cell,
            .gru_cell = gru_cell,
            .lstm_cell = lstm_cell,
            .tanh_grad = OAR_TRAINING_LOOP(tanh_grad),
            .gru_grad = OAR_TRAINING_LOOP(gru_grad),
            .lstm_grad = OAR_TRAINING_LOOP(lstm_grad)};
  }
};

}  // namespace
}  // namespace oar::cpu
