// Elementary functions as straight-line code: choices are selects and exponents are moved by integer
// arithmetic, so that a compiler vectorises the loop around them for any instruction set.
//
// A file that includes this is compiled for one instruction set, so everything here has internal
// linkage and nothing comes from another header. Polynomials are minimax fits over the interval that
// the reduction leaves; in double they are Taylor series. In float every function is within 2 units
// in the last place of the true value, and exact for infinities, NaN and zeros of either sign
// (tests/python/test_numerics.py).
#pragma once

#include <cstdint>

// A call inside a loop would keep it from being vectorised.
#define OAR_SIMD_INLINE [[gnu::always_inline]] inline

namespace oar::cpu {
namespace {

// What a type's bits look like.
template <class T>
struct Layout;
template <>
struct Layout<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kSmallest = 0x1p-126f;  // of the normal numbers
};
template <>
struct Layout<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kSmallest = 0x1p-1022;
};
template <class T>
using BitsOf = typename Layout<T>::Bits;
template <class T>
inline constexpr bool kIsFloat = sizeof(T) == 4;
template <class T>
inline constexpr T kInfinity = T(__builtin_inff());
template <class T>
inline constexpr T kNan = T(__builtin_nanf(""));
template <class T>
inline constexpr T kPi = T(3.14159265358979323846L);
template <class T>
inline constexpr T kHalfPi = T(1.57079632679489661923L);

