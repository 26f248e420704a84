// What a slice says of symbolic sizes.
#include <gtest/gtest.h>

#include "oar/base/error.h"
#include "oar/ops/core/view.h"

namespace oar {
namespace {

std::string sliced(const SliceIndex& index, Dim size) {
  return sliced_shape(Shape{size, 4}, {index.data(), index.size()}).str();
}

TEST(Slice, IsExactWhereAnEndIsOpen) {
  const Dim n = Dim::symbol("n", 6);
  EXPECT_EQ(sliced(SliceIndex().all(), n), "[n, 4]");
  EXPECT_EQ(sliced(SliceIndex().reversed(), n), "[n, 4]");
  EXPECT_EQ(sliced(SliceIndex().range(1, kOpenHigh), n), Shape({n - 1, 4}).str());
  EXPECT_EQ(sliced(SliceIndex().range(0, -1), n), Shape({n - 1, 4}).str());
  EXPECT_EQ(sliced(SliceIndex().range(1, -1), n), Shape({n - 2, 4}).str());
  EXPECT_EQ(sliced(SliceIndex().range(-2, kOpenHigh), n), "[2, 4]");
  EXPECT_EQ(sliced(SliceIndex().range(0, kOpenHigh, 2), n), Shape({ceil_div(n, 2), 4}).str());
}

TEST(Slice, ClampsToSizesThatAreNotKnown) {
  const Dim n = Dim::symbol("n", 6), m = Dim::symbol("m", 4);
  EXPECT_EQ(sliced(SliceIndex().range(0, 5), n), Shape({min_of(5, n), 4}).str());
  EXPECT_EQ(sliced(SliceIndex().range(0, m), n), "[m, 4]");
  EXPECT_EQ(sliced(SliceIndex().range(m, kOpenHigh), n), Shape({n - m, 4}).str());
  // Longer than the hint: right for any size, with nothing assumed.
  const std::pair<Dim, int64_t> short_one[] = {{n, 6}}, long_one[] = {{n, 20}};
  const Dim left = sliced_shape(Shape{n}, SliceIndex().range(9, kOpenHigh))[0];
  EXPECT_EQ(left.evaluate(short_one), 0);
  EXPECT_EQ(left.evaluate(long_one), 11);
}

TEST(Slice, RecordsWhatItTakesForGranted) {
  const Dim n = Dim::symbol("n", 6);
  const DimAssumptions learnt;
  sliced(SliceIndex().all(), n);
  EXPECT_TRUE(learnt.learnt().empty());
  sliced(SliceIndex().range(1, kOpenHigh), n);
  ASSERT_FALSE(learnt.learnt().empty());
  EXPECT_EQ(learnt.learnt()[0].kind, DimAssumption::NotLess);
}

TEST(Slice, IntegersDropTheirAxis) {
  const Dim n = Dim::symbol("n", 6);
  EXPECT_EQ(sliced(SliceIndex().at(0), n), "[4]");
  EXPECT_EQ(sliced(SliceIndex().fresh().at(-1).rest(), n), "[1, 4]");
  EXPECT_EQ(sliced(SliceIndex().at(99), n), "[4]");  // only a known size can be out of range
  try {
    sliced(SliceIndex().at(9), 6);
    FAIL() << "index 9 of 6 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::OutOfRange);
    EXPECT_EQ(error.text(), "index 9 is out of range for axis 0 of size 6.");
  }
}

TEST(Slice, RefusesWhatIsNoIndex) {
  EXPECT_THROW(sliced(SliceIndex().range(0, 3, 0), 6), Error);
  EXPECT_THROW(sliced(SliceIndex().rest().rest(), 6), Error);
  EXPECT_THROW(sliced(SliceIndex().all().all().all(), 6), Error);
}

}  // namespace
}  // namespace oar
