#include "oar/backend/cpu/lapack/library.h"

#include <dlfcn.h>

#include <string>

#include "oar/base/error.h"
#include "oar/base/flags.h"

namespace oar::cpu::lapack {
namespace {

struct Library {
  std::string file;
  void* handle = nullptr;
  // Of the OpenMP that the library uses, which counts threads for each caller; else of the library, for all.
  int (*max_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
};

template <class F>
F symbol(void* handle, const std::string& name) {
  return reinterpret_cast<F>(dlsym(handle, name.c_str()));
}

Library open() {
  Library lib;
  lib.file = flag<std::string>("lapack");
  lib.handle = dlopen(lib.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (lib.handle == nullptr) return lib;
  lib.max_threads = symbol<int (*)()>(lib.handle, "omp_get_max_threads");
  lib.set_threads = symbol<void (*)(int)>(lib.handle, "omp_set_num_threads");
  if (lib.max_threads == nullptr || lib.set_threads == nullptr) {
    lib.max_threads = symbol<int (*)()>(lib.handle, "openblas_get_num_threads");
    lib.set_threads = symbol<void (*)(int)>(lib.handle, "openblas_set_num_threads");
  }
  return lib;
}

const Library& library() {
  static const Library lib = open();
  user_check(
      lib.handle != nullptr, ErrorKind::Unsupported,
      "matrices of this size need LAPACK, and {} cannot be loaded.\nhint: Install OpenBLAS, "
      "on Debian `apt-get install libopenblas0-openmp`; or name another library with the flag "
      "lapack (OAR_LAPACK).",
      lib.file);
  return lib;
}

template <class T>
constexpr char kLetter = 's';
template <>
constexpr char kLetter<double> = 'd';
template <>
constexpr char kLetter<std::complex<float>> = 'c';
template <>
constexpr char kLetter<std::complex<double>> = 'z';

template <class T>
Routines<T> load() {
  void* handle = library().handle;
  const auto set = [&](auto& routine, const char* name) {
    const std::string full = std::string(1, kLetter<T>) + name + "_";
    routine = symbol<std::remove_reference_t<decltype(routine)>>(handle, full);
    user_check(routine != nullptr, ErrorKind::Unsupported,
               "{} has no function {}.\nhint: Install a complete OpenBLAS, on Debian `apt-get "
               "install libopenblas0-openmp`.",
               library().file, full);
  };
  Routines<T> table{};
  set(table.gemm, "gemm");
  set(table.trsm, "trsm");
  set(table.potrf, "potrf");
  set(table.getrf, "getrf");
  set(table.getrs, "getrs");
  set(table.getri, "getri");
  set(table.gelqf, "gelqf");
  set(table.glq, kComplex<T> ? "unglq" : "orglq");
  set(table.evd, kComplex<T> ? "heevd" : "syevd");
  set(table.gesdd, "gesdd");
  set(table.gelsd, "gelsd");
  set(table.geev, "geev");
  return table;
}

}  // namespace

template <class T>
const Routines<T>& routines() {
  static const Routines<T> table = load<T>();
  return table;
}
template const Routines<float>& routines<float>();
template const Routines<double>& routines<double>();
template const Routines<std::complex<float>>& routines<std::complex<float>>();
template const Routines<std::complex<double>>& routines<std::complex<double>>();

LibraryThreads::LibraryThreads(int count) {
  const Library& lib = library();
  if (lib.max_threads == nullptr || lib.set_threads == nullptr) return;
  outer_ = lib.max_threads();
  if (outer_ != count)
    lib.set_threads(count);
  else
    outer_ = 0;
}

LibraryThreads::~LibraryThreads() {
  if (outer_ != 0) library().set_threads(outer_);
}

}  // namespace oar::cpu::lapack
