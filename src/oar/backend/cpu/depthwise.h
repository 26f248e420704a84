// Convolutions whose groups have one input channel: nothing is shared between channels, so rows are
// scaled and added directly.
#pragma once

#include "oar/backend/cpu/im2col.h"
#include "oar/base/parallel.h"

namespace oar::cpu {

inline bool is_depthwise(const ConvShape& s) { return s.channels == 1 && s.groups > 1; }

namespace detail {

// to[i] += factor * from[i * step], in pieces of a fixed size that the compiler turns into vectors.
template <class T>
void add_scaled(int64_t n, T factor, const T* from, int64_t step, T* to) {
  int64_t i = 0;
  constexpr int64_t kPiece = 16;
  if (step == 1)
    for (; i + kPiece <= n; i += kPiece)
      for (int64_t l = 0; l < kPiece; ++l) to[i + l] = plus_product(to[i + l], factor, from[i + l]);
  for (; i < n; ++i) to[i] = plus_product(to[i], factor, from[i * step]);
}

template <class T>
void add_scaled_into(int64_t n, T factor, const T* from, T* to, int64_t step) {
  if (step == 1) return add_scaled(n, factor, from, 1, to);
  for (int64_t i = 0; i < n; ++i) to[i * step] = plus_product(to[i * step], factor, from[i]);
}

template <class T>
T sum_of_products(int64_t n, const T* a, int64_t step, const T* b) {
  constexpr int64_t kPiece = 16;
  T sums[kPiece] = {};
  int64_t i = 0;
  if (step == 1)
    for (; i + kPiece <= n; i += kPiece)
      for (int64_t l = 0; l < kPiece; ++l) sums[l] = plus_product(sums[l], a[i + l], b[i + l]);
  for (; i < n; ++i) sums[i % kPiece] = plus_product(sums[i % kPiece], a[i * step], b[i]);
  for (int64_t l = 1; l < kPiece; ++l) sums[0] = plus(sums[0], sums[l]);
  return sums[0];
}

inline int64_t planes_per_thread(const ConvShape& s) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.taps() * s.pixels()));
}

}  // namespace detail

template <class T>
void depthwise_forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* out) {
  const int64_t per_image = s.groups * s.out_channels;
  parallel_for(0, s.batch * per_image, detail::planes_per_thread(s),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const T* from = x + i / s.out_channels * s.plane();
                   const T* kernel = weight + i % per_image * s.taps();
                   T* to = out + i * s.pixels();
                   std::fill(to, to + s.pixels(), bias ? bias[i % per_image] : T(0));
                   for_each_row(s, [&](int64_t tap, int64_t in_at, int64_t out_at, int64_t n) {
                     detail::add_scaled(n, kernel[tap], from + in_at, s.x.stride, to + out_at);
                   });
                 }
               });
}

template <class T>
void depthwise_input_gradient(const ConvShape& s, const T* weight, const T* grad, T* out) {
  parallel_for(
      0, s.batch * s.groups, detail::planes_per_thread(s), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          T* to = out + i * s.plane();
          std::fill(to, to + s.plane(), T(0));
          for (int64_t o = 0; o < s.out_channels; ++o) {
            const T* kernel = weight + (i % s.groups * s.out_channels + o) * s.taps();
            const T* from = grad + (i * s.out_channels + o) * s.pixels();
            for_each_row(s, [&](int64_t tap, int64_t in_at, int64_t out_at, int64_t n) {
              detail::add_scaled_into(n, kernel[tap], from + out_at, to + in_at, s.x.stride);
            });
          }
        }
      });
}

template <class T>
void depthwise_weight_gradient(const ConvShape& s, const T* x, const T* grad, T* out) {
  const int64_t kernels = s.groups * s.out_channels;
  parallel_for(0, kernels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* to = out + i * s.taps();
      std::fill(to, to + s.taps(), T(0));
      for (int64_t n = 0; n < s.batch; ++n) {
        const T* image = x + (n * s.groups + i / s.out_channels) * s.plane();
        const T* from = grad + (n * kernels + i) * s.pixels();
        for_each_row(s, [&](int64_t tap, int64_t in_at, int64_t out_at, int64_t count) {
          to[tap] = plus(to[tap],
                         detail::sum_of_products(count, image + in_at, s.x.stride, from + out_at));
        });
      }
    }
  });
}

}  // namespace oar::cpu
