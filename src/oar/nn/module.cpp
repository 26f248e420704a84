#include "oar/nn/module.h"

#include <algorithm>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/ops/gen/copy.h"

namespace oar::nn {

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

Tensor Module::register_parameter(std::string name, Tensor value) {
  check_name(name);
  user_check(value.defined(), ErrorKind::InvalidArgument, "the parameter '{}' is undefined.", name);
  user_check(is_differentiable(value.dtype()), ErrorKind::InvalidArgument,
             "the parameter '{}' has dtype {}, which has no gradient.\nhint: Register it as a "
             "buffer, or cast it to a float type first.",
             name, name_of(value.dtype()));
  set_stop_gradient(value, false);
  value->flags |= kParameter | kPersistable;
  history_of(value).name = name;
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

NamedTensors Module::state_dict() const {
  NamedTensors state;
  for (const auto& [name, tensor] : named_parameters()) state.emplace(name, detach(tensor));
  for (const auto& [name, tensor] : named_buffers()) state.emplace(name, detach(tensor));
  return state;
}

void Module::load_state_dict(const NamedTensors& state, bool strict) {
  const NamedTensors own = state_dict();
  std::vector<std::string> missing, unexpected;
  for (const auto& [name, tensor] : own)
    if (!state.contains(name)) missing.push_back(name);
  for (const auto& [name, tensor] : state)
    if (!own.contains(name)) unexpected.push_back(name);
  user_check(!strict || (missing.empty() && unexpected.empty()), ErrorKind::InvalidArgument,
             "the names do not fit the module: missing [{}], unexpected [{}].\nhint: Pass "
             "strict = false to load those that do.",
             join(missing, ", "), join(unexpected, ", "));
  // All shapes are checked first, so that an error leaves the module unchanged.
  for (const auto& [name, tensor] : own)
    if (const auto it = state.find(name); it != state.end())
      user_check(it->second.defined() && it->second.shape() == tensor.shape(),
                 ErrorKind::InvalidArgument, "'{}' is {} in the module but {} in the loaded state.",
                 name, tensor.describe(), it->second.describe());
  const NoGrad off;
  for (const auto& [name, tensor] : own)
    if (const auto it = state.find(name); it != state.end()) copy_into(tensor, it->second);
}

void Module::save(const std::string& path) const { save_safetensors(path, state_dict()); }

void Module::load(const std::string& path, bool strict) {
  load_state_dict(load_safetensors(path), strict);
}

Module& Module::train(bool on) {
  training_ = on;
  for (const auto& [name, module] : submodules_) module->train(on);
  return *this;
}

Module& Module::to(DType dtype) {
  user_check(is_differentiable(dtype), ErrorKind::InvalidType,
             "a module's parameters cannot be {}.\nhint: Choose a float type.", name_of(dtype));
  const NoGrad off;
  for (const auto& named : {named_parameters(), named_buffers()})
    for (const auto& [name, tensor] : named)
      // The tensor stays the one that members and optimisers hold; only its content is replaced.
      if (is_floating(tensor.dtype())) tensor->become(*cast(tensor, dtype).impl());
  zero_grad();  // they have the old dtype
  return *this;
}

void Module::zero_grad() {
  for (const Tensor& parameter : parameters()) history_of(parameter).grad.set(Tensor());
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
