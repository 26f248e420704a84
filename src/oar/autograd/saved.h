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

// The hook of this thread, or null.
OAR_FAST_TLS inline constinit thread_local const PackHook* t_pack_hook = nullptr;

// While alive, tensors that this thread saves pass through the hook, and not through those of outer scopes.
class SavedTensorHook {
 public:
  explicit SavedTensorHook(PackHook pack) : pack_(std::move(pack)), outer_(t_pack_hook) {
    t_pack_hook = &pack_;
  }
  ~SavedTensorHook() { t_pack_hook = outer_; }
  SavedTensorHook(const SavedTensorHook&) = delete;
  SavedTensorHook& operator=(const SavedTensorHook&) = delete;

 private:
  PackHook pack_;
  const PackHook* outer_;
};

// Calls the thread's hook, without recording. Empty if there is none, if the tensor is not plain memory, or while a
// program is captured.
UnpackHook packed(const Tensor& t);
// What an unpack hook returns; an error if its shape or dtype is not that of `like`. `name` is that of the op.
Tensor unpacked(const UnpackHook& unpack, const Tensor& like, std::string_view name);

}  // namespace oar
