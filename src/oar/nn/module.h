// Module: a part of a network, with its parameters, buffers and submodules.
//
//   struct Net : nn::Module {
//     nn::Linear hidden{784, 128};
//     nn::Linear head{128, 10};
//     Net() {
//       register_module("hidden", hidden);
//       register_module("head", head);
//     }
//     Tensor forward(const Tensor& x) override { return head(relu(hidden(x))); }
//   };
//
// Names are those of the Python layers, so that a file written by one language loads in the other.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace nn {

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  // A module holds references to its members, and others may hold references to it.
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // A module with inputs other than one tensor defines its own functions instead.
  virtual Tensor forward(const Tensor& x);
  Tensor operator()(const Tensor& x) { return forward(x); }

  // Its own, then its submodules', with dotted names. A parameter that several modules share comes once, under its first name.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<Tensor> parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  const std::vector<std::pair<std::string, Module*>>& submodules() const { return submodules_; }
  // Calls the function on every submodule, then on this one.
  Module& apply(const std::function<void(Module&)>& function);

  // Parameters and buffers by name. They share memory with the module and reflect later steps.
  NamedTensors state_dict() const;
  // Copies values in. All names that are missing or unexpected, and all tensors of other shapes, are listed in one error, and
  // nothing is loaded. Without `strict` only the shapes count.
  void load_state_dict(const NamedTensors& state, bool strict = true);
  void check_state_dict(const NamedTensors& state, bool strict = true) const;
  // A .safetensors file, or one of Paddle's .pdparams.
  void save(const std::string& path) const;
  void load(const std::string& path, bool strict = true);

  // Dropout and batch normalisation behave differently while training.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const { return training_; }
  // Casts parameters and buffers of float types, or moves all of them, in place, and clears the gradients.
  Module& to(DType dtype);
  Module& to(Device device);
  // Clears the gradients.
  void zero_grad();

 protected:
  enum class Role { Weight, Bias };
  // Registers under a name and returns the same tensor, for a member to keep.
  Tensor register_parameter(std::string name, Tensor value, Role role = Role::Weight);
  Tensor register_buffer(std::string name, Tensor value);
  // A second name for a parameter of a submodule.
  void register_alias(std::string name, const Tensor& parameter);
  // A member of this module …
  void register_module(std::string name, Module& member);
  // … or one that it will own.
  Module& register_module(std::string name, std::unique_ptr<Module> module);

  // What Paddle calls layers of this class: "linear" for Linear. Parameters are named after it, as in "linear_0.w_0", and the
  // states of optimisers after them.
  virtual std::string kind() const;

 private:
  using Named = std::vector<std::pair<std::string, Tensor>>;
  void check_name(const std::string& name) const;
  void collect(const std::string& prefix, Named Module::* what, Named& into) const;
  std::string unique_name(Role role);
  void replace(const std::function<Tensor(const Tensor&)>& made_from);

  Named parameters_;
  Named buffers_;
  std::vector<std::pair<std::string, Module*>> submodules_;
  std::vector<std::unique_ptr<Module>> owned_;
  std::string full_name_;  // "linear_0", from the first parameter on
  int weights_ = 0, biases_ = 0;
  bool training_ = true;
};

// Begins the numbers in the names of parameters ("linear_0.w_0") again, as a new process would. For a network that is built
// twice, and whose optimiser is to find its states.
void restart_names();

// The name of a parameter that a module has, such as "linear_0.w_0"; empty for other tensors without a name.
std::string name_of_parameter(const Tensor& parameter);

// Modules in sequence, named "0", "1", …
//
//   nn::Sequential net;
//   net.append<nn::Linear>(784, 128).append<nn::ReLU>().append<nn::Linear>(128, 10);
class Sequential : public Module {
 public:
  template <class M, class... A>
  Sequential& append(A&&... args) {
    return append(std::make_unique<M>(std::forward<A>(args)...));
  }
  Sequential& append(std::unique_ptr<Module> module);
  Module& operator[](std::size_t i) const;
  std::size_t size() const { return submodules().size(); }

  Tensor forward(const Tensor& x) override;
};

// Modules of one class, named "0", "1", …, which the owner calls as it likes.
template <class M>
class LayerList : public Module {
 public:
  template <class... A>
  M& append(A&&... args) {
    return append(std::make_unique<M>(std::forward<A>(args)...));
  }
  M& append(std::unique_ptr<M> module) {
    return static_cast<M&>(register_module(std::to_string(size()), std::move(module)));
  }
  M& operator[](std::size_t i) const { return static_cast<M&>(*submodules().at(i).second); }
  std::size_t size() const { return submodules().size(); }
};

// Modules of one class by name.
template <class M>
class LayerDict : public Module {
 public:
  template <class... A>
  M& add(std::string name, A&&... args) {
    return static_cast<M&>(
        register_module(std::move(name), std::make_unique<M>(std::forward<A>(args)...)));
  }
  M& at(const std::string& name) const {
    for (const auto& [own, module] : submodules())
      if (own == name) return static_cast<M&>(*module);
    fail_unknown(name);
  }

 private:
  [[noreturn]] void fail_unknown(const std::string& name) const;
};

// The error of a name that is not there.
[[noreturn]] void fail_no_module(const Module& owner, const std::string& name);
template <class M>
void LayerDict<M>::fail_unknown(const std::string& name) const {
  fail_no_module(*this, name);
}

}  // namespace nn
}  // namespace oar
