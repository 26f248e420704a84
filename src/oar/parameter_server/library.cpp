// Loads the library of servers and clients.
#include <dlfcn.h>

#include <filesystem>

#include "oar/base/error.h"
#include "oar/parameter_server/parameter_server.h"

namespace oar::parameter_server {
namespace {

struct Loaded {
  const Library* library = nullptr;
  std::string why;
};

std::string last_error() {
  const char* why = dlerror();
  return why != nullptr ? why : "no reason is given";
}

Loaded load_library() {
  Dl_info info{};
  static const char anchor = 0;
  dladdr(&anchor, &info);
  const auto path =
      std::filesystem::path(info.dli_fname).parent_path() / "liboar_parameter_server.so";
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {nullptr, last_error()};
  const void* symbol = dlsym(handle, "oar_parameter_server");
  if (symbol == nullptr) return {nullptr, last_error()};
  return {static_cast<const Library*>(symbol), {}};
}

const Loaded& loaded() {
  static const Loaded& once = *new Loaded(load_library());
  return once;
}

const Library& library() {
  user_check(
      loaded().library != nullptr, ErrorKind::Unsupported,
      "parameter servers are not in this build: {}.\nhint: They need gRPC and RocksDB. On Debian: "
      "`apt-get install libgrpc++-dev protobuf-compiler-grpc librocksdb-dev`, then build again.",
      loaded().why);
  return *loaded().library;
}

}  // namespace

std::unique_ptr<Server> serve(const ServerOptions& options) { return library().serve(options); }
std::unique_ptr<Client> connect(const ClientOptions& options) { return library().connect(options); }
std::string why_missing() { return loaded().why; }

}  // namespace oar::parameter_server
