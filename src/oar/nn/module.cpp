#include "oar/nn/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <mutex>
#include <set>
#include <typeinfo>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/pickle.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/copy.h"

namespace oar::nn {
namespace {

// How often a kind of layer was built: the numbers in the names of parameters, as Python counts them.
struct NameCounts {
  std::mutex mutex;
  std::map<std::string, int> of;
};
NameCounts& name_counts() {
  static NameCounts counts;
  return counts;
}

// "BatchNorm2D" becomes "batch_norm2d", as in Paddle.
std::string snake_case(const std::string& name) {
  const auto upper = [&](size_t i) { return i < name.size() && std::isupper(name[i]) != 0; };
  const auto lower = [&](size_t i) { return i < name.size() && std::islower(name[i]) != 0; };
  std::string made;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(i) && (lower(i + 1) || lower(i - 1))) made += '_';
    made += static_cast<char>(std::tolower(name[i]));
  }
  return made;
}

std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = text ? text.get() : type.name();
  name = name.substr(0, name.find('<'));
  return name.substr(name.rfind(':') + 1);
}

bool is_paddle_file(const std::string& path) { return !path.ends_with(".safetensors"); }

}  // namespace

void restart_names() {
  const std::lock_guard lock(name_counts().mutex);
  name_counts().of.clear();
}

std::string name_of_parameter(const Tensor& parameter) {
  const History* history = maybe_history(parameter);
  return history ? history->name : std::string();
}

std::string Module::kind() const { return snake_case(class_name(typeid(*this))); }

std::string Module::unique_name(Role role) {
  if (full_name_.empty()) {
    const std::string stem = kind();
    const std::lock_guard lock(name_counts().mutex);
    full_name_ = format("{}_{}", stem, name_counts().of[stem]++);
  }
  return role == Role::Bias ? format("{}.b_{}", full_name_, biases_++)
                            : format("{}.w_{}", full_name_, weights_++);
}

Tensor Module::forward(const Tensor&) {
  fail(ErrorKind::Unsupported,
       "this module has no forward that takes one tensor.\nhint: Override forward, or call the "
       "function that the module defines.");
}

void Module::check_name(const std::string& name) const {
  user_check(!name.empty() && name.find('.') == std::string::npos, ErrorKind::InvalidArgument,
             "'{}' cannot name a part of a module.\nhint: A name is not empty and has no dot.",
             name);
  const auto taken = [&](const auto& entry) { return entry.first == name; };
  user_check(std::none_of(parameters_.begin(), parameters_.end(), taken) &&
                 std::none_of(buffers_.begin(), buffers_.end(), taken) &&
                 std::none_of(submodules_.begin(), submodules_.end(), taken),
             ErrorKind::InvalidArgument, "the module has a '{}' already.", name);
}

Tensor Module::register_parameter(std::string name, Tensor value, Role role) {
  check_name(name);
  user_check(value.defined(), ErrorKind::InvalidArgument, "the parameter '{}' is undefined.", name);
  user_check(is_differentiable(value.dtype()), ErrorKind::InvalidArgument,
             "the parameter '{}' has dtype {}, which has no gradient.\nhint: Register it as a "
             "buffer, or cast it to a float type first.",
             name, name_of(value.dtype()));
  set_stop_gradient(value, false);
  value->flags |= kParameter | kPersistable;
  history_of(value).name = unique_name(role);
  parameters_.emplace_back(std::move(name), value);
  return value;
}

Tensor Module::register_buffer(std::string name, Tensor value) {
  check_name(name);
  user_check(value.defined(), ErrorKind::InvalidArgument, "the buffer '{}' is undefined.", name);
  value->flags |= kPersistable;
  buffers_.emplace_back(std::move(name), value);
  return value;
}

void Module::register_alias(std::string name, const Tensor& parameter) {
  check_name(name);
  parameters_.emplace_back(std::move(name), parameter);
}

void Module::register_module(std::string name, Module& member) {
  check_name(name);
  user_check(&member != this, ErrorKind::InvalidArgument, "a module cannot hold itself.");
  submodules_.emplace_back(std::move(name), &member);
}

Module& Module::register_module(std::string name, std::unique_ptr<Module> module) {
  user_check(module != nullptr, ErrorKind::InvalidArgument, "the module '{}' is null.", name);
  register_module(std::move(name), *module);
  owned_.push_back(std::move(module));
  return *owned_.back();
}

void Module::collect(const std::string& prefix, Named Module::* what, Named& into) const {
  for (const auto& [name, tensor] : this->*what) into.emplace_back(prefix + name, tensor);
  for (const auto& [name, module] : submodules_) module->collect(prefix + name + ".", what, into);
}

