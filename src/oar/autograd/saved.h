// Hooks for the tensors that the tape saves.
#pragma once

#include <functional>
#include <string_view>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// Returns a saved tensor when a derivative needs it.
using UnpackHook = std::function<Tensor()>;
// Gets a tensor that is saved for a derivative and returns the function that finds it again. The tape then holds
// that function instead of the tensor.
using PackHook = std::function<UnpackHook(const Tensor& saved)>;

class SavedTensorHook;
// The hook of this thread, or null.
OAR_FAST_TLS inline constinit thread_local const SavedTensorHook* t_pack_hook = nullptr;

// While alive, tensors of one kind that this thread saves pass through the hook, and not through those of outer scopes.
class SavedTensorHook {
 public:
  explicit SavedTensorHook(PackHook pack, Kind kind = Kind::Dense)
      : pack_(std::move(pack)), kind_(kind), outer_(t_pack_hook) {
    t_pack_hook = this;
  }
  ~SavedTensorHook() { t_pack_hook = outer_; }
  SavedTensorHook(const SavedTensorHook&) = delete;
  SavedTensorHook& operator=(const SavedTensorHook&) = delete;

  UnpackHook pack(const Tensor& saved) const { return pack_(saved); }
  Kind kind() const { return kind_; }

 private:
  PackHook pack_;
  Kind kind_;
  const SavedTensorHook* outer_;
};

// Calls the thread's hook, without recording. Empty if there is none, if it is for tensors of another kind or declines this
// one. While a program is captured, plain tensors belong to the program and pass through no hook.
UnpackHook packed(const Tensor& t);
// What an unpack hook returns; an error if its shape or dtype is not that of `like`. `name` is that of the op.
Tensor unpacked(const UnpackHook& unpack, const Tensor& like, std::string_view name);

}  // namespace oar