template <class To, class From>
OAR_SIMD_INLINE To bits_as(From value) {
  return __builtin_bit_cast(To, value);
}
template <class T>
OAR_SIMD_INLINE T magnitude(T x) {
  return bits_as<T>(bits_as<BitsOf<T>>(x) & (~BitsOf<T>{0} >> 1));
}
// `x` with the sign bit of `sign`.
template <class T>
OAR_SIMD_INLINE T with_sign(T x, T sign) {
  constexpr BitsOf<T> kRest = ~BitsOf<T>{0} >> 1;
  return bits_as<T>((bits_as<BitsOf<T>>(x) & kRest) | (bits_as<BitsOf<T>>(sign) & ~kRest));
}
template <class T>
OAR_SIMD_INLINE bool has_sign(T x) {
  return (bits_as<BitsOf<T>>(x) & ~(~BitsOf<T>{0} >> 1)) != 0;
}
// x * y + z, rounded once where the processor can.
OAR_SIMD_INLINE float fma(float x, float y, float z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
OAR_SIMD_INLINE double fma(double x, double y, double z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}
// c[0] + c[1] x + c[2] x^2 ...
template <class T, int kCount>
OAR_SIMD_INLINE T polynomial(T x, const T (&c)[kCount]) {
  T sum = c[kCount - 1];
#pragma GCC unroll 16
  for (int i = kCount - 2; i >= 0; --i) sum = fma(sum, x, c[i]);
  return sum;
}
OAR_SIMD_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
OAR_SIMD_INLINE double square_root(double x) { return __builtin_sqrt(x); }

// ---- Exponentials ------------------------------------------------------------------------------

// Adding it to a number below 2^21 (2^50) leaves the nearest integer in the lowest bits.
template <class T>
inline constexpr T kShifter = kIsFloat<T> ? T(0x1.8p23) : T(0x1.8p52);

// x = n ln 2 + rest + lost, |rest| <= ln 2 / 2. ln 2 stands in two parts, the first with so few bits
// that its product with n is exact.
template <class T>
struct Halvings {
  T rest, lost;
  BitsOf<T> n;  // two's complement
};
template <class T>
OAR_SIMD_INLINE Halvings<T> without_powers_of_2(T x) {
  const T shifted = fma(x, T(1.44269504088896340736L), kShifter<T>);
  const T n = shifted - kShifter<T>;
  constexpr T kHigh = kIsFloat<T> ? T(0.693359375) : T(6.93147180369123816490e-01);
  constexpr T kLow = kIsFloat<T> ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  const T nearly = fma(n, -kHigh, x);
  const T rest = fma(n, -kLow, nearly);
  return {rest, fma(n, -kLow, nearly - rest),
          bits_as<BitsOf<T>>(shifted) - bits_as<BitsOf<T>>(kShifter<T>)};
}
// 2^n for the exponents of normal numbers.
template <class T>
OAR_SIMD_INLINE T power_of_2(BitsOf<T> n) {
  return bits_as<T>((n + Layout<T>::kBias) << Layout<T>::kMantissa);
}
// y * 2^n in two factors: n may lie beyond the exponents of normal numbers.
template <class T>
OAR_SIMD_INLINE T scaled_by_power_of_2(T y, BitsOf<T> n) {
  constexpr BitsOf<T> kOffset = 4096;  // makes n positive, so that the shift halves it
  const BitsOf<T> half = ((n + kOffset) >> 1) - kOffset / 2;
  return y * power_of_2<T>(half) * power_of_2<T>(n - half);
}
// e^(r + lost) - 1 for |r| <= ln 2 / 2.
template <class T>
OAR_SIMD_INLINE T expm1_near_0(T r, T lost = 0) {
  if constexpr (kIsFloat<T>) {
    const float c[] = {0.5f, 0.1666652059f, 0.04166638642f, 0.008368729373f, 0.001394205193f};
    return r + fma(r * r, polynomial(r, c), lost);
  } else {
    const double c[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                        1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    return r + fma(r * r, polynomial(r, c), lost);
  }
}

// e^x * 2^doublings. NaN passes through the comparisons.
template <class T>
OAR_SIMD_INLINE T exp_times(T x, int doublings) {
  constexpr T kLow = kIsFloat<T> ? T(-105) : T(-746), kHigh = kIsFloat<T> ? T(90) : T(711);
  x = x < kLow ? kLow : x;
  x = x > kHigh ? kHigh : x;
  const Halvings<T> h = without_powers_of_2(x);
  return scaled_by_power_of_2(1 + expm1_near_0(h.rest, h.lost),
                              h.n + static_cast<BitsOf<T>>(doublings));
}
// Not as exact as it could be: what the reduction lost is left out.
template <class T>
OAR_SIMD_INLINE T exp(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-105) : T(-746), kHigh = kIsFloat<T> ? T(89) : T(710);
  x = x < kLow ? kLow : x;
  x = x > kHigh ? kHigh : x;
  const Halvings<T> h = without_powers_of_2(x);
  return scaled_by_power_of_2(1 + expm1_near_0(h.rest), h.n);
}
// Whether e^x is neither too large for a number nor too small for a normal one.
template <class T>
OAR_SIMD_INLINE bool has_normal_exp(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-87) : T(-708), kHigh = kIsFloat<T> ? T(88) : T(709);
  return (x >= kLow) & (x <= kHigh);
}
// The same for such x.
template <class T>
OAR_SIMD_INLINE T normal_exp(T x) {
  const Halvings<T> h = without_powers_of_2(x);
  return (1 + expm1_near_0(h.rest)) * power_of_2<T>(h.n);
}
// The same for x <= 0. Made larger at first, it rounds once even where it is below the normal numbers.
template <class T>
OAR_SIMD_INLINE T exp_of_negative(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-105) : T(-746), kDown = kIsFloat<T> ? T(0x1p-32) : T(0x1p-64);
  constexpr BitsOf<T> kUp = kIsFloat<T> ? 32 : 64;
  const Halvings<T> h = without_powers_of_2(x < kLow ? kLow : x);
  return (1 + expm1_near_0(h.rest)) * power_of_2<T>(h.n + kUp) * kDown;
}
// x e^x for x <= 0, rounded once where e^x is below the normal numbers.
template <class T>
OAR_SIMD_INLINE T times_exp(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-110) : T(-760);
  constexpr T kDown = kIsFloat<T> ? T(0x1p-64) : T(0x1p-128);
  constexpr BitsOf<T> kUp = kIsFloat<T> ? 64 : 128;
  const Halvings<T> h = without_powers_of_2(x < kLow ? kLow : x);
  const T made = fma(x, expm1_near_0(h.rest, h.lost), x) * power_of_2<T>(h.n + kUp) * kDown;
  return x < kLow ? x * 0 : made;
}
template <class T>
OAR_SIMD_INLINE T expm1(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-30) : T(-60), kHigh = kIsFloat<T> ? T(89) : T(710);
  T bounded = x < kLow ? kLow : x;
  bounded = bounded > kHigh ? kHigh : bounded;
  const Halvings<T> h = without_powers_of_2(bounded);
  // At half the size, since 2^n itself may be too large.
  const T half = power_of_2<T>(h.n - 1);
  const T made = 2 * fma(half, expm1_near_0(h.rest, h.lost), half - T(0.5));
  return magnitude(x) < (kIsFloat<T> ? T(0x1p-25) : T(0x1p-54)) ? x : made;
}

