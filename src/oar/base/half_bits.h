// float16 in integer arithmetic, for machines whose compilers know no such type. Everything is local to the file that includes
// it: units for several instruction sets do.
#pragma once

#include <cstdint>

namespace oar {
namespace {

// To the nearest, of two equally near ones the even. NaN stays NaN.
[[maybe_unused]] inline uint16_t half_bits(float value) {
  const auto word = __builtin_bit_cast(uint32_t, value);
  const auto sign = static_cast<uint16_t>(word >> 16 & 0x8000);
  const uint32_t size = word & 0x7fffffff;
  uint32_t made = 0;
  if (size > 0x7f800000) {
    made = 0x7e00 | (size >> 13 & 0x1ff);
  } else if (size >= 0x47800000) {  // 2^16, beyond all float16
    made = 0x7c00;
  } else if (size < 0x38800000) {  // below 2^-14: adding 0.5 leaves as many bits as there are
    made = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, size) + 0.5f) - 0x3f000000;
  } else {
    made = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | made);
}

[[maybe_unused]] inline float half_value(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, size = (bits & 0x7fffu) << 13;
  uint32_t made = size + 0x38000000;
  if (size >= 0x0f800000)  // infinite, or NaN
    made = size + 0x70000000;
  else if (size < 0x00800000)  // below the least normal one
    made = __builtin_bit_cast(uint32_t, __builtin_bit_cast(float, size + 0x38800000) - 0x1p-14f);
  return __builtin_bit_cast(float, sign | made);
}

}  // namespace
}  // namespace oar
