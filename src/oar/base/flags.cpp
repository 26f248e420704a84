#include "oar/base/flags.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"

namespace oar {

namespace {

struct Row {
  Flag flag;
  std::string_view words = {};  // the values a string may have; empty: any
  bool is_list = false;         // several words, separated by commas
};

#ifdef NDEBUG
constexpr std::string_view kVerifyPasses = "false";
#else
constexpr std::string_view kVerifyPasses = "true";
#endif

// All flags. No int here has a use for a negative value, so none is accepted.
constexpr Row kTable[] = {
    {{"backward_memory_mb", FlagType::Int, "0", "OAR_BACKWARD_MEMORY_MB",
      "What a captured function may keep for its backward half, in MiB; beyond it, values that are "
      "cheap to compute are recomputed. 0: no limit."}},
    {{"cache_allocator", FlagType::Bool, "true", "OAR_CACHE_ALLOCATOR",
      "Keep freed tensor memory for reuse. Off, each tensor is allocated afresh: slower, but "
      "memory "
      "checkers see every mistake."}},
    {{"check_collectives", FlagType::Bool, "false", "OAR_CHECK_COLLECTIVES",
      "Before each collective call, compare the calls of all processes, and raise an error that shows them if "
      "they differ in kind, shape or dtype. Off, only the first 100 calls of a group are compared."}},
    {{"check_nan_inf", FlagType::Bool, "false", "OAR_CHECK_NAN_INF",
      "After each op, raise an error that names it if its result holds a NaN or an infinity."}},
    {{"cpu_isa", FlagType::String, "auto", "OAR_CPU_ISA",
      "The newest instruction set that CPU kernels may use; auto: the newest available. Read at first "
      "use."},
     "auto,avx2,avx512,amx"},
    {{"crash_handler", FlagType::Bool, "true", "OAR_CRASH_HANDLER",
      "On a fatal signal, print the op, the Python line and the native stack. Read at start; "
      "turning it off later silences the report."}},
    {{"deterministic", FlagType::Bool, "false", "OAR_DETERMINISTIC",
      "Use only kernels that return the same bits on any number of threads, even if they are slower: none "
      "of oneDNN's."}},
    {{"fusion", FlagType::Bool, "false", "OAR_FUSION",
      "Fuse calls of programs into native code, if the code generator is there."}},
    {{"fusion_runs", FlagType::Int, "5000", "OAR_FUSION_RUNS",
      "Fuse calls if as many runs save the time to compile them. Compiled code is kept on disk, so the runs of "
      "later processes count, too. 0: fuse whatever can be."}},
    {{"gil_release_elements", FlagType::Int, "4096", "OAR_GIL_RELEASE_ELEMENTS",
      "Release Python's global lock during ops on at least this many elements. Below it, letting "
      "go "
      "of the lock costs more than other threads gain."}},
    {{"kernel_cache_mb", FlagType::Int, "256", "OAR_KERNEL_CACHE_MB",
      "Keep generated code in this many MiB on disk (OAR_CACHE_DIR, else ~/.cache/oar), for later processes. 0: "
      "keep none. Read at first use."}},
    {{"lapack", FlagType::String, "libopenblas.so.0", "OAR_LAPACK",
      "The library with LAPACK, a name or a path, for the factors of matrices of more than 8 rows. Read "
      "at first use."}},
    {{"log", FlagType::String, "warning", "OAR_LOG",
      "The least severe messages to print: debug, info, warning, error or off."},
     "debug,info,warning,error,off"},
    {{"memory_limit_mb", FlagType::Int, "0", "OAR_MEMORY_LIMIT_MB",
      "Fail with an out-of-memory error when tensors would use more than this many MiB. 0: no "
      "limit."}},
    {{"num_threads", FlagType::Int, "0", "OAR_NUM_THREADS",
      "Threads that work on one op. 0: OMP_NUM_THREADS if set, else the processors this process "
      "may "
      "use."}},
    {{"onednn", FlagType::Bool, "true", "OAR_ONEDNN",
      "Use oneDNN where it is faster than our own kernels. If off, it is not even loaded."}},
    {{"parallel_branches", FlagType::Bool, "true", "OAR_PARALLEL_BRANCHES",
      "Run independent chains of small kernels of a program at the same time, one thread each."}},
    {{"passes_off", FlagType::String, "", "OAR_PASSES_OFF",
      "Compiler passes to disable, by name, separated by commas; all: every one of them."}},
    {{"profile_events", FlagType::Int, "1000000", "OAR_PROFILE_EVENTS",
      "The most events that a profile keeps, of about 80 bytes each; later ones are counted only."}},
    {{"shrink_jpeg", FlagType::Bool, "false", "OAR_SHRINK_JPEG",
      "Decode JPEG files of data sets to a half, a quarter or an eighth of their size first, where a transform "
      "makes them at least twice as small as that. Much faster for large photographs; pixels differ a little."}},
    {{"trace", FlagType::String, "", "OAR_TRACE",
      "What to trace to standard error, separated by commas: dispatch (the kernels chosen, and why "
      "others declined), passes (the program after each compiler pass), capture, fusion (what the "
      "compiler fused, and why other calls stayed)."},
     "dispatch,passes,capture,fusion",
     true},
    {{"verify_passes", FlagType::Bool, kVerifyPasses, "OAR_VERIFY_PASSES",
      "Verify a program after each compiler pass that changed it. On by default in builds with "
      "assertions."}},
};

struct Slot {
  const Row* row = nullptr;
  std::atomic<std::uint64_t> bits{0};  // the value, unless a string
  std::string text;                    // the value in its normal form; guarded by text_mutex
  std::vector<std::function<void()>> callbacks;
};

struct Value {
  std::uint64_t bits = 0;
  std::string text;
};

thread_local bool setting_a_flag = false;

class FlagTable {
 public:
  // Never destroyed: flags are read until the process is gone.
  static FlagTable& instance() {
    static FlagTable* const table = new FlagTable;
    return *table;
  }