// ---- Logarithms --------------------------------------------------------------------------------

// x = 2^exponent (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), and log(1 + f) = f + rest. For positive x.
template <class T>
struct Logarithm {
  T exponent, f, rest;
};
template <class T>
OAR_SIMD_INLINE Logarithm<T> logarithm_of_normal(T x) {
  using Bits = BitsOf<T>;
  constexpr int kMantissa = Layout<T>::kMantissa, kBias = Layout<T>::kBias;
  const Bits root = bits_as<Bits>(T(0.70710678118654752440L));
  const Bits one = bits_as<Bits>(T(1));
  const Bits shifted = bits_as<Bits>(x) + (one - root);
  // As the mantissa of 2^23 (2^52), the integer becomes a number without a conversion.
  const T bias = kIsFloat<T> ? T(0x1p23) : T(0x1p52);
  const T biased = bits_as<T>((shifted >> kMantissa) | bits_as<Bits>(bias));
  const T exponent = biased - (bias + kBias);
  const T f = bits_as<T>((shifted & ((Bits{1} << kMantissa) - 1)) + root) - 1;
  T rest;
  const T half_square = T(0.5) * f * f;
  if constexpr (kIsFloat<T>) {
    const float c[] = {0.3333331044f,  -0.249999866f, 0.2000222644f,  -0.1666925081f, 0.1421866131f,
                       -0.1238435071f, 0.1187295675f, -0.1178979128f, 0.06915392753f};
    rest = fma(f * f * f, polynomial(f, c), -half_square);
  } else {
    // log(1 + f) = 2 atanh(s)
    const double s = f / (2 + f), z = s * s;
    const double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                        2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    rest = s * fma(z, polynomial(z, c), half_square) - half_square;
  }
  return {exponent, f, rest};
}
template <class T>
OAR_SIMD_INLINE Logarithm<T> logarithm(T x) {
  constexpr T kLifted = kIsFloat<T> ? T(24) : T(54), kLift = kIsFloat<T> ? T(0x1p24) : T(0x1p54);
  const bool tiny = x < Layout<T>::kSmallest;
  Logarithm<T> l = logarithm_of_normal(tiny ? x * kLift : x);
  l.exponent -= tiny ? kLifted : T(0);
  return l;
}
// Whether x is a positive normal number, by one comparison of its bits.
template <class T>
OAR_SIMD_INLINE bool is_positive_normal(T x) {
  using Bits = BitsOf<T>;
  const Bits first = bits_as<Bits>(Layout<T>::kSmallest);
  return bits_as<Bits>(x) - first < bits_as<Bits>(kInfinity<T>) - first;
}
template <class T>
OAR_SIMD_INLINE T joined(const Logarithm<T>& l, T small) {
  constexpr T kHigh = kIsFloat<T> ? T(0.693359375) : T(6.93147180369123816490e-01);
  constexpr T kLow = kIsFloat<T> ? T(-2.12194440e-4) : T(1.90821492927058770002e-10);
  return fma(l.exponent, kHigh, l.f + fma(l.exponent, kLow, small));
}
template <class T>
OAR_SIMD_INLINE T joined(const Logarithm<T>& l) {
  return joined(l, l.rest);
}
// What a logarithm of x is where x is not a positive number.
template <class T>
OAR_SIMD_INLINE T log_or_special(T x, T made) {
  const T upper = x < kInfinity<T> ? made : x;
  return x > 0 ? upper : x == 0 ? -kInfinity<T> : kNan<T>;
}
template <class T>
OAR_SIMD_INLINE T joined_2(const Logarithm<T>& l) {
  constexpr T kHigh = T(1.44269504088896340736L), kLow = T(1.44269504088896340736L - kHigh);
  const T small = fma(l.f + l.rest, kLow, l.rest * kHigh);
  return l.exponent + fma(l.f, kHigh, small);
}
template <class T>
OAR_SIMD_INLINE T joined_10(const Logarithm<T>& l) {
  constexpr T kHigh = T(0.43429448190325182765L), kLow = T(0.43429448190325182765L - kHigh);
  // log10(2), the first part with few bits.
  constexpr T kTwoHigh = kIsFloat<T> ? T(0.30102539062) : T(3.01029995663611771306e-01);
  constexpr T kTwoLow = T(0.30102999566398119521L - kTwoHigh);
  const T small = fma(l.exponent, kTwoLow, fma(l.f + l.rest, kLow, l.rest * kHigh));
  return fma(l.exponent, kTwoHigh, fma(l.f, kHigh, small));
}
template <class T>
OAR_SIMD_INLINE T log(T x) {
  return log_or_special(x, joined(logarithm(x)));
}
template <class T>
OAR_SIMD_INLINE T log2(T x) {
  return log_or_special(x, joined_2(logarithm(x)));
}
template <class T>
OAR_SIMD_INLINE T log10(T x) {
  return log_or_special(x, joined_10(logarithm(x)));
}
template <class T>
OAR_SIMD_INLINE T log1p(T x) {
  const T u = 1 + x;
  // What rounding took from u.
  const T lost = x > 1 ? 1 - (u - x) : x - (u - 1);
  const Logarithm<T> l = logarithm(u);
  const T made = log_or_special(u, joined(l, l.rest + lost / u));
  return magnitude(x) < (kIsFloat<T> ? T(0x1p-25) : T(0x1p-54)) ? x : made;
}

