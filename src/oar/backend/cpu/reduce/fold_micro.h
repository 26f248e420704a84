// Folds, written once with vector extensions; as in row_micro.h each file that includes it is
// compiled for another instruction set, and everything here has internal linkage.
#pragma once

#include "oar/backend/cpu/reduce/fold_table.h"
#include "oar/backend/cpu/reduce/scan_micro.h"
#include "oar/backend/cpu/rows/row_micro.h"

namespace oar::cpu {
namespace {

template <class T, int kBytes>
struct Folds {
  using R = Rows<T, kBytes>;
  using V = typename R::V;
  using I = typename R::I;
  static constexpr int kLanes = R::kLanes;
  static constexpr int kWide = R::kSums, kVectors = R::kVectors;  // numbers folded side by side
  static constexpr long kChain = 16;  // additions to a lane before its sum is stored
  // The bits of a number without its sign, and those of infinity.
  static constexpr int64_t kMagnitude = sizeof(T) == 8 ? INT64_MAX : INT32_MAX;
  static constexpr int64_t kInfiniteBits = sizeof(T) == 8 ? 0x7ff0000000000000 : 0x7f800000;
  static constexpr T kInfinity = T(__builtin_inf());

  // ---- what is folded: term() of each number, joined. `kFill` replaces a missing number.

  struct Summed {
    static constexpr bool kExtreme = false;
    static constexpr T kFill = 0;
    static V identity() { return V{}; }
    template <class A>
    A operator()(A a, A b) const {
      return a + b;
    }
  };
  struct Sum : Summed {
    static V term(V x, V) { return x; }
  };
  struct Squares : Summed {
    static V term(V x, V) { return x * x; }
  };
  struct Numbers : Summed {
    static V term(V x, V) { return x == x ? x : V{}; }
  };
  struct Spread : Summed {
    static V term(V x, V centre) { return (x - centre) * (x - centre); }
  };
  struct Exponents : Summed {
    static constexpr T kFill = -kInfinity;
    static V term(V x, V centre) { return R::exp(x - centre); }
  };
  struct Product {
    static constexpr bool kExtreme = false;
    static constexpr T kFill = 1;
    static V identity() { return V{} + T(1); }
    static V term(V x, V) { return x; }
    template <class A>
    A operator()(A a, A b) const {
      return a * b;
    }
  };
  struct Max {
    static constexpr bool kExtreme = true;
    static V of_numbers(V a, V b) { return b > a ? b : a; }
    static constexpr T kFill = -kInfinity;
    static V identity() { return V{} - kInfinity; }
    static V term(V x, V) { return x; }
    template <class A>
    A operator()(A a, A b) const {
      return ((b > a) | (b != b)) ? b : a;
    }
  };
  struct Min {
    static constexpr bool kExtreme = true;
    static V of_numbers(V a, V b) { return b < a ? b : a; }
    static constexpr T kFill = kInfinity;
    static V identity() { return V{} + kInfinity; }
    static V term(V x, V) { return x; }
    template <class A>
    A operator()(A a, A b) const {
      return ((b < a) | (b != b)) ? b : a;
    }
  };

  // ---- runs

