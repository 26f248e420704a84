#include "oar/extension/extension.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <utility>

#include "oar/base/fork_mutex.h"
#include "oar/device/added_kernels.h"
#include "oar/extension/paddle_records.h"

namespace oar::extension {
namespace {

struct State {
  FreedByFork<std::mutex> loading;
  ForkMutex mutex;  // initialisers of other libraries may run at any time
  std::vector<Addition (*)()> announced;
  std::map<std::string, std::vector<Function>> loaded;
};
State& state() {
  static State* instance = new State;
  return *instance;
}

std::vector<Addition (*)()> take_announced() {
  std::lock_guard lock(state().mutex);
  return std::exchange(state().announced, {});
}

void check(const Addition& addition, std::span<const Addition> before) {
  const Schema schema = Schema::parse(addition.def.schema ? addition.def.schema : "");
  const OpScope scope(schema.name.c_str());
  bool taken = Registry::get().find(schema.name) != nullptr;
  for (const Addition& other : before) taken |= Schema::parse(other.def.schema).name == schema.name;
  user_check(!taken, ErrorKind::InvalidArgument,
             "an op of this name is registered already.\nhint: Prefix it with the name of your "
             "project. After a change of the source, start a new process.");
  user_check(addition.kernel || addition.def.decompose || addition.def.view,
             ErrorKind::InvalidArgument,
             "the op has neither a kernel nor a decomposition.\nhint: Add `decompose`, or name a "
             "kernel in OAR_EXTENSION_OP.");
  user_check(
      !addition.kernel || addition.def.infer, ErrorKind::InvalidArgument,
      "an op with a kernel needs `infer`: its results are allocated before the kernel runs.");
}

std::vector<Function> add(std::vector<Addition> additions) {
  for (size_t i = 0; i < additions.size(); ++i) check(additions[i], {additions.data(), i});
  std::vector<Function> functions;
  for (Addition& a : additions) {
    const Op& op = Registry::get().add(std::move(a.def), "user");
    if (a.kernel)
      devices::add_kernel({op.name(), "cpu:user", a.accepts, a.kernel, nullptr, nullptr});
    if (!a.python.empty()) functions.push_back({a.python, a.writes ? op.inplace() : &op});
  }
  return functions;
}

}  // namespace

bool announce(Addition (*make)()) noexcept {
  std::lock_guard lock(state().mutex);
  state().announced.push_back(make);
  return true;
}

const std::vector<Function>& load(const std::string& path) {
  State& s = state();
  std::lock_guard lock(s.loading);
  if (const auto found = s.loaded.find(path); found != s.loaded.end()) return found->second;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* why = library ? nullptr : dlerror();
  user_check(library != nullptr, ErrorKind::NotFound, "the extension cannot be loaded: {}.",
             why ? why : "the loader gave no reason");
  // From here on the library stays: records and kernels are its code.
  std::vector<Addition> additions;
  const std::vector<Addition (*)()> announced = take_announced();
  std::vector<Addition> paddle = take_paddle_records();
  for (Addition (*make)() : announced) additions.push_back(make());
  for (Addition& a : paddle) additions.push_back(std::move(a));
  std::vector<Function> functions = add(std::move(additions));
  user_check(!functions.empty(), ErrorKind::InvalidArgument,
             "{} has no op.\nhint: Announce one with OAR_EXTENSION_OP or PD_BUILD_OP.", path);
  return s.loaded.emplace(path, std::move(functions)).first->second;
}

}  // namespace oar::extension
