// Conversions of elements, against values worked out by hand from the formats' definitions.
#include "oar/tensor/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace oar {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The value of a code from the definition: sign, exponent, mantissa.
double value_of(int code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int sign = code >> (exponent_bits + mantissa_bits);
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const double fraction = mantissa / std::ldexp(1.0, mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return sign != 0 ? -magnitude : magnitude;
}

template <class T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<decltype(value.bits)>(bits);
  return value;
}

TEST(Element, EveryFloat8E4M3CodeRoundTrips) {
  for (int code = 0; code < 256; ++code) {
    const float value = from_bits<float8_e4m3fn>(code);
    if ((code & 0x7f) == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << code;
      EXPECT_EQ(float8_e4m3fn(value).bits & 0x7f, 0x7f);
      continue;
    }
    EXPECT_EQ(value, value_of(code, 4, 3)) << code;
    EXPECT_EQ(std::signbit(value), code >= 0x80) << code;
    EXPECT_EQ(float8_e4m3fn(value).bits, code);
  }
}

TEST(Element, EveryFloat8E5M2CodeRoundTrips) {
  for (int code = 0; code < 256; ++code) {
    const float value = from_bits<float8_e5m2>(code);
    if ((code & 0x7f) > 0x7c) {
      EXPECT_TRUE(std::isnan(value)) << code;
      EXPECT_GT(float8_e5m2(value).bits & 0x7f, 0x7c);
      continue;
    }
    if ((code & 0x7f) == 0x7c) {
      EXPECT_EQ(value, code < 0x80 ? kInf : -kInf);
    } else {
      EXPECT_EQ(value, value_of(code, 5, 2)) << code;
    }
    EXPECT_EQ(std::signbit(value), code >= 0x80) << code;
    EXPECT_EQ(float8_e5m2(value).bits, code);
  }
}

TEST(Element, Float8RoundsToNearestEven) {
  EXPECT_EQ(float8_e4m3fn(448.0f).bits, 0x7e);
  EXPECT_EQ(float8_e4m3fn(464.0f).bits, 0x7e)
      << "halfway to the code that would be 480: the even one";
  EXPECT_EQ(float8_e4m3fn(464.1f).bits, 0x7e) << "beyond it the largest one";
  EXPECT_EQ(float8_e4m3fn(-1e5f).bits, 0xfe);
  EXPECT_EQ(float8_e4m3fn(-kInf).bits, 0xff);
  EXPECT_EQ(float8_e4m3fn(1.0625f).bits, 0x38) << "halfway between 1 and 1.125";
  EXPECT_EQ(float8_e4m3fn(1.1875f).bits, 0x3a) << "halfway between 1.125 and 1.25";
  EXPECT_EQ(float8_e4m3fn(std::ldexp(1.0f, -9)).bits, 0x01);
  EXPECT_EQ(float8_e4m3fn(std::ldexp(1.0f, -10)).bits, 0x00) << "half of the smallest";
  EXPECT_EQ(float8_e4m3fn(std::ldexp(1.5f, -10)).bits, 0x01);
  EXPECT_EQ(float8_e4m3fn(-0.0f).bits, 0x80);
  EXPECT_EQ(float8_e5m2(57344.0f).bits, 0x7b);
  EXPECT_EQ(float8_e5m2(61439.0f).bits, 0x7b);
  EXPECT_EQ(float8_e5m2(61440.0f).bits, 0x7b) << "beyond it the largest one";
  EXPECT_EQ(float8_e5m2(kInf).bits, 0x7c);
  EXPECT_EQ(float8_e5m2(std::ldexp(1.0f, -16)).bits, 0x01);
  EXPECT_EQ(float8_e5m2(std::ldexp(1.0f, -17)).bits, 0x00);
}

TEST(Element, EveryFloat16CodeRoundTrips) {
  for (int code = 0; code < 65536; ++code) {
    const float value = from_bits<float16>(code);
    const int magnitude = code & 0x7fff;
    if (magnitude > 0x7c00) {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_GT(float16(value).bits & 0x7fff, 0x7c00);
      continue;
    }
    if (magnitude == 0x7c00) {
      ASSERT_EQ(value, code < 0x8000 ? kInf : -kInf);
    } else {
      ASSERT_EQ(value, value_of(code, 5, 10)) << code;
    }
    ASSERT_EQ(float16(value).bits, code);
  }
}