  Slot& find(std::string_view name) {
    for (Slot& slot : slots_) {
      if (slot.row->flag.name == name) {
        return slot;
      }
    }
    std::vector<std::string_view> names;
    for (const Slot& slot : slots_) {
      names.push_back(slot.row->flag.name);
    }
    const std::string near = nearest_name(name, names);
    fail(ErrorKind::NotFound, "There is no flag \"{}\".\nhint: {}", name,
         near.empty() ? "The flags are " + join(names, ", ") + "."
                      : "Did you mean \"" + near + "\"?");
  }

  Slot& find(std::string_view name, FlagType type) {
    Slot& slot = find(name);
    const FlagType actual = slot.row->flag.type;
    internal_check(actual == type, "Flag \"{}\" is a {}, but was read as a {}.", name, actual,
                   type);
    return slot;
  }

  void set(std::string_view name, std::string_view text);
  void add_callback(std::string_view name, std::function<void()> callback);
  std::string text(const Slot& slot) {
    const std::lock_guard lock(text_mutex_);
    return slot.text;
  }
  void lock_for_fork() {
    if (!setting_a_flag) {  // else this thread holds it already
      set_mutex_.lock();
    }
    text_mutex_.lock();
  }
  void unlock_after_fork() {
    text_mutex_.unlock();
    if (!setting_a_flag) {
      set_mutex_.unlock();
    }
  }

  const Slot* begin() const { return std::begin(slots_); }
  const Slot* end() const { return std::end(slots_); }

 private:
  FlagTable();
  void store(Slot& slot, const Value& value);

