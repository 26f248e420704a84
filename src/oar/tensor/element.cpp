#include "oar/tensor/element.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oar {

double packed_value(uint8_t bits, DType dtype) {
  if (dtype == DType::UInt4) return bits;
  if (dtype == DType::Int4) return bits < 8 ? bits : bits - 16;
  // One sign bit, two exponent bits, one mantissa bit.
  static constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return bits & 8 ? -kMagnitudes[bits & 7] : kMagnitudes[bits & 7];
}

uint8_t packed_bits(double value, DType dtype) {
  if (dtype != DType::Float4E2M1FN) {
    if (!std::isfinite(value)) return 0;
    return static_cast<uint8_t>(static_cast<int64_t>(std::fmod(std::trunc(value), 16.0)) & 15);
  }
  if (std::isnan(value)) return std::signbit(value) ? 0 : 8;  // a zero, as of ml_dtypes
  const double magnitude = std::fabs(value);
  // Steps of 0.5 below 2, of 1 below 4, of 2 from there on; ties go to the even mantissa.
  const double step = magnitude < 2 ? 0.5 : magnitude < 4 ? 1 : 2;
  const double rounded = std::min(std::nearbyint(magnitude / step) * step, 6.0);
  uint8_t code = 7;
  while (packed_value(code, dtype) > rounded) --code;
  return static_cast<uint8_t>(code | (std::signbit(value) ? 8 : 0));
}

}  // namespace oar

namespace oar::detail {

uint8_t float_to_float8(float value, int exponent_bits, int mantissa_bits, bool finite_only) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top_exponent = (1 << exponent_bits) - 1;
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  const auto nan = static_cast<uint8_t>(0x7f);
  const auto infinity = static_cast<uint8_t>(top_exponent << mantissa_bits);
  if (std::isnan(value)) return sign | nan;
  if (std::isinf(value)) return sign | (finite_only ? nan : infinity);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  exponent = std::max(exponent - 1, 1 - bias);
  // nearbyint rounds half to even, which is what hardware does.
  double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  if (units >= std::ldexp(1.0, mantissa_bits + 1)) {
    units /= 2;
    ++exponent;
  }
  const auto whole = static_cast<int>(units);
  const bool subnormal = whole < (1 << mantissa_bits);
  const int code =
      subnormal ? whole
                : ((exponent + bias) << mantissa_bits | (whole & ((1 << mantissa_bits) - 1)));
  const int largest = finite_only ? nan - 1 : infinity - 1;
  return static_cast<uint8_t>(sign | std::min(code, largest));
}

float float8_to_float(uint8_t bits, int exponent_bits, int mantissa_bits, bool finite_only) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int magnitude = bits & 0x7f;
  const int exponent = magnitude >> mantissa_bits;
  const int mantissa = magnitude & ((1 << mantissa_bits) - 1);
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const bool top = exponent == (1 << exponent_bits) - 1;
  if (finite_only ? magnitude == 0x7f : (top && mantissa != 0))
    return std::numeric_limits<float>::quiet_NaN();
  if (!finite_only && top) return sign * std::numeric_limits<float>::infinity();
  const int whole = exponent == 0 ? mantissa : mantissa | 1 << mantissa_bits;
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - mantissa_bits);
}

}  // namespace oar::detail
