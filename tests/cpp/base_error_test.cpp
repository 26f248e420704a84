#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>

#include "oar/base/error.h"

namespace oar {
namespace {

enum class Plain : std::uint8_t { A = 3 };
enum Unscoped { kSeven = 7 };

struct Named {
  int value;
};
std::string to_string(const Named& named) { return "named " + std::to_string(named.value); }

template <class F>
Error catch_error(F body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::Internal, "nothing was thrown");
}

TEST(Format, TakesAllKindsOfArguments) {
  const std::string text = "s";
  EXPECT_EQ(oar::format("{} {} {} {}", 1, 2.5, text, std::string_view("v")), "1 2.5 s v");
  EXPECT_EQ(oar::format("{:>4} {:.2f} {:#x}", 7, 1.0 / 3, 255), "   7 0.33 0xff");
  EXPECT_EQ(oar::format("{} {}", std::int64_t{-1}, true), "-1 true");
  EXPECT_EQ(oar::format("{} {}", Plain::A, kSeven), "3 7");
  EXPECT_EQ(oar::format("{} {}", ErrorKind::NotFound, Named{4}), "NotFound named 4");
}

TEST(Format, NeverThrows) {
  const char* nothing = nullptr;
  EXPECT_EQ(oar::format("a {}", nothing).substr(0, 4), "a {}");
}

TEST(Error, SaysOpTextAndHint) {
  const OpScope scope("conv2d");
  const Error error = catch_error(
      [] { user_check(1 > 2, ErrorKind::InvalidArgument, "axis is {}.\nhint: Pass {}.", 5, 1); });
  EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
  EXPECT_EQ(error.op(), "conv2d");
  EXPECT_EQ(error.text(), "axis is 5.");
  EXPECT_EQ(error.hint(), "Pass 1.");
  EXPECT_STREQ(error.what(), "[conv2d] axis is 5. Pass 1.");
}

TEST(Error, LeavesOutWhatIsEmpty) {
  EXPECT_STREQ(Error(ErrorKind::Runtime, "text").what(), "text");
  EXPECT_STREQ(Error(ErrorKind::Runtime, "text", "hint").what(), "text hint");
  EXPECT_STREQ(Error(ErrorKind::Runtime, "text").with_op("add").what(), "[add] text");
}

TEST(Error, OnlyTheLastHintMarkCounts) {
  const Error error = catch_error(
      [] { fail(ErrorKind::Runtime, "got {}\nhint: help", std::string("a\nhint: b")); });
  EXPECT_EQ(error.text(), "got a\nhint: b");
  EXPECT_EQ(error.hint(), "help");
}

TEST(Error, InternalAsksForAReport) {
  const Error error = catch_error([] { internal_check(false, "rank {}", 3); });
  EXPECT_EQ(error.kind(), ErrorKind::Internal);
  EXPECT_STREQ(error.what(), "rank 3 This is a bug in Oar; please report it.");
}

TEST(Error, ChecksThatHoldDoNothing) {
  const char* nothing = nullptr;
  user_check(true, ErrorKind::Runtime, "{}", nothing);
  internal_check(true, "{}", nothing);
}

TEST(OpScope, NestsAndIsPerThread) {
  EXPECT_EQ(current_op(), nullptr);
  {
    const OpScope outer("outer");
    {
      const OpScope inner("inner");
      EXPECT_STREQ(current_op(), "inner");
      std::thread([] { EXPECT_EQ(current_op(), nullptr); }).join();
    }
    EXPECT_STREQ(current_op(), "outer");
  }
  EXPECT_EQ(current_op(), nullptr);
}

}  // namespace
}  // namespace oar