// log(1 + u) for u in [0, 1].
template <class T>
OAR_SIMD_INLINE T log1p_up_to_1(T u) {
  const T sum = 1 + u, lost = u - (sum - 1);
  const Logarithm<T> l = logarithm_of_normal(sum);
  return joined(l, l.rest + lost / sum);
}

// ---- Hyperbolic and logistic functions -----------------------------------------------------------

// With m = e^(2|x|) - 1: m / (m + 2), in which an error of m shrinks. Near 0 a series.
OAR_SIMD_INLINE float tanh(float x) {
  const float size = magnitude(x), z = x * x;
  const Halvings<float> h = without_powers_of_2(2 * (size > 10 ? 10.0f : size));
  const float power = power_of_2<float>(h.n);
  const float m = fma(power, expm1_near_0(h.rest), power - 1);
  const float c[] = {-0.3333324008f, 0.133242363f, -0.05142999315f};
  const float near = fma(size * z, polynomial(z, c), size), far = m / (m + 2);
  return with_sign(size < 0.25f ? near : far, x);
}
// With e = e^(-2|x|): 1 - 2e / (1 + e), whose rounding errors are those of the second term.
OAR_SIMD_INLINE double tanh(double x) {
  const double size = magnitude(x), minus_1 = expm1(-2 * size), e = minus_1 + 1;
  const double near = minus_1 / (-2 - minus_1), far = 1 - 2 * e / (1 + e);
  return with_sign(size < 0.55 ? near : far, x);
}
template <class T>
OAR_SIMD_INLINE T sinh(T x) {
  const T size = magnitude(x);
  const T half = exp_times(size, -1);
  const T far = with_sign(half - T(0.25) / half, x);
  const T z = x * x;
  T series;
  if constexpr (kIsFloat<T>) {
    const float c[] = {0.1666666649f, 0.008333350597f, 0.0001983606649f, 2.817438332e-6f};
    series = polynomial(z, c);
  } else {
    const double c[] = {1.0 / 6,
                        1.0 / 120,
                        1.0 / 5040,
                        1.0 / 362880,
                        1.0 / 39916800,
                        1.0 / 6227020800.0,
                        1.0 / 1307674368000.0,
                        1.0 / 355687428096000.0};
    series = polynomial(z, c);
  }
  return size < 1 ? fma(x * z, series, x) : far;
}
template <class T>
OAR_SIMD_INLINE T cosh(T x) {
  const T half = exp_times(magnitude(x), -1);
  return half + T(0.25) / half;
}
// 1 / (1 + e) or e / (1 + e) with e = e^(-|x|). What 1 + e lost by rounding is given back through a
// straight line near 1 / (1 + e).
template <class T>
OAR_SIMD_INLINE T sigmoid(T x) {
  const T e = exp_of_negative(-magnitude(x));
  const T below = 1 + e, lost = e - (below - 1);
  const T rough = (x < 0 ? e : T(1)) / below;
  return fma(rough * fma(below, T(-0.5), T(1.457)), -lost, rough);
}
// log(1 + e^x).
template <class T>
OAR_SIMD_INLINE T softplus(T x) {
  return (x > 0 ? x : T(0)) + log1p_up_to_1(exp_of_negative(-magnitude(x)));
}
// log(e^a + e^b). Equal infinities have no distance.
template <class T>
OAR_SIMD_INLINE T logaddexp(T a, T b) {
  const T high = a > b ? a : b, distance = a > b ? b - a : a - b;
  const T more = log1p_up_to_1(exp_of_negative(distance));
  return high + (a == b ? T(0.69314718055994530942L) : more);
}