TEST(Element, Float16RoundsToNearestEven) {
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(float16(1.0f + std::ldexp(1.0f, -11)).bits, 0x3c00);
  EXPECT_EQ(float16(1.0f + std::ldexp(3.0f, -11)).bits, 0x3c02);
  EXPECT_EQ(float16(std::ldexp(1.0f, -24)).bits, 0x0001);
  EXPECT_EQ(float16(std::ldexp(1.0f, -25)).bits, 0x0000);
  EXPECT_EQ(float16(std::ldexp(1.0f, -14)).bits, 0x0400);
}

TEST(Element, EveryBfloat16CodeRoundTrips) {
  for (int code = 0; code < 65536; ++code) {
    const float value = from_bits<bfloat16>(code);
    if ((code & 0x7fff) > 0x7f80) {
      ASSERT_TRUE(std::isnan(value)) << code;
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(value))));
      continue;
    }
    if ((code & 0x7fff) < 0x7f80) {
      ASSERT_EQ(value, static_cast<float>(value_of(code, 8, 7)));
    }
    ASSERT_EQ(bfloat16(value).bits, code);
  }
}

TEST(Element, Bfloat16RoundsToNearestEven) {
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(1.0f + std::ldexp(1.0f, -8)).bits, 0x3f80);
  EXPECT_EQ(bfloat16(1.0f + std::ldexp(3.0f, -8)).bits, 0x3f82);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  // A NaN whose payload is in the lower half must not become infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(Element, DoublesAreRoundedOnce) {
  // Rounded to float first this would be exactly halfway, and go the other way.
  const double above_half = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(convert_element<float16>(above_half).bits, 0x3c01);
  const double below_half = 1.0 + std::ldexp(3.0, -11) - std::ldexp(1.0, -40);
  EXPECT_EQ(convert_element<float16>(below_half).bits, 0x3c01);
  EXPECT_EQ(convert_element<bfloat16>(1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)).bits,
            0x3f81);
  EXPECT_EQ(convert_element<float8_e4m3fn>(1.0625 + 1e-9).bits, 0x39);
  EXPECT_EQ(convert_element<float8_e5m2>(61440.0 - 1e-9).bits, 0x7b);
  EXPECT_EQ(convert_element<float16>(1e300).bits, 0x7c00);
  EXPECT_EQ(convert_element<float16>(-1e-300).bits, 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(convert_element<float16>(double{kNan}))));
  EXPECT_EQ(convert_element<bfloat16>(3.4e38).bits, 0x7f80);
}

TEST(Element, ConvertsAsNumPyDoes) {
  EXPECT_EQ(convert_element<int32_t>(-2.9), -2);
  EXPECT_EQ((convert_element<int8_t>(int64_t{300})), 44);
  EXPECT_EQ((convert_element<uint8_t>(int64_t{-1})), 255);
  EXPECT_TRUE(convert_element<bool>(0.25));
  EXPECT_TRUE(convert_element<bool>(std::complex<double>(0, 1)));
  EXPECT_TRUE(convert_element<bool>(float16(0.5f)));
  EXPECT_TRUE(convert_element<bool>(double{kNan}));
  EXPECT_FALSE(convert_element<bool>(-0.0));
  EXPECT_EQ(convert_element<float>(std::complex<double>(2.5, 9)), 2.5f);
  EXPECT_EQ((convert_element<std::complex<float>>(float16(1.5f))), std::complex<float>(1.5f, 0));
  EXPECT_EQ(convert_element<int64_t>(true), 1);
  EXPECT_EQ(convert_element<int64_t>(float8_e4m3fn(-3.5f)), -3);
}

TEST(Element, LoadsAndStoresEveryDType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    alignas(16) unsigned char bytes[16];
    store_element(bytes, dtype, {1.0, 0.0});
    EXPECT_EQ(load_element(bytes, dtype), std::complex<double>(1, 0)) << name_of(dtype);
    EXPECT_EQ(load_integer(bytes, dtype), 1) << name_of(dtype);
    store_integer(bytes, dtype, 0);
    EXPECT_EQ(load_element(bytes, dtype), std::complex<double>(0, 0)) << name_of(dtype);
  }
  alignas(8) unsigned char wide[8];
  const int64_t large = (int64_t{1} << 53) + 1;  // not a double
  store_integer(wide, DType::Int64, large);
  EXPECT_EQ(load_integer(wide, DType::Int64), large);
}

}  // namespace
}  // namespace oar
