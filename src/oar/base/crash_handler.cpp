#include "oar/base/crash_handler.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iterator>
#include <mutex>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/host_language.h"
#include "oar/base/thread_pool.h"

namespace oar {

namespace {

struct Watched {
  int signal;
  const char* name;
  const char* meaning;
  bool installed = false;
  struct sigaction previous = {};
};

// Written when installing only; the handler reads it.
Watched watched[] = {
    {SIGSEGV, "SIGSEGV", "invalid memory access"},
    {SIGBUS, "SIGBUS", "invalid memory access"},
    {SIGFPE, "SIGFPE", "invalid arithmetic"},
    {SIGILL, "SIGILL", "invalid instruction"},
    {SIGABRT, "SIGABRT", "abort"},
};

// Incremented as each begins; beyond kDone once all are over.
enum Stage : int { kHeadline, kPython, kStack, kDone };

constinit std::atomic<const FlagHandle<bool>*> enabled{nullptr};
constinit std::atomic<pid_t> reporter{0};
constinit std::atomic<int> stage{kHeadline};

constexpr int kOut = STDERR_FILENO;

// What follows runs inside the signal handler: no allocation, no locks, no stdio.

void put(const char* text) {
  [[maybe_unused]] const auto written = ::write(kOut, text, std::strlen(text));
}

void put_number(std::uintptr_t number, unsigned base) {
  char digits[24];
  char* at = std::end(digits);
  *--at = '\0';
  do {
    *--at = "0123456789abcdef"[number % base];
    number /= base;
  } while (number != 0);
  put(at);
}

Watched* find(int signal) {
  for (Watched& entry : watched) {
    if (entry.signal == signal) {
      return &entry;
    }
  }
  return nullptr;
}

void print_headline(const Watched& entry, const siginfo_t* info) {
  put("\n[oar] Fatal signal ");
  put_number(static_cast<std::uintptr_t>(entry.signal), 10);
  put(" (");
  put(entry.name);
  put(", ");
  put(entry.meaning);
  put(")");
  if (info != nullptr && info->si_code > 0) {
    put(" at address 0x");
    put_number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16);
  }
  put("\n[oar] Op: ");
  put(current_op() == nullptr ? "none" : current_op());
  put("\n");
}

void print_python() {
  if (auto* print = host_language().print_lines) {
    put("[oar] Python:\n");
    print(kOut);
  }
}

void print_stack() {
  put("[oar] Native stack:\n");
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, static_cast<int>(std::size(frames))), kOut);
}

void handle(int signal, siginfo_t* info, void* context);

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle;
}

// Passes the signal to the previous handler.
void pass_on(Watched& entry, siginfo_t* info, void* context) {
  const struct sigaction& previous = entry.previous;
  struct sigaction current = {};
  sigaction(entry.signal, nullptr, &current);
  if (is_ours(current)) {
    sigaction(entry.signal, &previous, nullptr);
    // On return the instruction runs again, and a fault repeats with its own details. A signal that
    // was sent does not.
    if (info == nullptr || info->si_code <= 0) {
      raise(entry.signal);
    }
    return;
  }
  // Another handler was installed after ours and called us: it stays, and decides what follows.
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(entry.signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(entry.signal);
  }
}

void wait_for_other_report() {
  for (int i = 0; i < 100 && stage.load() <= kDone; ++i) {
    const timespec pause = {0, 50'000'000};
    nanosleep(&pause, nullptr);
  }
}

void handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  Watched* entry = find(signal);
  if (entry == nullptr) {
    return;
  }
  const FlagHandle<bool>* wanted = enabled.load(std::memory_order_acquire);
  if (wanted != nullptr && wanted->get()) {
    const pid_t self = gettid();
    pid_t owner = 0;
    if (reporter.compare_exchange_strong(owner, self) || owner == self) {
      // A fault within a stage (above all the Python hook) comes back here and continues with the
      // next one.
      for (int next = stage.fetch_add(1); next < kDone; next = stage.fetch_add(1)) {
        switch (next) {
          case kHeadline:
            print_headline(*entry, info);
            break;
          case kPython:
            print_python();
            break;
          default:
            print_stack();
            break;
        }
      }
    } else {
      wait_for_other_report();
    }
  }
  errno = saved_errno;
  pass_on(*entry, info, context);
}

// The calling thread's signal stack, freed when the thread ends.
class CrashStack {
 public:
  CrashStack() {
    stack_t existing = {};
    if (sigaltstack(nullptr, &existing) != 0 || (existing.ss_flags & SS_DISABLE) == 0) {
      return;  // the thread has one already
    }
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto frame = static_cast<std::size_t>(std::max(0L, sysconf(_SC_MINSIGSTKSZ)));
    constexpr std::size_t kForReport = 128 << 10;  // unwinding and the Python hook
    size_ = (kForReport + frame + 2 * page - 1) / page * page;
    base_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base_ == MAP_FAILED) {
      base_ = nullptr;
      return;
    }
    mprotect(base_, page, PROT_NONE);  // stacks grow down: an overflow of this one must fault
    stack_t stack = {};
    stack.ss_sp = static_cast<char*>(base_) + page;
    stack.ss_size = size_ - page;
    sigaltstack(&stack, nullptr);
    top_ = stack.ss_sp;
  }

  ~CrashStack() {
    if (base_ == nullptr) {
      return;
    }
    stack_t current = {};
    if (sigaltstack(nullptr, &current) == 0 && current.ss_sp == top_) {
      stack_t none = {};
      none.ss_flags = SS_DISABLE;
      sigaltstack(&none, nullptr);
    }
    munmap(base_, size_);
  }
  CrashStack(const CrashStack&) = delete;
  CrashStack& operator=(const CrashStack&) = delete;

 private:
  void* base_ = nullptr;
  void* top_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

void use_crash_stack() {
  static thread_local CrashStack stack;
  static_cast<void>(stack);
}

void install_crash_handler() {
  static auto& mutex = *new ForkMutex;
  const std::lock_guard lock(mutex);
  static const FlagHandle<bool> handle_of_flag("crash_handler");
  enabled.store(&handle_of_flag, std::memory_order_release);
  if (!handle_of_flag.get()) {
    return;
  }
  // The first backtrace loads a library, which must not happen inside the handler.
  void* frame = nullptr;
  backtrace(&frame, 1);
  use_crash_stack();
  detail::on_worker_start.store(use_crash_stack, std::memory_order_release);
  for (Watched& entry : watched) {
    if (entry.installed) {
      continue;  // ours is installed, or another one that came later
    }
    struct sigaction action = {};
    action.sa_sigaction = handle;
    // NODEFER: a fault while reporting must come to us too, instead of killing at once.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    // Read separately, since the handler may need it as soon as it is installed.
    entry.installed = sigaction(entry.signal, nullptr, &entry.previous) == 0 &&
                      sigaction(entry.signal, &action, nullptr) == 0;
  }
}

void remove_crash_handler() {
  for (Watched& entry : watched) {
    struct sigaction now = {};
    if (entry.installed && sigaction(entry.signal, nullptr, &now) == 0 &&
        now.sa_sigaction == handle) {
      sigaction(entry.signal, &entry.previous, nullptr);
    }
    entry.installed = false;
  }
}

}  // namespace oar