// ---- The error function ---------------------------------------------------------------------------

// x * x minus its rounded value.
template <class T>
OAR_SIMD_INLINE T lost_by_square(T x, T square) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return fma(x, x, -square);
#else
  constexpr BitsOf<T> kHigh = ~BitsOf<T>{0} << (Layout<T>::kMantissa / 2 + 1);
  const T high = bits_as<T>(bits_as<BitsOf<T>>(x) & kHigh), low = x - high;
  return ((high * high - square) + 2 * high * low) + low * low;
#endif
}
// e^(-x^2 / 2), with the square to twice the digits: the exponential multiplies its error.
template <class T>
OAR_SIMD_INLINE T bell(T x) {
  constexpr T kHigh = kIsFloat<T> ? T(15) : T(40);
  const T size = magnitude(x), bounded = size > kHigh ? kHigh : size;
  const T square = bounded * bounded;
  const T made = exp_of_negative(T(-0.5) * square);
  return fma(made, T(-0.5) * lost_by_square(bounded, square), made);
}
// The share of a normal distribution below x. For x <= 0 it is erfc(a) / 2 with a = -x / sqrt(2), and
// erfc(a) = e^(-a^2) / (1 + 2a) times a polynomial in (a - 4) / (a + 4).
OAR_SIMD_INLINE float normal_share(float x, float bell_of_x) {
  const float size = magnitude(x) * 0.70710678118654752f;
  const float a = size > 10.5f ? 10.5f : size;
  const float below = fma(a, 2.0f, 1.0f), inverse = 1 / ((a + 4) * below);
  const float q = (a - 4) * (below * inverse);
  const float c[] = {0.6164975595f,   -0.0698105662f,  0.00768980025f,   0.034048939365f,
                     -0.05051852965f, 0.046860824275f, -0.03318030078f,  0.018606216425f,
                     -0.00800739036f, 0.002539189029f, -0.000553032486f, -0.00031649610835f};
  const float tail = bell_of_x * polynomial(q, c) * ((a + 4) * inverse);
  return x < 0 ? tail : 1 - tail;
}
OAR_SIMD_INLINE double normal_share(double x, double) {
  return __builtin_erfc(x * -0.70710678118654752440) / 2;
}