  // Accumulators stay in registers as long as every index is a constant: hence the unrolled loops.
  template <class F>
  static T run(const T* x, long n, long step, long repeats, const T* centre) {
    if constexpr (F::kExtreme) return extreme<F>(x, n, step, repeats);
    const V middle = V{} + (centre ? *centre : T(0));
    // The fill value is as far from the centre as it would be from 0.
    const T fill = centre ? F::kFill + *centre : F::kFill;
    V total[kVectors], acc[kVectors];
    for (int v = 0; v < kVectors; ++v) total[v] = acc[v] = F::identity();
    long chain = 0;
    for (; repeats > 0; --repeats, x += step) {
      long i = 0;
      for (; i + kWide <= n; i += kWide) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          acc[v] = F{}(acc[v], F::term(R::load(x + i + v * kLanes), middle));
        if (++chain >= kChain) put_aside<F>(total, acc, chain);
      }
      if (i == n) continue;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v, i += kLanes)
        if (i < n) acc[v] = F{}(acc[v], F::term(R::load(x + i, n - i, fill), middle));
      if (++chain >= kChain) put_aside<F>(total, acc, chain);
    }
    put_aside<F>(total, acc, chain);
    return R::joined(total, F{});
  }
  template <class F>
  static void put_aside(V (&total)[kVectors], V (&acc)[kVectors], long& chain) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      total[v] = F{}(total[v], acc[v]);
      acc[v] = F::identity();
    }
    chain = 0;
  }
  static I larger(I a, I b) { return b > a ? b : a; }
  // The largest or smallest number. One instruction compares numbers, but drops NaNs: these are found by the largest bits
  // without sign, which are above those of infinity.
  template <class F>
  static T extreme(const T* x, long n, long step, long repeats) {
    V acc[kVectors];
    I bits[kVectors] = {};
    for (int v = 0; v < kVectors; ++v) acc[v] = F::identity();
    const I magnitude = ~I{} & static_cast<decltype(+I{}[0])>(kMagnitude);
    const auto take = [&](int v, V next) {
      acc[v] = F::of_numbers(acc[v], next);
      bits[v] = larger(bits[v], reinterpret_cast<I>(next) & magnitude);
    };
    for (; repeats > 0; --repeats, x += step) {
      long i = 0;
      for (; i + kWide <= n; i += kWide) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) take(v, R::load(x + i + v * kLanes));
      }
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v, i += kLanes)
        if (i < n) take(v, R::load(x + i, n - i, F::kFill));
    }
#pragma GCC unroll 8
    for (int v = 1; v < kVectors; ++v) bits[0] = larger(bits[0], bits[v]);
    for (int k = 0; k < kLanes; ++k)
      if (bits[0][k] > kInfiniteBits) return static_cast<T>(__builtin_nan(""));
    return R::joined(acc, F{});
  }
  // ---- columns

  // kRows rows joined as a tree, and to what there is.
  template <class F, int kRows>
  static V tree(const T* x, long step, long left, V centre) {
    if constexpr (kRows == 1)
      return F::term(R::load(x, left), centre);
    else
      return F{}(tree<F, kRows / 2>(x, step, left, centre),
                 tree<F, kRows / 2>(x + kRows / 2 * step, step, left, centre));
  }
  template <class F, int kRows>
  static void add_rows(const T* x, long step, long width, const T* centre, T* to, bool first) {
    for (long c = 0; c < width; c += kLanes) {
      const long left = width - c;
      V sum = tree<F, kRows>(x + c, step, left, centre ? R::load(centre + c, left) : V{});
      if (!first) sum = F{}(R::load(to + c, left), sum);
      R::store(to + c, sum, left);
    }
  }
  template <class F>
  static void columns(const T* x, long step, long n, long width, const T* centre, T* to) {
    bool first = true;
    for (; n >= 8; n -= 8, x += 8 * step, first = false)
      add_rows<F, 8>(x, step, width, centre, to, first);
    for (; n > 0; --n, x += step, first = false) add_rows<F, 1>(x, step, width, centre, to, first);
  }
  template <class F>
  static constexpr FoldLoops<T> loops() {
    return {.run = run<F>, .columns = columns<F>};
  }

  // ---- softmax of columns

  // body.template run<vectors>(first column, how many are left) over all columns.
  template <class Body>
  static void over_columns(long width, const Body& body) {
    long c = 0;
    for (; c + kWide <= width; c += kWide) body.template run<kVectors>(c, width - c);
    for (; c < width; c += kLanes) body.template run<1>(c, width - c);
  }
  // sums[v] = term(row, vector) over rows, block by block.
  template <int kCount, class Term>
  static void sum_rows(long n, V* sums, Term term) {
    for (int v = 0; v < kCount; ++v) sums[v] = V{};
    for (long begin = 0; begin < n; begin += kBlock) {
      V part[kCount] = {};
      for (long i = begin; i < n && i < begin + kBlock; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < kCount; ++v) part[v] += term(i, v);
      for (int v = 0; v < kCount; ++v) sums[v] += part[v];
    }
  }
  static constexpr long kBlock = 64;

  template <bool kLog>
  struct Softmax {
    const T* x;
    T* out;
    long step, n;

    template <int kCount>
    void run(long c, long width) const {
      const auto place = [&](long i, int v) { return i * step + c + v * kLanes; };
      const auto left = [&](int v) { return width - v * kLanes; };
      V high[kCount], total[kCount];
      for (int v = 0; v < kCount; ++v) high[v] = V{} - kInfinity;
      for (long i = 0; i < n; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < kCount; ++v)
          high[v] = typename R::Larger{}(high[v], R::load(x + place(i, v), left(v)));
      sum_rows<kCount>(n, total, [&](long i, int v) {
        const V e = R::exp(R::load(x + place(i, v), left(v)) - high[v]);
        if (!kLog) R::store(out + place(i, v), e, left(v));
        return e;
      });
      for (int v = 0; v < kCount; ++v)
        for (int k = 0; k < kLanes; ++k) total[v][k] = kLog ? log_of(total[v][k]) : 1 / total[v][k];
      for (long i = 0; i < n; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < kCount; ++v) {
          const V made = kLog ? (R::load(x + place(i, v), left(v)) - high[v]) - total[v]
                              : R::load(out + place(i, v), left(v)) * total[v];
          R::store(out + place(i, v), made, left(v));
        }
    }
    static T log_of(T value) { return static_cast<T>(__builtin_log(static_cast<double>(value))); }
  };

  template <bool kLog>
  struct SoftmaxGrad {
    const T *out, *grad;
    T* to;
    long step, n;

    template <int kCount>
    void run(long c, long width) const {
      const auto at = [&](const T* p, long i, int v) {
        return R::load(p + i * step + c + v * kLanes, width - v * kLanes);
      };
      V total[kCount];
      sum_rows<kCount>(n, total, [&](long i, int v) {
        return kLog ? at(grad, i, v) : at(grad, i, v) * at(out, i, v);
      });
      for (long i = 0; i < n; ++i)
#pragma GCC unroll 8
        for (int v = 0; v < kCount; ++v) {
          const V made = kLog ? at(grad, i, v) - R::exp(at(out, i, v)) * total[v]
                              : (at(grad, i, v) - total[v]) * at(out, i, v);
          R::store(to + i * step + c + v * kLanes, made, width - v * kLanes);
        }
    }
  };

  template <bool kLog>
  static void softmax(const T* x, T* out, long step, long n, long width) {
    over_columns(width, Softmax<kLog>{x, out, step, n});
  }
  template <bool kLog>
  static void softmax_grad(const T* out, const T* grad, T* to, long step, long n, long width) {
    over_columns(width, SoftmaxGrad<kLog>{out, grad, to, step, n});
  }

  static constexpr FoldTable<T> table() {
    return {.loops = {loops<Sum>(), loops<Product>(), loops<Max>(), loops<Min>(), loops<Squares>(),
                      loops<Numbers>(), loops<Spread>(), loops<Exponents>()},
            .softmax_columns = softmax<false>,
            .log_softmax_columns = softmax<true>,
            .softmax_columns_grad = OAR_TRAINING_LOOP(softmax_grad<false>),
            .log_softmax_columns_grad = OAR_TRAINING_LOOP(softmax_grad<true>),
            .running_sum = RunningSum<T>::either};
  }
};

