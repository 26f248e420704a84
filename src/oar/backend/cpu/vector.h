// The vector instructions that kernels ask for by name, with a portable form of each. Everything else is written for the vectors
// of the compiler (`vector_size`) or left to its vectoriser, and runs on any processor. Units for AVX-512 and AMX are files of
// their own (`*_avx512.cpp`, `tile_*.cpp`, `simd/pieces.h`), which are empty elsewhere.
#pragma once

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <bit>
#include <cstdint>
#include <cstring>

namespace oar::cpu {

// ---- Writes around the caches --------------------------------------------------------------------

inline constexpr int64_t kStreamed = 32;  // bytes at a time

// `to` is aligned to kStreamed bytes.
inline void stream_vector(char* to, const char* from) {
#ifdef __AVX2__
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#else
  std::memcpy(to, from, kStreamed);
#endif
}
// What was streamed is in memory for all threads.
inline void stream_done() {
#ifdef __AVX2__
  _mm_sfence();
#endif
}

// ---- Squares that turn in registers --------------------------------------------------------------

// to[k * step + i] = from[i * row + k] for blocks of 8x8 words of 4 bytes, or 4x4 of 8 bytes.
template <class T>
  requires(sizeof(T) == 4)
void transpose_block(const T* from, int64_t row, T* to, int64_t step) {
  typedef T V __attribute__((vector_size(32)));
  typedef T U __attribute__((vector_size(32), aligned(4), may_alias));
  V r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const U*>(from + i * row);
  for (int i = 0; i < 8; i += 2) {
    s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4)
    for (int h = 0; h < 2; ++h) {
      r[i + 2 * h] = __builtin_shufflevector(s[i + h], s[i + h + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      r[i + 2 * h + 1] =
          __builtin_shufflevector(s[i + h], s[i + h + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  for (int k = 0; k < 4; ++k) {
    *reinterpret_cast<U*>(to + k * step) =
        __builtin_shufflevector(r[k], r[k + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    *reinterpret_cast<U*>(to + (k + 4) * step) =
        __builtin_shufflevector(r[k], r[k + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}
template <class T>
  requires(sizeof(T) == 8)
void transpose_block(const T* from, int64_t row, T* to, int64_t step) {
  typedef T V __attribute__((vector_size(32)));
  typedef T U __attribute__((vector_size(32), aligned(8), may_alias));
  V r[4], s[4];
  for (int i = 0; i < 4; ++i) r[i] = *reinterpret_cast<const U*>(from + i * row);
  for (int i = 0; i < 4; i += 2) {
    s[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 4, 2, 6);
    s[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 5, 3, 7);
  }
  for (int k = 0; k < 2; ++k) {
    *reinterpret_cast<U*>(to + k * step) = __builtin_shufflevector(s[k], s[k + 2], 0, 1, 4, 5);
    *reinterpret_cast<U*>(to + (k + 2) * step) =
        __builtin_shufflevector(s[k], s[k + 2], 2, 3, 6, 7);
  }
}

// ---- Eight floats or words at a time -------------------------------------------------------------

typedef float Float8 __attribute__((vector_size(32)));
typedef int32_t Int8 __attribute__((vector_size(32)));
typedef uint32_t Word8 __attribute__((vector_size(32)));

template <class Vector, class T>
Vector load8(const T* from) {
  Vector made;
  std::memcpy(&made, from, sizeof made);
  return made;
}
template <class Vector, class T>
void store8(T* to, const Vector& from) {
  std::memcpy(to, &from, sizeof from);
}

// from[index[i]] and from[index[i] + 1] for i < 4, in turn: two loads per register, where a gather would need eight.
inline Float8 gather_pairs(const float* from, const int32_t* index) {
  typedef double Pairs __attribute__((vector_size(32)));
  const auto pair = [&](int i) {
    double both;
    std::memcpy(&both, from + index[i], sizeof both);
    return both;
  };
  return reinterpret_cast<Float8>(Pairs{pair(0), pair(1), pair(2), pair(3)});
}
// a[0] + a[1], a[2] + a[3], ..., then those of b.
inline Float8 sums_of_pairs(const Float8& a, const Float8& b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
         __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}

// v where the weight is not 0 (or is NaN), else 0.
inline Float8 where_not_zero(const Float8& weight, const Float8& v) {
#ifdef __AVX2__
  return _mm256_and_ps(_mm256_cmp_ps(weight, _mm256_setzero_ps(), _CMP_NEQ_UQ), v);
#else
  return weight != 0 ? v : Float8{};
#endif
}

// Stores those of eight words whose flag, a byte of 0 or 1, is set, side by side; the words after them may be overwritten.
// Returns their number.
inline int select8(void* to, const void* from, uint64_t flags) {
#ifdef __AVX2__
  // The places of the flags that are set, a byte each, then a lane each.
  const uint64_t places = _pext_u64(0x0706050403020100, flags * 255);
  const __m256i lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(places)));
  const __m256i eight = _mm256_loadu_si256(static_cast<const __m256i*>(from));
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(eight, lanes));
#else
  const char* word = static_cast<const char*>(from);
  char* place = static_cast<char*>(to);
  for (int i = 0; i < 8; ++i, word += 4) {
    std::memcpy(place, word, 4);
    place += (flags >> (8 * i) & 1) * 4;
  }
#endif
  return std::popcount(flags);
}

// The high and the low half of each product.
inline void multiply_wide(const Word8& x, uint32_t by, Word8& high, Word8& low) {
#ifdef __AVX2__
  const __m256i v = reinterpret_cast<__m256i>(x), factor = _mm256_set1_epi32(static_cast<int>(by)),
                even = _mm256_mul_epu32(v, factor),
                odd = _mm256_mul_epu32(_mm256_srli_epi64(v, 32), factor);
  low = reinterpret_cast<Word8>(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa));
  high = reinterpret_cast<Word8>(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa));
#else
  for (int i = 0; i < 8; ++i) {
    const uint64_t product = uint64_t{x[i]} * by;
    high[i] = static_cast<uint32_t>(product >> 32);
    low[i] = static_cast<uint32_t>(product);
  }
#endif
}

// ---- A number of several matrices, a lane each -----------------------------------------------------

typedef double Double4 __attribute__((vector_size(32)));
typedef int64_t Long4 __attribute__((vector_size(32)));

// The vectors of a float type, and what a comparison of two of them makes: all bits of a lane or none.
template <class R>
struct Vectors;
template <>
struct Vectors<float> {
  using Values = Float8;
  using Mask = Int8;
};
template <>
struct Vectors<double> {
  using Values = Double4;
  using Mask = Long4;
};

// a[0] + a[1], a[2] + a[3], then those of b.
inline Double4 sums_of_pairs(const Double4& a, const Double4& b) {
  return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
}

inline Float8 square_root(const Float8& v) {
#ifdef __AVX2__
  return _mm256_sqrt_ps(v);
#else
  Float8 made;
  for (int i = 0; i < 8; ++i) made[i] = __builtin_sqrtf(v[i]);
  return made;
#endif
}
inline Double4 square_root(const Double4& v) {
#ifdef __AVX2__
  return _mm256_sqrt_pd(v);
#else
  Double4 made;
  for (int i = 0; i < 4; ++i) made[i] = __builtin_sqrt(v[i]);
  return made;
#endif
}

// Is any bit of a mask set?
template <class Mask>
bool any_lane(const Mask& mask) {
  const auto words = reinterpret_cast<const Long4&>(mask);
#ifdef __AVX2__
  return _mm256_testz_si256(reinterpret_cast<__m256i>(words), reinterpret_cast<__m256i>(words)) ==
         0;
#else
  return (words[0] | words[1] | words[2] | words[3]) != 0;
#endif
}

}  // namespace oar::cpu
