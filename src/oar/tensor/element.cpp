#include "oar/tensor/element.h"

#include <cmath>
#include <limits>

namespace oar::detail {

uint8_t float_to_float8(float value, int exponent_bits, int mantissa_bits, bool finite_only) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int top_exponent = (1 << exponent_bits) - 1;
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  const auto nan = static_cast<uint8_t>(0x7f);
  const auto infinity = static_cast<uint8_t>(top_exponent << mantissa_bits);
  const uint8_t overflow = finite_only ? nan : infinity;
  if (std::isnan(value)) return sign | nan;
  if (std::isinf(value)) return sign | overflow;
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
  return static_cast<uint8_t>(sign | (code > largest ? overflow : code));
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