// T is unsigned, since sums wrap.
template <class T, int kBytes>
struct Integers {
  typedef T V __attribute__((vector_size(kBytes)));
  typedef T U __attribute__((vector_size(kBytes), aligned(8), may_alias));
  static constexpr int kLanes = kBytes / 8, kVectors = 4;

  template <class Term>
  static int64_t summed(const int64_t* x, long n, Term term) {
    V acc[kVectors] = {};
    T total = 0;
    long i = 0;
    for (; i + kVectors * kLanes <= n; i += kVectors * kLanes)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const V next = *reinterpret_cast<const U*>(x + i + v * kLanes);
        acc[v] += term(next);
      }
    for (; i < n; ++i) total += term(static_cast<T>(x[i]));
    const V sum = (acc[0] + acc[1]) + (acc[2] + acc[3]);
    for (int k = 0; k < kLanes; ++k) total += sum[k];
    return static_cast<int64_t>(total);
  }
  struct Itself {
    template <class A>
    A operator()(A x) const {
      return x;
    }
  };
  struct NotZero {
    template <class A>
    A operator()(A x) const {
      return x != 0 ? A{} + 1 : A{};
    }
  };
  static int64_t sum(const int64_t* x, long n) { return summed(x, n, Itself{}); }
  static int64_t count(const int64_t* x, long n) { return summed(x, n, NotZero{}); }
  static constexpr IntegerFolds table() { return {.sum = sum, .count = count}; }
};

}  // namespace
}  // namespace oar::cpu
