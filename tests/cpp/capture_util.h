// Shared by the tests of capture: tensors to play with, and eager against captured.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "oar/base/string_util.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/executor.h"
#include "oar/ir/print.h"
#include "oar/ir/verify.h"

namespace oar {

using Tensors = std::vector<Tensor>;

// Numbers without a pattern that an error could hide in, the same for the same start.
inline Tensor numbers(const Shape& shape, double start = 0.3, DType dtype = DType::Float32) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel().value(); ++i)
    values.push_back(std::sin(start + 1.7 * static_cast<double>(i)) * 2);
  return Tensor::from_vector(values, shape, dtype);
}

inline void expect_same(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(got.defined() && wanted.defined());
  EXPECT_EQ(got.describe(), wanted.describe());
  EXPECT_EQ(got.to_vector<double>(), wanted.to_vector<double>());
}

// For results that a fused kernel rounds differently from its parts.
inline void expect_near(const Tensor& got, const Tensor& wanted, double tolerance = 1e-5) {
  ASSERT_TRUE(got.defined() && wanted.defined());
  ASSERT_EQ(got.describe(), wanted.describe());
  const std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * (1 + std::abs(b[i]))) << "element " << i;
}

inline void expect_sound(const Program& program) {
  const std::vector<std::string> problems = verify(program);
  EXPECT_TRUE(problems.empty()) << join(problems, "\n") << "\n" << to_text(program);
}

// The message of the error that the call throws.
template <class F>
std::string error_of(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Captures once and compares with eager mode, bit for bit, on several sets of inputs.
inline Program expect_captures(const CapturedFunction& function,
                               const std::vector<InputSpec>& specs,
                               const std::vector<Tensors>& runs) {
  const Executor executor(capture(function, specs));
  expect_sound(executor.program());
  for (const Tensors& inputs : runs) {
    Tensors copies;
    for (const Tensor& t : inputs)  // the function may write its inputs
      copies.push_back(Tensor::from_vector(t.to_vector<double>(), t.dims(), t.dtype()));
    const Tensors got = executor.run(inputs), wanted = function(copies);
    EXPECT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size() && i < wanted.size(); ++i) expect_same(got[i], wanted[i]);
  }
  return executor.program();
}

}  // namespace oar
