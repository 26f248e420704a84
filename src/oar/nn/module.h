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

  // Its own, then its submodules', with dotted names.
  std::vector<std::pair<std::string, Tensor>> named_parameters() const;
  std::vector<Tensor> parameters() const;
  std::vector<std::pair<std::string, Tensor>> named_buffers() const;
  const std::vector<std::pair<std::string, Module*>>& submodules() const { return submodules_; }

  // Parameters and buffers by name. They share memory with the module and reflect later steps.
  NamedTensors state_dict() const;
  // Copies values in. A missing or unexpected name is an error if `strict`; a wrong shape always.
  void load_state_dict(const NamedTensors& state, bool strict = true);
  void save(const std::string& path) const;
  void load(const std::string& path, bool strict = true);

  // Dropout and batch normalisation behave differently while training.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool is_training() const { return training_; }
  // Casts parameters and buffers of float types, in place, and clears the gradients.
  Module& to(DType dtype);
  // Clears the gradients.
  void zero_grad();

 protected:
  // Registers under a name and returns the same tensor, for a member to keep.
  Tensor register_parameter(std::string name, Tensor value);
  Tensor register_buffer(std::string name, Tensor value);
  // A member of this module …
  void register_module(std::string name, Module& member);
  // … or one that it will own.
  Module& register_module(std::string name, std::unique_ptr<Module> module);

 private:
  using Named = std::vector<std::pair<std::string, Tensor>>;
  void check_name(const std::string& name) const;
  void collect(const std::string& prefix, Named Module::* what, Named& into) const;

  Named parameters_;
  Named buffers_;
  std::vector<std::pair<std::string, Module*>> submodules_;
  std::vector<std::unique_ptr<Module>> owned_;
  bool training_ = true;
};

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

}  // namespace nn
}  // namespace oar