std::vector<std::pair<std::string, Tensor>> Module::named_parameters() const {
  Named all;
  collect("", &Module::parameters_, all);
  std::set<const TensorImpl*> seen;
  std::erase_if(all, [&](const auto& entry) { return !seen.insert(entry.second.impl()).second; });
  return all;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> all;
  for (auto& [name, tensor] : named_parameters()) all.push_back(std::move(tensor));
  return all;
}

std::vector<std::pair<std::string, Tensor>> Module::named_buffers() const {
  Named all;
  collect("", &Module::buffers_, all);
  return all;
}

Module& Module::apply(const std::function<void(Module&)>& function) {
  for (const auto& [name, module] : submodules_) module->apply(function);
  function(*this);
  return *this;
}

NamedTensors Module::state_dict() const {
  Named all;
  collect("", &Module::parameters_, all);
  collect("", &Module::buffers_, all);
  NamedTensors state;
  for (const auto& [name, tensor] : all) state.emplace(name, detach(tensor));
  return state;
}

void Module::check_state_dict(const NamedTensors& state, bool strict) const {
  std::vector<std::string> missing, unexpected, mismatched;
  const NamedTensors own = state_dict();
  for (const auto& [name, tensor] : own) {
    const auto it = state.find(name);
    if (it == state.end())
      missing.push_back(name);
    else if (!it->second.defined() || it->second.shape() != tensor.shape())
      mismatched.push_back(
          format("{} is {}, expected {}", name, it->second.describe(), tensor.describe()));
  }
  for (const auto& [name, tensor] : state)
    if (!own.contains(name)) unexpected.push_back(name);
  std::string problems;
  const auto add = [&](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    problems += format("{}{} [{}]", problems.empty() ? "" : "; ", what, join(names, ", "));
  };
  if (strict) add("missing", missing);
  if (strict) add("unexpected", unexpected);
  add("mismatched", mismatched);
  user_check(problems.empty(), ErrorKind::InvalidArgument,
             "the state dict does not fit the module: {}. Nothing was loaded.\nhint: Build the "
             "network as it was when the state was saved; strict = false loads the names that fit.",
             problems);
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  check_state_dict(state, strict);
  const NoGrad off;
  for (const auto& [name, tensor] : state_dict())
    if (const auto it = state.find(name); it != state.end()) copy_into(tensor, it->second);
}

void Module::save(const std::string& path) const {
  if (is_paddle_file(path))
    save_pickle(path, pickled_state(state_dict()));
  else
    save_safetensors(path, state_dict());
}

void Module::load(const std::string& path, bool strict) {
  load_state_dict(is_paddle_file(path) ? tensors_in(load_pickle(path)) : load_safetensors(path),
                  strict);
}

Module& Module::train(bool on) {
  training_ = on;
  for (const auto& [name, module] : submodules_) module->train(on);
  return *this;
}

void Module::replace(const std::function<Tensor(const Tensor&)>& made_from) {
  const NoGrad off;
  for (const auto& named : {named_parameters(), named_buffers()})
    for (const auto& [name, tensor] : named)
      // The tensor stays the one that members and optimisers hold; only its content is replaced.
      if (const Tensor made = made_from(tensor); !made.is_same(tensor))
        tensor->become(*made.impl());
  zero_grad();  // they have the old dtype, or are elsewhere
}

Module& Module::to(DType dtype) {
  user_check(is_differentiable(dtype), ErrorKind::InvalidType,
             "a module's parameters cannot be {}.\nhint: Choose a float type.", name_of(dtype));
  replace([&](const Tensor& t) { return is_floating(t.dtype()) ? cast(t, dtype) : t; });
  return *this;
}

Module& Module::to(Device device) {
  replace([&](const Tensor& t) { return to_device(t, device); });
  return *this;
}

void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) history_of(parameter).grad.set(Tensor());
}

void fail_no_module(const Module& owner, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [own, module] : owner.submodules()) names.push_back(own);
  fail(ErrorKind::NotFound, "there is no module '{}' among [{}].", name, join(names, ", "));
}

Sequential& Sequential::append(std::unique_ptr<Module> module) {
  register_module(std::to_string(size()), std::move(module));
  return *this;
}

Module& Sequential::operator[](std::size_t i) const {
  user_check(i < size(), ErrorKind::OutOfRange, "there is no module {} among {}.", i, size());
  return *submodules()[i].second;
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor value = x;
  for (const auto& [name, module] : submodules()) value = module->forward(value);
  return value;
}

}  // namespace oar::nn
