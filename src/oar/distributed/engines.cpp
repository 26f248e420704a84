#include "oar/distributed/engines.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <string_view>

#include "oar/base/error.h"

namespace oar::distributed {
namespace {

struct Engines {
  std::mutex mutex;
  std::map<std::string, std::string> paths;
  std::map<std::string, BackendCreate> loaded;
};

Engines& engines() {
  static Engines& all = *new Engines;
  return all;
}

// The folder of this library.
std::filesystem::path own_folder() {
  Dl_info info{};
  static const char anchor = 0;
  dladdr(&anchor, &info);
  return std::filesystem::path(info.dli_fname).parent_path();
}

std::string why_not_loaded() {
  const char* why = dlerror();
  return why != nullptr ? why : "no reason is given";
}

void* open_library(const std::string& name) {
  const auto& paths = engines().paths;
  const auto added = paths.find(name);
  if (added != paths.end()) return dlopen(added->second.c_str(), RTLD_NOW | RTLD_LOCAL);
  // The parts of OpenMPI look for its functions among those that are visible to all.
  if (name == "mpi") dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  return dlopen((own_folder() / ("liboar_" + name + ".so")).c_str(), RTLD_NOW | RTLD_LOCAL);
}

BackendCreate engine_of(const std::string& name) {
  Engines& all = engines();
  const std::lock_guard lock(all.mutex);
  const auto found = all.loaded.find(name);
  if (found != all.loaded.end()) return found->second;
  user_check(!name.empty() && name.find('/') == std::string::npos, ErrorKind::InvalidArgument,
             "'{}' is not the name of an engine.\nhint: Pass gloo or mpi.", name);
  void* library = open_library(name);
  user_check(
      library != nullptr, ErrorKind::Unsupported,
      "the engine {} for groups of processes cannot be loaded: {}.\nhint: Pass gloo or mpi; "
      "they need libgloo and OpenMPI (on Debian `apt-get install libgloo-dev libopenmpi-dev` "
      "before the build).",
      name, why_not_loaded());
  const auto create = reinterpret_cast<BackendCreate>(dlsym(library, OAR_BACKEND_CREATE));
  user_check(create != nullptr, ErrorKind::Unsupported,
             "the library of the engine {} has no function {}.\nhint: See "
             "oar/distributed/backend.h.",
             name, OAR_BACKEND_CREATE);
  return all.loaded[name] = create;
}

}  // namespace

std::unique_ptr<Backend> connect(const std::string& engine, const BackendOptions& options) {
  char* why = nullptr;
  Backend* made = engine_of(engine)(options, &why);
  const std::unique_ptr<char, decltype(&free)> text(why, &free);
  user_check(
      made != nullptr, ErrorKind::Runtime,
      "the {} processes of group {} cannot be connected by {}: {}.\nhint: Check that they reach "
      "each other; OAR_HOST sets the address under which others reach this one.",
      options.size, options.name, engine, why != nullptr ? why : "no reason is given");
  return std::unique_ptr<Backend>(made);
}

void add_engine(const std::string& name, const std::string& path) {
  Engines& all = engines();
  const std::lock_guard lock(all.mutex);
  user_check(!all.loaded.contains(name), ErrorKind::InvalidArgument, "the engine {} is in use.",
             name);
  all.paths[name] = path;
}

bool has_engine(const std::string& name) {
  try {
    engine_of(name);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace oar::distributed
