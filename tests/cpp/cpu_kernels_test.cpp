// What CPU kernels do with dtypes that they are not compiled for, and what they are called.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "oar/device/device.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

using Numbers = std::vector<double>;

Tensor row(const Numbers& values, DType dtype) {
  return Tensor::from_vector(values, Shape{static_cast<int64_t>(values.size())}, dtype);
}

constexpr DType kIntegerTypes[] = {DType::UInt8, DType::Int8, DType::Int16, DType::Int32,
                                   DType::Int64};
constexpr DType kFloatTypes[] = {DType::Float8E4M3FN, DType::Float8E5M2, DType::Float16,
                                 DType::BFloat16,     DType::Float32,    DType::Float64};

TEST(CpuKernels, EveryIntegerTypeWrapsAtItsOwnWidth) {
  for (const DType dtype : kIntegerTypes) {
    if (size_of(dtype) == 8) continue;
    const double range = std::ldexp(1.0, static_cast<int>(8 * size_of(dtype)));
    const double high = dtype == DType::UInt8 ? 255 : range / 2 - 1;
    const Tensor x = row({high}, dtype);
    EXPECT_EQ(add(x, row({1}, dtype)).to_vector<double>()[0], high + 1 - range) << name_of(dtype);
    EXPECT_EQ(multiply(x, x).to_vector<double>()[0], 1) << name_of(dtype);
  }
}

TEST(CpuKernels, BoundsOutsideOfAnIntegerTypeAreItsEnds) {
  const Tensor x = row({-100, 0, 100}, DType::Int8);
  EXPECT_EQ(clip(x, Scalar(-1000.0), Scalar(50.0)).to_vector<double>(), (Numbers{-100, 0, 50}));
  EXPECT_EQ(clip(x, Scalar(int64_t{1000}), std::nullopt).to_vector<double>(),
            (Numbers{127, 127, 127}));
  EXPECT_EQ(scale(x, 1.5).to_vector<double>(), (Numbers{-128, 0, 127}));
}

TEST(CpuKernels, AShiftSeesTheSignOfItsType) {
  const Tensor x = row({-1}, DType::Int8), by = row({1}, DType::Int8);
  EXPECT_EQ(bitwise_right_shift(x, by, false).to_vector<double>(), Numbers{127});
  EXPECT_EQ(bitwise_right_shift(x, by, true).to_vector<double>(), Numbers{-1});
  EXPECT_EQ(bitwise_not(row({0, 1}, DType::Bool)).to_vector<double>(), (Numbers{1, 0}));
  EXPECT_EQ(bitwise_not(row({0, 1}, DType::UInt8)).to_vector<double>(), (Numbers{255, 254}));
}

TEST(CpuKernels, TruthIsEveryBitButTheSign) {
  const double nan = std::nan("");
  for (const DType dtype : kFloatTypes) {
    EXPECT_EQ(any(row({-0.0, 0.0}, dtype)).item_double(), 0) << name_of(dtype);
    EXPECT_EQ(any(row({-0.0, nan}, dtype)).item_double(), 1) << name_of(dtype);
    EXPECT_EQ(all(row({-1.0, nan}, dtype)).item_double(), 1) << name_of(dtype);
    EXPECT_EQ(all(row({-1.0, -0.0}, dtype)).item_double(), 0) << name_of(dtype);
  }
  EXPECT_EQ(all(row({-128, 1}, DType::Int8)).item_double(), 1) << "the sign bit alone is a number";
  EXPECT_EQ(any(row({-0.0, 0}, DType::Complex64)).item_double(), 0);
  EXPECT_EQ(any(row({0, 2}, DType::Complex128)).item_double(), 1);
}

// Rows long enough for several blocks, and columns: both ways that reductions convert.
TEST(CpuKernels, ReductionsOfEveryTypeAgree) {
  Numbers values(3 * 2500);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 7);
  const Tensor wide = Tensor::from_vector(values, Shape{2500, 3}, DType::Float64);
  for (const DType dtype : {DType::UInt8, DType::Int8, DType::Int16, DType::Int32, DType::Int64,
                            DType::Float16, DType::BFloat16, DType::Float32}) {
    const Tensor x = cast(wide, dtype);
    for (const int64_t axis : {0, 1}) {
      const std::vector<int64_t> picked{axis};
      const IntArgs axes(picked);
      EXPECT_EQ(sum(x, axes, DType::Float64).to_vector<double>(),
                sum(wide, axes).to_vector<double>())
          << name_of(dtype);
      EXPECT_EQ(max(x, axes).to_vector<double>(), max(wide, axes).to_vector<double>());
      EXPECT_EQ(argmax(x, axis).to_vector<double>(), argmax(wide, axis).to_vector<double>());
      EXPECT_EQ(count_nonzero(x, axes).to_vector<double>(),
                count_nonzero(wide, axes).to_vector<double>());
    }
    EXPECT_EQ(sum(transpose(x, IntArgs{1, 0}), std::nullopt, DType::Float64).item_double(),
              sum(wide).item_double());
  }
}

TEST(CpuKernels, ScansAndScattersOfSmallTypes) {
  for (const DType dtype :
       {DType::Float8E5M2, DType::Float16, DType::BFloat16, DType::Int8, DType::Int32}) {
    const Tensor x = row({1, 2, 1, 4}, dtype);
    EXPECT_EQ(cumsum_along(x, 0).to_vector<double>(), (Numbers{1, 3, 4, 8})) << name_of(dtype);
    EXPECT_EQ(cumsum_along(x, 0, true, true).to_vector<double>(), (Numbers{7, 5, 4, 0}));
    const Tensor put =
        put_along_axis(x, row({3, 3, 0}, DType::Int32), row({1, 1, 2}, dtype), 0, "add");
    EXPECT_EQ(put.to_vector<double>(), (Numbers{3, 2, 1, 6})) << name_of(dtype);
  }
}

TEST(CpuKernels, AreCalledByWhatTheyAreAndTriedInOrder) {
  const DeviceType& cpu = *devices::find("cpu");
  const std::set<std::string> vectors{"cpu:avx512", "cpu:avx2", "cpu:simd"};
  const auto names = [&](const char* op) {
    std::vector<std::string> found;
    for (const oar_kernel* kernel : cpu.kernels(op, 1)) found.emplace_back(kernel->name);
    return found;
  };
  ASSERT_EQ(names("add").size(), 2U);
  EXPECT_TRUE(vectors.count(names("add")[0])) << names("add")[0];
  EXPECT_EQ(names("add")[1], "cpu:generic");
  EXPECT_TRUE(vectors.count(names("softmax").at(0)));
  EXPECT_EQ(names("sort_with_indices"), std::vector<std::string>{"cpu:generic"});
  EXPECT_EQ(names("matmul").back(), "cpu:generic");
}

}  // namespace
}  // namespace oar
