#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/log.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"

namespace oar {
namespace {

std::string message_of_setting(const char* name, const char* value) {
  try {
    set_flag(name, value);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Flags, AreListedWithTheirDocumentation) {
  for (const FlagInfo& info : list_flags()) {
    EXPECT_EQ(info.flag.env, "OAR_" + to_upper(info.flag.name));
    EXPECT_GT(std::string_view(info.flag.doc).size(), 20U) << info.flag.name;
    EXPECT_EQ(info.value, flag_text(info.flag.name));
  }
  EXPECT_EQ(flag<int>("gil_release_elements"), 4096);
  EXPECT_TRUE(flag<bool>("crash_handler"));
}

TEST(Flags, AreSeenThroughHandles) {
  const FlagHandle<bool> check("check_nan_inf");
  const FlagHandle<int> limit("memory_limit_mb");
  EXPECT_FALSE(check.get());
  set_flag("check_nan_inf", " True ");
  set_flag("memory_limit_mb", "12");
  EXPECT_TRUE(check.get());
  EXPECT_EQ(limit.get(), 12);
  EXPECT_EQ(flag_text("check_nan_inf"), "true");
  set_flag("check_nan_inf", "0");
  set_flag("memory_limit_mb", "0");
  EXPECT_FALSE(flag<bool>("check_nan_inf"));
}

TEST(Flags, ExplainMistakes) {
  EXPECT_EQ(message_of_setting("chek_nan_inf", "1"),
            "There is no flag \"chek_nan_inf\". Did you mean \"check_nan_inf\"?");
  EXPECT_NE(message_of_setting("zzz", "1").find("The flags are backward_memory_mb, "),
            std::string::npos);
  EXPECT_EQ(message_of_setting("deterministic", "maybe"),
            "Flag \"deterministic\" expects true or false, not \"maybe\".");
  EXPECT_EQ(message_of_setting("memory_limit_mb", "-1"),
            "Flag \"memory_limit_mb\" expects an integer from 0 to 2147483647, not \"-1\".");
  EXPECT_EQ(message_of_setting("memory_limit_mb", "12x").substr(0, 40),
            "Flag \"memory_limit_mb\" expects an intege");
  EXPECT_EQ(message_of_setting("log", "loud"),
            "Flag \"log\" expects one of debug, info, warning, error, off, not \"loud\".");
  EXPECT_THROW(flag<int>("log"), Error);
}

TEST(Flags, TraceIsAListOfWords) {
  EXPECT_FALSE(tracing(Trace::Dispatch));
  set_flag("trace", "dispatch, Capture");
  EXPECT_EQ(flag<std::string>("trace"), "dispatch,capture");
  EXPECT_TRUE(tracing(Trace::Dispatch));
  EXPECT_TRUE(tracing(Trace::Capture));
  EXPECT_FALSE(tracing(Trace::Passes));
  EXPECT_EQ(message_of_setting("trace", "dispatch,x"),
            "Flag \"trace\" expects any of dispatch, passes, capture, fusion, not \"x\".");
  EXPECT_TRUE(tracing(Trace::Dispatch));
  set_flag("trace", "");
  EXPECT_FALSE(tracing(Trace::Capture));
}

TEST(Flags, CallBackAndRollBack) {
  static int seen = -1;
  on_flag_change("gil_release_elements", [] {
    seen = flag<int>("gil_release_elements");
    if (seen == 13) {
      set_flag("deterministic", "true");
    }
  });
  on_flag_change("gil_release_elements", [] {
    if (seen == 7) {
      throw std::runtime_error("seven");
    }
  });
  set_flag("gil_release_elements", "5");
  EXPECT_EQ(seen, 5);
  EXPECT_THROW(set_flag("gil_release_elements", "7"), std::runtime_error);
  EXPECT_EQ(seen, 5);
  EXPECT_THROW(set_flag("gil_release_elements", "13"), Error);  // instead of a deadlock
  EXPECT_EQ(flag<int>("gil_release_elements"), 5);
  set_flag("gil_release_elements", "4096");
}

TEST(Flags, MayBeSetByManyThreads) {
  const auto set_often = [] {
    for (int i = 0; i < 200; ++i) {
      set_flag("trace", i % 2 == 0 ? "passes" : "capture");
      EXPECT_FALSE(flag<std::string>("trace").empty());
    }
  };
  std::thread other(set_often);
  set_often();
  other.join();
  set_flag("trace", "");
}

// The environment is read once, at load: a new process has to look.
TEST(FlagsDeathTest, StartFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  setenv("OAR_MEMORY_LIMIT_MB", "77", 1);
  setenv("FLAGS_memory_limit_mb", "78", 1);
  setenv("FLAGS_check_nan_inf", "1", 1);
  setenv("OAR_NUM_THREADS", "many", 1);
  setenv("OAR_LOG", "debug", 1);
  setenv("OAR_TRACE", "passes", 1);
  const ScopeGuard clean([] {
    for (const char* name : {"OAR_MEMORY_LIMIT_MB", "FLAGS_memory_limit_mb", "FLAGS_check_nan_inf",
                             "OAR_NUM_THREADS", "OAR_LOG", "OAR_TRACE"}) {
      unsetenv(name);
    }
  });
  EXPECT_EXIT(
      {
        const bool ok = flag<int>("memory_limit_mb") == 77 && flag<bool>("check_nan_inf") &&
                        flag<int>("num_threads") == 0 && log_enabled(LogLevel::Debug) &&
                        tracing(Trace::Passes);
        std::exit(ok ? 0 : 1);
      },
      testing::ExitedWithCode(0), "OAR_NUM_THREADS is ignored: .* expects an integer .* \"many\"");
}

std::string logged;

TEST(Log, FollowsTheFlag) {
  logged.clear();
  set_log_sink([](LogLevel level, std::string_view text) {
    logged += std::string(to_string(level)) + ":" + std::string(text) + ";";
  });
  const ScopeGuard restore([] {
    set_log_sink(nullptr);
    set_flag("log", "warning");
  });
  set_flag("log", "warning");
  log_info("hidden");
  log_warning("{} seen", 1);
  set_flag("log", "info");
  log_debug("hidden");
  log_info("seen");
  set_flag("log", "off");
  log_error("hidden");
  EXPECT_EQ(logged, "warning:1 seen;info:seen;");
}

TEST(Log, WritesLinesToStandardError) {
  testing::internal::CaptureStderr();
  log_error("a {}", "b");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[oar error] a b\n");
}

}  // namespace
}  // namespace oar
