#include "oar/compiler/fusion/code.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <unordered_map>
#include <utility>

#include "oar/backend/cpu/instruction_set.h"
#include "oar/base/file.h"
#include "oar/base/flags.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/log.h"
#include "oar/compiler/codegen/codegen.h"
#include "oar/compiler/fusion/kernel_cache.h"

namespace oar::fusion {
namespace {

constexpr char kLibrary[] = "liboar_codegen.so";  // beside this library

struct Loaded {
  const codegen::Generator* generator = nullptr;
  std::string missing;
};

std::atomic<bool> known_missing{false};

const Loaded& loaded() {
  static const Loaded& one = *new Loaded([] {
    Loaded made;
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    const auto get =
        library ? reinterpret_cast<codegen::GetGenerator>(dlsym(library, codegen::kGetGenerator))
                : nullptr;
    if (get) {
      made.generator = &get();
    } else {
      const char* const text = dlerror();
      known_missing = true;
      made.missing = format("the code generator cannot be loaded: {}", text ? text : kLibrary);
    }
    return made;
  }());
  return one;
}

// Null if the flag turns it off.
std::unique_ptr<KernelCache> open_cache() {
  const int most = flag<int>("kernel_cache_mb");
  if (most <= 0) return nullptr;
  const std::string folder = cache_folder();
  return std::make_unique<KernelCache>(folder.empty() ? folder : folder + "/kernels",
                                       int64_t{most} << 20);
}

struct Codes {
  ForkMutex mutex;
  std::unordered_map<std::string, Code> known;
  std::unordered_map<int, std::string> identities;  // by the width of vectors
  bool opened = false;
  std::unique_ptr<KernelCache> disk;
};
Codes& codes() {
  static Codes& one = *new Codes;
  return one;
}

void report_failure(const std::string& why) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    log_warning("A fused part of a program cannot be compiled and runs call by call: {}", why);
}

// Code from disk or from the generator; where from, for the trace.
struct Made {
  Code code = nullptr;
  const char* from = "compiled";
  std::string why;
};

Made make(Codes& c, const Kernel& kernel, int widest) {
  const codegen::Generator& generator = *loaded().generator;
  Made made;
  if (!std::exchange(c.opened, true)) c.disk = open_cache();
  std::string key;
  if (c.disk && c.disk->refused().empty()) {
    std::string& identity = c.identities[widest];
    if (identity.empty()) identity = generator.identity(widest, made.why);
    if (!identity.empty()) key = format("{}\n{}", identity, kernel.text());
  }
  if (!key.empty())
    if (const std::optional<std::string> object = c.disk->find(key)) {
      made.code = generator.load(*object, widest, made.why);
      made.from = "loaded";
      if (made.code) return made;
    }
  const std::string object = generator.compile(kernel, widest, made.why);
  made.from = "compiled";
  if (object.empty()) return made;
  if (!key.empty()) c.disk->keep(key, object);
  made.code = generator.load(object, widest, made.why);
  return made;
}

}  // namespace

bool can_compile(std::string* why) {
  if (why) *why = loaded().missing;
  return loaded().generator != nullptr;
}

bool is_known_missing() { return known_missing; }

Code code_of(const Kernel& kernel) {
  if (!can_compile()) return nullptr;
  const int widest = cpu::use_avx512() ? 512 : 256;
  const std::string key = format("{}\n{}", widest, kernel.text());
  Codes& c = codes();
  const std::lock_guard lock(c.mutex);
  if (const auto known = c.known.find(key); known != c.known.end()) return known->second;
  const auto begin = std::chrono::steady_clock::now();
  const Made made = make(c, kernel, widest);
  if (!made.code) report_failure(made.why);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  if (tracing(Trace::Fusion))
    std::fprintf(stderr, "fusion: %s %zu steps in %.1f ms%s%s\n", made.from, kernel.steps.size(),
                 taken.count(), made.code ? "" : ": ", made.code ? "" : made.why.c_str());
  c.known.emplace(key, made.code);
  return made.code;
}

std::string kernel_cache_state() {
  Codes& c = codes();
  const std::lock_guard lock(c.mutex);
  if (!std::exchange(c.opened, true)) c.disk = open_cache();
  if (!c.disk) return "none are kept (the flag kernel_cache_mb is 0)";
  if (!c.disk->refused().empty()) return format("none are kept: {}", c.disk->refused());
  const KernelCache::Size size = c.disk->size();
  return format("{}, {} KiB in {}", size.entries, size.bytes >> 10, c.disk->folder());
}

}  // namespace oar::fusion
