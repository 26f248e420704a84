// Loops over pixels whose channels are adjacent, written once with vector extensions; each file that includes
// it is compiled for another instruction set, so everything here has internal linkage and uses nothing from other
// headers.
#pragma once

#include "oar/backend/cpu/rows/channel_table.h"
#include "oar/backend/cpu/rows/row_micro.h"

namespace oar::cpu {
namespace {

template <class T, int kBytes>
struct Channels {
  using R = Rows<T, kBytes>;
  using V = typename R::V;
  static constexpr int kLanes = R::kLanes;
  static constexpr int kWide = 4;     // vectors that are worked on together
  static constexpr long kBlock = 32;  // pixels that are added up together

  // body(first channel, vectors as a constant, channels of the last vector) for all n channels.
  template <class Body>
  static void each_group(long n, Body body) {
    long c = 0;
    for (; c + kWide * kLanes <= n; c += kWide * kLanes) body(c, Count<kWide>{}, long(kLanes));
    for (; c < n; c += kLanes) body(c, Count<1>{}, n - c < kLanes ? n - c : long(kLanes));
  }
  template <int kCount>
  struct Count {
    static constexpr int value = kCount;
  };

  static void moments(const T* x, long rows, long n, long before, T* mean, T* spread) {
    for (long first = 0; first < rows; first += kBlock) {
      const long count = rows - first < kBlock ? rows - first : kBlock;
      const T share = T(count) / T(before + count), both = share * T(before);
      each_group(n, [&](long c, auto vectors, long left) {
        constexpr int k = decltype(vectors)::value;
        V sum[k] = {}, squares[k] = {};
        const T* from = x + first * n + c;
        for (long r = 0; r < count; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < k; ++v) sum[v] += R::load(from + r * n + v * kLanes, left);
        }
#pragma GCC unroll 4
        for (int v = 0; v < k; ++v) sum[v] = sum[v] / T(count);
        for (long r = 0; r < count; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < k; ++v) {
            const V d = R::load(from + r * n + v * kLanes, left) - sum[v];
            squares[v] += d * d;
          }
        }
#pragma GCC unroll 4
        for (int v = 0; v < k; ++v) {
          T *m = mean + c + v * kLanes, *s = spread + c + v * kLanes;
          const V old = R::load(m, left), d = sum[v] - old;
          R::store(m, old + d * share, left);
          R::store(s, R::load(s, left) + squares[v] + d * d * both, left);
        }
      });
      before += count;
    }
  }

  static void put(T* p, V v, long left, [[maybe_unused]] bool stream) {
#if defined(__AVX__)
    if (stream) return R::store_past_caches(p, v);
#endif
    R::store(p, v, left);
  }
  // Streamed stores are of whole vectors, at whole vectors.
  static bool can_stream(const T* out, long n) {
    return n % kLanes == 0 && __builtin_bit_cast(unsigned long, out) % kBytes == 0;
  }

