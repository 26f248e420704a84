#include "oar/compiler/fusion/code.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <unordered_map>

#include "oar/backend/cpu/instruction_set.h"
#include "oar/base/flags.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/log.h"
#include "oar/compiler/codegen/codegen.h"

namespace oar::fusion {
namespace {

constexpr char kLibrary[] = "liboar_codegen.so";  // beside this library

struct Generator {
  codegen::Compile compile = nullptr;
  std::string missing;
};

const Generator& generator() {
  static const Generator& one = *new Generator([] {
    Generator made;
    void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library)
      made.compile = reinterpret_cast<codegen::Compile>(dlsym(library, codegen::kCompile));
    if (!made.compile) {
      const char* const text = dlerror();
      made.missing = format("the code generator cannot be loaded: {}", text ? text : kLibrary);
    }
    return made;
  }());
  return one;
}

struct Cache {
  ForkMutex mutex;
  std::unordered_map<std::string, Code> codes;
};
Cache& cache() {
  static Cache& one = *new Cache;
  return one;
}

void report_failure(const std::string& why) {
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    log_warning("A fused part of a program cannot be compiled and runs call by call: {}", why);
}

}  // namespace

bool can_compile(std::string* why) {
  if (why) *why = generator().missing;
  return generator().compile != nullptr;
}

Code code_of(const Kernel& kernel) {
  if (!can_compile()) return nullptr;
  const int widest = cpu::use_avx512() ? 512 : 256;
  const std::string key = format("{}\n{}", widest, kernel.text());
  Cache& c = cache();
  const std::lock_guard lock(c.mutex);
  if (const auto known = c.codes.find(key); known != c.codes.end()) return known->second;
  std::string why;
  const auto begin = std::chrono::steady_clock::now();
  const Code code = generator().compile(kernel, widest, why);
  if (!code) report_failure(why);
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - begin;
  if (tracing(Trace::Fusion))
    std::fprintf(stderr, "fusion: compiled %zu steps in %.1f ms%s%s\n", kernel.steps.size(),
                 taken.count(), code ? "" : ": ", why.c_str());
  c.codes.emplace(key, code);
  return code;
}

}  // namespace oar::fusion
