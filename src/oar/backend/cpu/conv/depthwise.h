// Convolutions whose groups have one input channel: nothing is shared between channels, so rows are
// scaled and added directly.
#pragma once

#include "oar/backend/cpu/conv/im2col.h"
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

// One plane of the result, row by row, where the kernel does not step along a row: the sum of a pixel
// stays in a register while all taps are added to it.
template <class T>
class PlaneRows {
 public:
  static bool fits(const ConvShape& s) {
    return std::is_floating_point_v<T> && s.x.stride == 1 && s.z.kernel * s.y.kernel <= kMostRows &&
           end_of_middle(s) - s.x.inside(0).first >= kLanes;
  }
  PlaneRows(const ConvShape& s, const T* image, const T* kernel, T start)
      : s_(s), image_(image), kernel_(kernel), start_(start) {}
  void run(T* to) {
    for (int64_t z = 0; z < s_.z.out; ++z)
      for (int64_t y = 0; y < s_.y.out; ++y, to += s_.x.out) {
        find_rows(z, y);
        row(to);
      }
  }

 private:
  static constexpr int64_t kMostRows = 64, kLanes = 32 / sizeof(T), kVectors = 4;
  typedef T V __attribute__((vector_size(32), aligned(alignof(T)), may_alias));

  // All taps are inside the image from here to the end of the middle part.
  static int64_t end_of_middle(const ConvShape& s) { return s.x.inside(s.x.kernel - 1).second; }
  void find_rows(int64_t z, int64_t y) {
    rows_ = 0;
    for (int64_t kz = 0; kz < s_.z.kernel; ++kz)
      for (int64_t ky = 0; ky < s_.y.kernel; ++ky) {
        const int64_t at_z = z * s_.z.stride + s_.z.offset(kz);
        const int64_t at_y = y * s_.y.stride + s_.y.offset(ky);
        if (at_z < 0 || at_z >= s_.z.size || at_y < 0 || at_y >= s_.y.size) continue;
        pixels_[rows_] = image_ + (at_z * s_.y.size + at_y) * s_.x.size;
        factors_[rows_++] = kernel_ + (kz * s_.y.kernel + ky) * s_.x.kernel;
      }
  }
  void row(T* to) const {
    const int64_t begin = s_.x.inside(0).first, end = end_of_middle(s_);
    for (int64_t x = 0; x < begin; ++x) to[x] = at_edge(x);
    int64_t x = begin;
    for (; x + kVectors * kLanes <= end; x += kVectors * kLanes) middle<kVectors>(x, to);
    for (; x + kLanes <= end; x += kLanes) middle<1>(x, to);
    if (x < end) middle<1>(end - kLanes, to);
    for (x = end; x < s_.x.out; ++x) to[x] = at_edge(x);
  }
  template <int kCount>
  void middle(int64_t x, T* to) const {
    V sums[kCount];
    for (V& sum : sums) sum = V{} + start_;
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t k = 0; k < s_.x.kernel; ++k) {
        const T* from = pixels_[r] + x + s_.x.offset(k);
        const V factor = V{} + factors_[r][k];
#pragma GCC unroll 4
        for (int v = 0; v < kCount; ++v)
          sums[v] += factor * *reinterpret_cast<const V*>(from + v * kLanes);
      }
    for (int v = 0; v < kCount; ++v) *reinterpret_cast<V*>(to + x + v * kLanes) = sums[v];
  }
  T at_edge(int64_t x) const {
    T sum = start_;
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t k = 0; k < s_.x.kernel; ++k) {
        const int64_t at = x + s_.x.offset(k);
        if (at >= 0 && at < s_.x.size) sum = plus_product(sum, factors_[r][k], pixels_[r][at]);
      }
    return sum;
  }

  const ConvShape& s_;
  const T *image_, *kernel_;
  const T start_;
  int64_t rows_ = 0;
  const T *pixels_[kMostRows], *factors_[kMostRows];
};

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
                   const T start = bias ? bias[i % per_image] : T(0);
                   if constexpr (std::is_floating_point_v<T>)
                     if (detail::PlaneRows<T>::fits(s)) {
                       detail::PlaneRows<T>(s, from, kernel, start).run(to);
                       continue;
                     }
                   std::fill(to, to + s.pixels(), start);
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