  Slot slots_[std::size(kTable)];
  std::mutex set_mutex_;   // one setter at a time, callbacks included, so that the last one wins
  std::mutex text_mutex_;  // taken inside set_mutex_
};

[[noreturn]] void fail_value(const Flag& flag, std::string_view text, std::string_view expected) {
  fail(ErrorKind::InvalidArgument, "Flag \"{}\" expects {}, not \"{}\".", flag.name, expected,
       text);
}

bool parse_bool(const Flag& flag, std::string_view text) {
  const std::string word = to_lower(text);
  if (word == "1" || word == "true" || word == "on" || word == "yes") {
    return true;
  }
  if (word == "0" || word == "false" || word == "off" || word == "no") {
    return false;
  }
  fail_value(flag, text, "true or false");
}

template <class T>
bool parse_number(std::string_view text, T& out) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && rest == text.data() + text.size();
}

std::string parse_words(const Row& row, std::string_view text) {
  const std::vector<std::string_view> allowed = split(row.words, ',');
  std::vector<std::string> words;
  for (const std::string_view part : split(text, row.is_list ? ',' : '\0')) {
    std::string word = to_lower(trim(part));
    if (word.empty() && row.is_list) {
      continue;
    }
    if (std::find(allowed.begin(), allowed.end(), word) == allowed.end()) {
      fail_value(row.flag, word, (row.is_list ? "any of " : "one of ") + join(allowed, ", "));
    }
    words.push_back(std::move(word));
  }
  return join(words, ",");
}

Value parse(const Row& row, std::string_view text) {
  text = trim(text);
  Value value;
  switch (row.flag.type) {
    case FlagType::Bool: {
      const bool on = parse_bool(row.flag, text);
      value = {on ? 1U : 0U, on ? "true" : "false"};
      break;
    }
    case FlagType::Int: {
      int number = 0;
      if (!parse_number(text, number) || number < 0) {
        fail_value(row.flag, text,
                   oar::format("an integer from 0 to {}", std::numeric_limits<int>::max()));
      }
      value = {static_cast<std::uint64_t>(number), std::to_string(number)};
      break;
    }
    case FlagType::Double: {
      double number = 0;
      if (!parse_number(text, number)) {
        fail_value(row.flag, text, "a number");
      }
      value = {std::bit_cast<std::uint64_t>(number), oar::format("{}", number)};
      break;
    }
    case FlagType::String:
      value.text = row.words.empty() ? std::string(text) : parse_words(row, text);
      break;
  }
  return value;
}

unsigned to_trace_bits(std::string_view words) {
  unsigned bits = 0;
  for (const std::string_view word : split(words, ',')) {
    bits |= word == "dispatch"  ? static_cast<unsigned>(Trace::Dispatch)
            : word == "passes"  ? static_cast<unsigned>(Trace::Passes)
            : word == "capture" ? static_cast<unsigned>(Trace::Capture)
            : word == "fusion"  ? static_cast<unsigned>(Trace::Fusion)
                                : 0U;
  }
  return bits;
}

FlagTable::FlagTable() {
  for (std::size_t i = 0; i < std::size(kTable); ++i) {
    const Row& row = kTable[i];
    slots_[i].row = &row;
    store(slots_[i], parse(row, row.flag.default_value));
    const std::string names[] = {std::string(row.flag.env), "FLAGS_" + std::string(row.flag.name)};
    for (const std::string& name : names) {
      const char* text = std::getenv(name.c_str());
      if (text == nullptr) {
        continue;
      }
      try {
        store(slots_[i], parse(row, text));
      } catch (const Error& error) {
        // Loading must not fail over a typo. Not through the log, which needs the flags first.
        std::fprintf(stderr, "[oar warning] %s is ignored: %s\n", name.c_str(), error.what());
      }
      break;
    }
  }
  // A fork while another thread sets a flag must not leave the child with locked mutexes.
  add_fork_step({[] { instance().lock_for_fork(); }, [] { instance().unlock_after_fork(); },
                 [] { instance().unlock_after_fork(); }});
}

void FlagTable::store(Slot& slot, const Value& value) {
  slot.bits.store(value.bits, std::memory_order_relaxed);
  if (slot.row->flag.name == "trace") {
    detail::trace_bits.store(to_trace_bits(value.text), std::memory_order_relaxed);
  }
  const std::lock_guard lock(text_mutex_);
  slot.text = value.text;
}

void FlagTable::set(std::string_view name, std::string_view text) {
  Slot& slot = find(name);
  const Value value = parse(*slot.row, text);
  internal_check(!setting_a_flag, "A callback of a flag may not set a flag (\"{}\").", name);
  const std::lock_guard lock(set_mutex_);
  setting_a_flag = true;
  const ScopeGuard done([] { setting_a_flag = false; });
  const Value old{slot.bits.load(std::memory_order_relaxed), slot.text};
  store(slot, value);
  std::size_t called = 0;
  try {
    for (; called < slot.callbacks.size(); ++called) {
      slot.callbacks[called]();
    }
  } catch (...) {
    store(slot, old);
    for (std::size_t i = 0; i < called;
         ++i) {  // those that saw the new value get the old one again
      slot.callbacks[i]();
    }
    throw;
  }
}

void FlagTable::add_callback(std::string_view name, std::function<void()> callback) {
  Slot& slot = find(name);
  const std::lock_guard lock(set_mutex_);
  slot.callbacks.push_back(std::move(callback));
}

// So that the environment acts, on "trace" above all, without anyone asking for a flag first.
[[maybe_unused]] const FlagTable& loaded = FlagTable::instance();

}  // namespace

namespace detail {

constinit std::atomic<unsigned> trace_bits{0};

const std::atomic<std::uint64_t>& flag_bits(std::string_view name, FlagType type) {
  return FlagTable::instance().find(name, type).bits;
}

}  // namespace detail

std::string_view to_string(FlagType type) {
  switch (type) {
    case FlagType::Bool:
      return "bool";
    case FlagType::Int:
      return "int";
    case FlagType::Double:
      return "double";
    case FlagType::String:
      return "string";
  }
  return "unknown";
}

template <>
bool flag<bool>(std::string_view name) {
  return FlagHandle<bool>(name).get();
}
template <>
int flag<int>(std::string_view name) {
  return FlagHandle<int>(name).get();
}
template <>
double flag<double>(std::string_view name) {
  return FlagHandle<double>(name).get();
}
template <>
std::string flag<std::string>(std::string_view name) {
  FlagTable& table = FlagTable::instance();
  return table.text(table.find(name, FlagType::String));
}

void set_flag(std::string_view name, std::string_view value) {
  FlagTable::instance().set(name, value);
}

std::string flag_text(std::string_view name) {
  FlagTable& table = FlagTable::instance();
  return table.text(table.find(name));
}

std::vector<FlagInfo> list_flags() {
  FlagTable& table = FlagTable::instance();
  std::vector<FlagInfo> flags;
  for (const Slot& slot : table) {
    flags.push_back({slot.row->flag, table.text(slot)});
  }
  return flags;
}

void on_flag_change(std::string_view name, std::function<void()> callback) {
  FlagTable::instance().add_callback(name, std::move(callback));
}

}  // namespace oar