// Beyond 1 as 1 - e^p(|x|), p a polynomial.
OAR_SIMD_INLINE float erf(float x) {
  const float size = magnitude(x), z = x * x;
  const float near[] = {0.1283791659f,   -0.3761262714f,    0.1128360017f, -0.02685444424f,
                        0.005189534593f, -0.0008020834299f, 7.88909551e-5f};
  const float far[] = {0.000131734911f, -1.129308106f,    -0.6337628768f,   -0.1078279725f,
                       0.02483317726f,  -0.004065716841f, 0.0004136472867f, -1.939662508e-5f};
  const float tail = 1 - normal_exp(polynomial(size > 4.0f ? 4.0f : size, far));
  return size < 1 ? fma(x, polynomial(z, near), x) : with_sign(tail, x);
}
OAR_SIMD_INLINE double erf(double x) { return __builtin_erf(x); }

// Of w = -log(1 - x^2), which is small in the middle and grows slowly towards the ends.
OAR_SIMD_INLINE float erfinv(float x) {
  const float size = magnitude(x);
  const float w = -joined(logarithm_of_normal((1 - size) * (1 + size)));
  const float middle[] = {0.8862269189f,     0.2320138798f,   0.0115482792f,   -0.002333436945f,
                          -0.0001284558084f, 4.517934692e-5f, 3.757692465e-6f, -1.928519602e-6f,
                          2.155677835e-7f,   -8.532991629e-9f};
  const float ends[] = {2.832976924f,     1.001673753f,     0.009438589764f,
                        -0.007617744177f, 0.005740376138f,  -0.003689556903f,
                        0.001352576592f,  0.0001169031576f, -0.0002079661974f};
  const float near = polynomial(w, middle), far = polynomial(square_root(w) - 3, ends);
  const float made = x * (w < 5 ? near : far);
  const float edge = size == 1 ? with_sign(kInfinity<float>, x) : kNan<float>;
  return size < 1 ? made : edge;
}

// ---- Angles ------------------------------------------------------------------------------------

