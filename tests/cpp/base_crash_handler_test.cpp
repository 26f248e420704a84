#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "oar/base/crash_handler.h"
#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/host_language.h"

namespace oar {
namespace {

void say(int fd, const char* text) {
  [[maybe_unused]] const auto written = write(fd, text, std::strlen(text));
}

void die(int signal) {
  say(STDERR_FILENO, signal == SIGSEGV ? "previous handler\n" : "later handler\n");
  _exit(7);
}

// The compiler must not see that this is null.
int* volatile nowhere = nullptr;

// A real fault, which the sanitizers are not to catch before it happens.
__attribute__((no_sanitize("address", "thread", "undefined"), noinline)) void fault() {
  *nowhere = 1;
}

int overflow(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  room[4095] = room[0];
  return (depth < 0 ? 0 : overflow(depth + 1)) + room[4095];
}

class CrashHandlerDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    remove_crash_handler();  // loading the library installed it
    // The sanitizers put their own handlers in place, which would end the process their way.
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
      std::signal(signal, SIG_DFL);
    }
  }
};

TEST_F(CrashHandlerDeathTest, ReportsAFault) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        const HostLanguage language = {.print_lines = [](int fd) { say(fd, "  train.py:12\n"); }};
        install_host_language(&language);
        const OpScope scope("conv2d");
        fault();
      },
      testing::KilledBySignal(SIGSEGV),
      "Fatal signal 11 \\(SIGSEGV, invalid memory access\\) at address 0x0\n.*Op: conv2d\n"
      ".*Python:\n  train.py:12\n.*Native stack:\n.+");
}

TEST_F(CrashHandlerDeathTest, ReportsSignalsThatAreSent) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    EXPECT_EXIT(
        {
          install_crash_handler();
          raise(signal);
        },
        testing::KilledBySignal(signal), "Fatal signal .*\n.*Op: none\n.*Native stack:\n");
  }
  EXPECT_EXIT(
      {
        install_crash_handler();
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "SIGABRT, abort\\)\n");
}

TEST_F(CrashHandlerDeathTest, ReportsAStackOverflow) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        overflow(0);
      },
      testing::KilledBySignal(SIGSEGV), "SIGSEGV.*\n.*\n.*Native stack:\n");
  EXPECT_EXIT(
      {
        install_crash_handler();
        std::thread([] {
          use_crash_stack();
          overflow(0);
        }).join();
      },
      testing::KilledBySignal(SIGSEGV), "SIGSEGV.*\n.*\n.*Native stack:\n");
}

TEST_F(CrashHandlerDeathTest, SurvivesACrashInThePythonHook) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer blocks all signals inside a handler";
#endif
  EXPECT_EXIT(
      {
        install_crash_handler();
        const HostLanguage language = {.print_lines = [](int) { fault(); }};
        install_host_language(&language);
        std::abort();
      },
      testing::KilledBySignal(SIGSEGV), "SIGABRT.*\n.*Op: none\n.*Python:\n.*Native stack:\n");
}

TEST_F(CrashHandlerDeathTest, PassesOnToThePreviousHandler) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, die);
        install_crash_handler();
        fault();
      },
      testing::ExitedWithCode(7), "Native stack:(.|\n)*previous handler");
}

TEST_F(CrashHandlerDeathTest, LeavesLaterHandlersAlone) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        std::signal(SIGFPE, die);
        install_crash_handler();
        raise(SIGFPE);
      },
      testing::ExitedWithCode(7), "^later handler\n$");
}

// A handler that was installed after ours and calls the one it replaced.
struct sigaction replaced = {};
void chaining(int signal, siginfo_t* info, void* context) {
  replaced.sa_sigaction(signal, info, context);
  say(STDERR_FILENO, "chaining handler\n");
  _exit(8);
}

TEST_F(CrashHandlerDeathTest, WorksWhenALaterHandlerCallsIt) {
  EXPECT_EXIT(
      {
        std::signal(SIGSEGV, [](int) { say(STDERR_FILENO, "first handler\n"); });
        install_crash_handler();
        struct sigaction action = {};
        action.sa_sigaction = chaining;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigaction(SIGSEGV, &action, &replaced);
        fault();
      },
      testing::ExitedWithCode(8), "Native stack:(.|\n)*first handler\nchaining handler");
}

TEST_F(CrashHandlerDeathTest, IsSilentWhenTurnedOff) {
  EXPECT_EXIT(
      {
        install_crash_handler();
        set_flag("crash_handler", "false");
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "^$");
}

}  // namespace
}  // namespace oar