  template <bool kRelu>
  static void affine_of(const T* x, T* out, long rows, long n, const T* mean, const T* scale,
                        const T* shift, bool stream) {
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < n; c += kLanes) {
        const long left = n - c;
        V y = (R::load(x + r * n + c, left) - R::load(mean + c, left)) * R::load(scale + c, left) +
              R::load(shift + c, left);
        if (kRelu) y = y < T(0) ? V{} : y;
        put(out + r * n + c, y, left, stream);
      }
  }
  static void affine(const T* x, T* out, long rows, long n, const T* mean, const T* scale,
                     const T* shift, bool relu, bool stream) {
    stream = stream && can_stream(out, n);
    (relu ? affine_of<true> : affine_of<false>)(x, out, rows, n, mean, scale, shift, stream);
  }

  // The gradient that is passed: if a relu follows, only for positive elements.
  template <bool kGate>
  static V gated(const T* grad, V distance, const T* scale, const T* shift, long c, long left) {
    const V g = R::load(grad, left);
    if (!kGate) return g;
    const V y = distance * R::load(scale + c, left) + R::load(shift + c, left);
    return y > T(0) ? g : V{};
  }

  template <bool kGate>
  static void grad_sums_of(const T* grad, const T* x, long rows, long n, const T* mean,
                           const T* scale, const T* shift, T* level, T* slope) {
    for (long first = 0; first < rows; first += kBlock) {
      const long count = rows - first < kBlock ? rows - first : kBlock;
      each_group(n, [&](long c, auto vectors, long left) {
        constexpr int k = decltype(vectors)::value;
        V sum[k] = {}, product[k] = {};
        for (long r = 0; r < count; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < k; ++v) {
            const long at = c + v * kLanes, from = (first + r) * n + at;
            const V d = R::load(x + from, left) - R::load(mean + at, left);
            const V g = gated<kGate>(grad + from, d, scale, shift, at, left);
            sum[v] += g;
            product[v] += g * d;
          }
        }
#pragma GCC unroll 4
        for (int v = 0; v < k; ++v) {
          const long at = c + v * kLanes;
          R::store(level + at, R::load(level + at, left) + sum[v], left);
          R::store(slope + at, R::load(slope + at, left) + product[v], left);
        }
      });
    }
  }
  static void grad_sums(const T* grad, const T* x, long rows, long n, const T* mean, const T* scale,
                        const T* shift, T* level, T* slope) {
    (scale ? grad_sums_of<true> : grad_sums_of<false>)(grad, x, rows, n, mean, scale, shift, level,
                                                       slope);
  }

  template <bool kGate>
  static void affine_grad_of(const T* grad, const T* x, T* to, long rows, long n, const T* mean,
                             const T* scale, const T* shift, const T* of_grad, const T* of_x,
                             const T* of_one, bool stream) {
    for (long r = 0; r < rows; ++r)
      for (long c = 0; c < n; c += kLanes) {
        const long left = n - c, at = r * n + c;
        const V d = R::load(x + at, left) - R::load(mean + c, left);
        const V g = gated<kGate>(grad + at, d, scale, shift, c, left);
        const V y = g * R::load(of_grad + c, left) +
                    (d * R::load(of_x + c, left) + R::load(of_one + c, left));
        put(to + at, y, left, stream);
      }
  }
  static void affine_grad(const T* grad, const T* x, T* to, long rows, long n, const T* mean,
                          const T* scale, const T* shift, const T* of_grad, const T* of_x,
                          const T* of_one, bool stream) {
    stream = stream && can_stream(to, n);
    (scale ? affine_grad_of<true> : affine_grad_of<false>)(grad, x, to, rows, n, mean, scale, shift,
                                                           of_grad, of_x, of_one, stream);
  }

  // Positions of the result at which a tap of the kernel is inside the image: [begin, end).
  struct Span {
    long begin, end;
  };
  static Span met(long tap, long size, long count, long stride, long before, long dilation) {
    const long first = before - tap * dilation, past = size + first;
    const long begin = first <= 0 ? 0 : (first + stride - 1) / stride;
    const long end = past <= 0 ? 0 : (past + stride - 1) / stride;
    return {begin < count ? begin : count, end < count ? end : count};
  }

  // One row of taps, kTaps of them from `tap` on, for one vector of channels: each sum stays in a register.
  template <int kTaps>
  static void add_taps(const DepthwiseShape& s, const T* x, const T* grad, long row, long tap,
                       long left, T* sums) {
    V sum[kTaps] = {};
    Span inner = met(tap, s.width, s.out_width, s.stride[1], s.before[1], s.dilation[1]);
    Span each[kTaps];
    for (int k = 0; k < kTaps; ++k) {
      each[k] = met(tap + k, s.width, s.out_width, s.stride[1], s.before[1], s.dilation[1]);
      inner.begin = each[k].begin > inner.begin ? each[k].begin : inner.begin;
      inner.end = each[k].end < inner.end ? each[k].end : inner.end;
    }
    if (inner.end < inner.begin) inner.end = inner.begin;
    const Span lines = met(row, s.height, s.out_height, s.stride[0], s.before[0], s.dilation[0]);
    const long step = s.stride[1] * s.channels, apart = s.dilation[1] * s.channels;
    for (long y = lines.begin; y < lines.end; ++y) {
      const T* from = x + ((y * s.stride[0] + row * s.dilation[0] - s.before[0]) * s.width +
                           tap * s.dilation[1] - s.before[1]) *
                              s.channels;
      const T* g = grad + y * s.out_width * s.channels;
      for (long i = inner.begin; i < inner.end; ++i) {
        const V of = R::load(g + i * s.channels, left);
#pragma GCC unroll 8
        for (int k = 0; k < kTaps; ++k) sum[k] += R::load(from + i * step + k * apart, left) * of;
      }
#pragma GCC unroll 8
      for (int k = 0; k < kTaps; ++k) {
        const auto add = [&](long i) {
          sum[k] += R::load(from + i * step + k * apart, left) * R::load(g + i * s.channels, left);
        };
        for (long i = each[k].begin; i < each[k].end && i < inner.begin; ++i) add(i);
        for (long i = each[k].begin > inner.end ? each[k].begin : inner.end; i < each[k].end; ++i)
          add(i);
      }
    }
#pragma GCC unroll 8
    for (int k = 0; k < kTaps; ++k) {
      T* to = sums + (row * s.kernel_width + tap + k) * s.channels;
      R::store(to, R::load(to, left) + sum[k], left);
    }
  }
  static void depthwise_weight_grad(const DepthwiseShape& s, const T* x, const T* grad, T* sums) {
    for (long c = 0; c < s.channels; c += kLanes) {
      const long left = s.channels - c;
      for (long row = 0; row < s.kernel_height; ++row) {
        long tap = 0;
        for (; tap + 5 <= s.kernel_width; tap += 5)
          add_taps<5>(s, x + c, grad + c, row, tap, left, sums + c);
        for (; tap + 3 <= s.kernel_width; tap += 3)
          add_taps<3>(s, x + c, grad + c, row, tap, left, sums + c);
        for (; tap < s.kernel_width; ++tap)
          add_taps<1>(s, x + c, grad + c, row, tap, left, sums + c);
      }
    }
  }

  static constexpr ChannelTable<T> table() {
    return {moments, affine, OAR_TRAINING_LOOP(grad_sums), OAR_TRAINING_LOOP(affine_grad),
            OAR_TRAINING_LOOP(depthwise_weight_grad)};
  }
};

}  // namespace
}  // namespace oar::cpu