// x = n pi/2 + rest, |rest| <= pi/4, in double. pi/2 stands in two parts: the first has 33 bits, and
// its product with n is exact for the sizes that are let in here.
struct Turns {
  double rest;
  uint32_t n;
};
template <class T>
inline constexpr T kMostTurned = T(500000);
OAR_SIMD_INLINE Turns without_turns(double x) {
  const double shifted = fma(x, 0.63661977236758134308, kShifter<double>);
  const double n = shifted - kShifter<double>;
  const double rest = fma(n, -6.07710050650619224932e-11, fma(n, -1.57079632673412561417e+00, x));
  return {rest, static_cast<uint32_t>(bits_as<uint64_t>(shifted))};
}
OAR_SIMD_INLINE float sin_near_0(float r) {
  const float z = r * r;
  const float c[] = {-0.1666665494f, 0.008332177683f, -0.0001951723433f};
  return fma(r * z, polynomial(z, c), r);
}
OAR_SIMD_INLINE float cos_near_0(float r) {
  const float z = r * r;
  const float c[] = {0.04166664686f, -0.001388736701f, 2.443838957e-5f};
  return fma(z * z, polynomial(z, c), fma(z, -0.5f, 1.0f));
}
// The same in float. pi/2 stands in three parts. What the first leaves is exact, since it has no more
// bits than a float; a rounding happens where each of the others is taken off.
struct NearTurns {
  float rest;
  uint32_t n;
};
OAR_SIMD_INLINE NearTurns without_turns_in_float(float x) {
  const float shifted = fma(x, 0.636619772f, kShifter<float>);
  const float n = shifted - kShifter<float>;
  const float rest = fma(n, 1.71512451e-15f, fma(n, 4.37113883e-8f, fma(n, -1.57079637f, x)));
  return {rest, bits_as<uint32_t>(shifted)};
}
OAR_SIMD_INLINE float sin_of_turn(float x, uint32_t quarters) {
  const NearTurns t = without_turns_in_float(x);
  const uint32_t n = t.n + quarters;
  const float sine = sin_near_0(t.rest), cosine = cos_near_0(t.rest);
  const float made = (n & 1) != 0 ? cosine : sine;
  return bits_as<float>(bits_as<uint32_t>(made) ^ ((n & 2) << 30));
}
OAR_SIMD_INLINE float sin(float x) {
  const float made = sin_of_turn(x, 0);
  return x == 0 ? x : made;
}
OAR_SIMD_INLINE float cos(float x) { return sin_of_turn(x, 1); }
OAR_SIMD_INLINE float tan(float x) {
  const Turns t = without_turns(x);
  const auto r = static_cast<float>(t.rest), lost = static_cast<float>(t.rest - r);
  const float z = r * r;
  const float c[] = {0.3333335147f,  0.1333260906f,   0.05406564393f, 0.0212544179f,
                     0.01090384591f, 7.582158439e-6f, 0.004414862728f};
  const float excess = r * z * polynomial(z, c), rough = r + excess;
  const float tangent = r + fma(fma(rough, rough, 1.0f), lost, excess);
  const float made = (t.n & 1) != 0 ? -1 / tangent : tangent;
  return x == 0 ? x : made;
}
OAR_SIMD_INLINE double sin(double x) { return __builtin_sin(x); }
OAR_SIMD_INLINE double cos(double x) { return __builtin_cos(x); }
OAR_SIMD_INLINE double tan(double x) { return __builtin_tan(x); }

// asin(t) - t for 0 <= t <= 1/2.
OAR_SIMD_INLINE float asin_excess(float t) {
  const float z = t * t;
  const float c[] = {0.1666665987f, 0.07500510878f, 0.04451572793f,
                     0.0318175494f, 0.01440283017f, 0.03756490406f};
  return t * z * polynomial(z, c);
}
// Above 1/2 through pi/2 - 2 asin(sqrt((1 - x) / 2)), with what the root lost by rounding.
OAR_SIMD_INLINE float asin(float x) {
  const float size = magnitude(x);
  const bool near = size <= 0.5f;
  const float square = 0.5f * (1 - size);
  const float root = square_root(square);
  const float lost = fma(-root, root, square) / (2 * root + 0x1p-60f);
  const float excess = asin_excess(near ? size : root);
  const float far = (kHalfPi<float> - 2 * root) - (2 * (excess + lost) - -4.37113883e-8f);
  return with_sign(near ? size + excess : far, x);
}
OAR_SIMD_INLINE float acos(float x) {
  const float size = magnitude(x);
  const bool near = size <= 0.5f;
  const float start = near ? size : square_root(0.5f * (1 - size));
  const float angle = start + asin_excess(start);
  const float signed_angle = with_sign(angle, x);
  const float from_pole = has_sign(x) ? kPi<float> - (2 * angle - -8.74227766e-8f) : 2 * angle;
  return near ? kHalfPi<float> - (signed_angle - -4.37113883e-8f) : from_pole;
}
OAR_SIMD_INLINE double asin(double x) { return __builtin_asin(x); }
OAR_SIMD_INLINE double acos(double x) { return __builtin_acos(x); }

