#include "survey.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace fuzz {
namespace {

constexpr size_t kTextBytes = 1 << 16;
constexpr size_t kHeadings = 16;

// Seen by the child, which writes it, and the parent, which reads it after the child's death.
struct Board {
  std::atomic<uint64_t> number;  // of the current case
  std::atomic<uint64_t> complaints;
  char text[kTextBytes];
  char headings[kHeadings][32];
  std::atomic<uint64_t> counts[kHeadings];
};
Board* g_board = nullptr;

struct Options {
  uint64_t count = 20000;
  uint64_t seed = 1;
  double seconds = 0;  // 0: until all cases are done
  double limit = 60;   // for one case
  uint64_t first = 0;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void usage(const char* program, const char* about, int status) {
  std::printf(
      "%s\n\n"
      "  %s [count] [seed] [options]\n\n"
      "  --count N     the number of cases (20000)\n"
      "  --seed N      another seed gives other cases (1)\n"
      "  --seconds S   stop after S seconds, even if there are cases left\n"
      "  --limit S     a case that takes longer hangs (60)\n"
      "  --first N     start with case N\n"
      "  --only N      case N alone, in this process: for a debugger\n",
      about, program);
  std::exit(status);
}

Options read_options(int argc, char** argv, const char* about, bool& alone) {
  Options options;
  int position = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--help" || word == "-h") usage(argv[0], about, 0);
    if (!word.starts_with("--")) {
      (position++ == 0 ? options.count : options.seed) = std::strtoull(argv[i], nullptr, 10);
      continue;
    }
    if (++i == argc) usage(argv[0], about, 2);
    const uint64_t number = std::strtoull(argv[i], nullptr, 10);
    if (word == "--count") {
      options.count = number;
    } else if (word == "--seed") {
      options.seed = number;
    } else if (word == "--seconds") {
      options.seconds = std::atof(argv[i]);
    } else if (word == "--limit") {
      options.limit = std::atof(argv[i]);
    } else if (word == "--first") {
      options.first = number;
    } else if (word == "--only") {
      options.first = number;
      options.count = 1;
      alone = true;
    } else {
      usage(argv[0], about, 2);
    }
  }
  return options;
}

void complain(uint64_t number, const std::string& what) {
  g_board->complaints.fetch_add(1);
  std::printf("case %llu: %s\n  %s\n", static_cast<unsigned long long>(number), what.c_str(),
              g_board->text);
  std::fflush(stdout);
}

// In the child. Ends without running destructors: what a case leaves does not matter.
[[noreturn]] void run_from(uint64_t first, uint64_t behind, const Options& options,
                           const Case& run) {
  for (uint64_t i = first; i < behind; ++i) {
    g_board->text[0] = '\0';
    g_board->number.store(i);
    const std::string problem = run(options.seed, i);
    if (!problem.empty()) complain(i, problem);
  }
  g_board->number.store(behind);
  std::fflush(nullptr);
  _exit(0);
}

// Waits for the child. Empty where it ended by itself, else what happened to it.
std::string watch(pid_t child, const Options& options, double end) {
  uint64_t seen = UINT64_MAX;
  double since = now();
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status)) return std::string("dies: ") + strsignal(WTERMSIG(status));
      return WEXITSTATUS(status) == 0 ? "" : "ends the process; see the report above";
    }
    const double time = now();
    if (const uint64_t number = g_board->number.load(); number != seen) {
      seen = number;
      since = time;
    }
    const bool hangs = time - since > options.limit, late = time > end;
    if (hangs || late) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return hangs ? "hangs" : "";
    }
    usleep(20000);
  }
}

}  // namespace

void describe(const std::string& text) {
  const size_t length = std::min(text.size(), kTextBytes - 1);
  std::memcpy(g_board->text, text.data(), length);
  g_board->text[length] = '\0';
}

void count(const char* what) {
  for (size_t i = 0; i < kHeadings; ++i) {
    if (g_board->headings[i][0] == '\0') std::strncpy(g_board->headings[i], what, 31);
    if (std::strcmp(g_board->headings[i], what) != 0) continue;
    g_board->counts[i].fetch_add(1);
    return;
  }
}

int survey(int argc, char** argv, const char* about, const Case& run) {
  bool alone = false;
  const Options options = read_options(argc, argv, about, alone);
  g_board = static_cast<Board*>(
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (g_board == MAP_FAILED) return 2;
  if (alone) {
    const std::string problem = run(options.seed, options.first);
    std::printf("%s\n%s\n", g_board->text, problem.empty() ? "no complaint" : problem.c_str());
    return problem.empty() ? 0 : 1;
  }
  const double end = options.seconds > 0 ? now() + options.seconds : 1e300;
  const uint64_t behind = options.first + options.count;
  uint64_t next = options.first;
  while (next < behind && now() < end) {
    std::fflush(nullptr);
    g_board->number.store(next);
    const pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) run_from(next, behind, options, run);
    const std::string fate = watch(child, options, end);
    next = g_board->number.load();
    if (fate.empty()) break;
    complain(next++, fate);
  }
  next = std::max(next, g_board->number.load());
  std::printf("%llu cases, %llu complaints (seed %llu)",
              static_cast<unsigned long long>(next - options.first),
              static_cast<unsigned long long>(g_board->complaints.load()),
              static_cast<unsigned long long>(options.seed));
  for (size_t i = 0; i < kHeadings && g_board->headings[i][0] != '\0'; ++i)
    std::printf("%s %llu %s", i == 0 ? ":" : ",",
                static_cast<unsigned long long>(g_board->counts[i].load()), g_board->headings[i]);
  std::printf("\n");
  return g_board->complaints.load() == 0 ? 0 : 1;
}

}  // namespace fuzz
