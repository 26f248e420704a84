#include "oar/backend/cpu/onednn/library.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <omp.h>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/log.h"
#include "oar/base/parallel.h"

namespace oar::cpu::onednn {
namespace {

enum class Tiles { None, Hidden, Usable };

// Some virtual machines expose AMX but not the leaf that describes its tiles. oneDNN reads the
// palette from there, configures palette 0 and crashes with an illegal instruction.
Tiles amx_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d >> 24 & 1) == 0) return Tiles::None;
  return __get_cpuid_count(0x1d, 0, &a, &b, &c, &d) != 0 && a >= 1 ? Tiles::Usable : Tiles::Hidden;
}

// Products of pairs of bfloat16. On machines with AMX they are no faster than those of floats.
bool has_fast_pairs() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return amx_tiles() == Tiles::None && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 &&
         (a >> 5 & 1) != 0;
}

// Fills the table; returns the name of a missing function, or null.
const char* load(Library& lib) {
  // The run path of this library leads to the copy next to it.
  void* handle = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "libdnnl.so.3";
#define OAR_LOAD(name)                                                   \
  lib.name = reinterpret_cast<decltype(lib.name)>(dlsym(handle, #name)); \
  if (lib.name == nullptr) return #name;
  OAR_ONEDNN_FUNCTIONS(OAR_LOAD)
#undef OAR_LOAD
  return nullptr;
}

const Library* open() {
  static Library lib{};
  if (const char* missing = load(lib)) {
    log_info("oneDNN is not used: {} is missing", missing);
    return nullptr;
  }
  const Tiles tiles = amx_tiles();
  const auto isa = flag<std::string>("cpu_isa");
  const bool uses_tiles = tiles == Tiles::Usable && (isa == "auto" || isa == "amx");
  if (isa == "avx2")
    lib.dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
  else if (!uses_tiles)
    lib.dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_fp16);
  lib.fast_bfloat16 = uses_tiles || (isa != "avx2" && has_fast_pairs());
  lib.dnnl_set_primitive_cache_capacity(0);  // plans are kept by our own cache
  const bool ready = lib.dnnl_engine_create(&lib.engine, dnnl_cpu, 0) == dnnl_success &&
                     lib.dnnl_primitive_attr_create(&lib.attributes) == dnnl_success &&
                     lib.dnnl_primitive_attr_set_scratchpad_mode(
                         lib.attributes, dnnl_scratchpad_mode_user) == dnnl_success;
  return ready ? &lib : nullptr;
}

const Library* loaded() {
  static const Library* const lib = open();
  return lib;
}

}  // namespace

const Library* library() {
  // How it cuts a sum depends on the number of threads.
  static const FlagHandle<bool> wanted("onednn"), deterministic("deterministic");
  return wanted.get() && !deterministic.get() ? loaded() : nullptr;
}

const Library& api() { return *loaded(); }

void check(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) [[likely]]
    return;
  user_check(status != dnnl_out_of_memory, ErrorKind::OutOfMemory, "no memory for {}.", what);
  fail(ErrorKind::Runtime, "oneDNN failed in {} with status {}.", what, static_cast<int>(status));
}

int wanted_pieces() { return in_parallel() ? 1 : num_threads(); }

OneThread::OneThread() : outer_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(outer_); }

}  // namespace oar::cpu::onednn