// atan(t) for 0 <= t <= 1.
OAR_SIMD_INLINE float atan_below_1(float t) {
  const float z = t * t;
  const float c[] = {-0.3333330186f,  0.1999863853f,   -0.1426524477f,
                     0.1095757434f,   -0.08419456554f, 0.05823454247f,
                     -0.03145572057f, 0.0110644617f,   -0.00182721932f};
  return fma(t * z, polynomial(z, c), t);
}
OAR_SIMD_INLINE float atan(float x) {
  const float size = magnitude(x);
  const bool far = size > 1;
  const float angle = atan_below_1(far ? 1 / size : size);
  return with_sign(far ? kHalfPi<float> - (angle - -4.37113883e-8f) : angle, x);
}
OAR_SIMD_INLINE double atan(double x) { return __builtin_atan(x); }

OAR_SIMD_INLINE float atan2(float y, float x) {
  const float up = magnitude(y), along = magnitude(x);
  const float larger = up > along ? up : along, smaller = up > along ? along : up;
  const float ratio = larger == 0 ? 0.0f : smaller == larger ? 1.0f : smaller / larger;
  const float angle = atan_below_1(ratio);
  const float eighth = up > along ? kHalfPi<float> - (angle - -4.37113883e-8f) : angle;
  const float made = with_sign(has_sign(x) ? kPi<float> - (eighth - -8.74227766e-8f) : eighth, y);
  return x != x || y != y ? x + y : made;
}
OAR_SIMD_INLINE double atan2(double y, double x) { return __builtin_atan2(y, x); }

// ---- Powers ------------------------------------------------------------------------------------

// Through log2 and exp2 in double, which leaves little more than the rounding of the result.
OAR_SIMD_INLINE float pow(float x, float y) {
  const double size = magnitude(x);
  const uint64_t root = bits_as<uint64_t>(0.70710678118654752440);
  const uint64_t shifted = bits_as<uint64_t>(size) + (bits_as<uint64_t>(1.0) - root);
  const double exponent =
      bits_as<double>((shifted >> 52) | bits_as<uint64_t>(0x1p52)) - (0x1p52 + 1023);
  const double m = bits_as<double>((shifted & 0xfffffffffffffu) + root);
  const double s = (m - 1) / (m + 1), z = s * s;
  const double c[] = {2.0,
                      0.6666666667580053608,
                      0.3999999562227833896,
                      0.2857210908528635751,
                      0.2217619266229841444,
                      0.195840830766985654};
  const double log_size = fma(s * polynomial(z, c), 1.44269504088896340736, exponent);
  const double finite = size == 0 ? -__builtin_inf() : log_size;
  const double unlimited = (size == __builtin_inf() ? size : finite) * static_cast<double>(y);
  double power = unlimited < -160 ? -160 : unlimited;
  power = power > 129 ? 129 : power;
  const double lifted = power + kShifter<double>;
  const auto r = static_cast<float>((power - (lifted - kShifter<double>)) * 0.69314718055994530942);
  const auto n = static_cast<uint32_t>(bits_as<uint64_t>(lifted));
  const float made = scaled_by_power_of_2(1 + expm1_near_0(r), n);
  // Odd exponents give a negative base its sign; fractions leave it without a power. Adding 2^23 rounds
  // to an integer; from 2^24 on all floats are even. The answers are joined without short cuts, which
  // would be branches.
  const float y_size = magnitude(y), y_half = y_size * 0.5f;
  const bool whole = (y_size >= 0x1p23f) | ((y_size + 0x1p23f) - 0x1p23f == y_size);
  const bool even = (y_size >= 0x1p24f) | ((y_half + 0x1p23f) - 0x1p23f == y_half);
  const float odd = (whole & !even) ? x : 1.0f;
  const float signed_power = with_sign(made, odd);
  const bool undefined = (x < 0) & (x > -kInfinity<float>)&!whole;
  const float answer = undefined ? kNan<float> : signed_power;
  const float known = ((x != x) | (y != y)) ? x + y : answer;
  const bool one = (y == 0) | (x == 1) | ((x == -1) & (y_size == kInfinity<float>));
  return one ? 1.0f : known;
}
OAR_SIMD_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }

}  // namespace
}  // namespace oar::cpu
