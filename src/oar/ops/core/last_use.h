// What a vjp may do with the tensors that its node has saved.
#pragma once

#include "oar/tensor/tensor.h"

namespace OAR_API oar {

inline thread_local bool t_last_use = false;

// While alive, the vjp that this thread runs is the last to read what its node has saved (or not).
class LastUse {
 public:
  explicit LastUse(bool last) : outer_(t_last_use) { t_last_use = last; }
  ~LastUse() { t_last_use = outer_; }
  LastUse(const LastUse&) = delete;
  LastUse& operator=(const LastUse&) = delete;

 private:
  bool outer_;
};

// For a vjp: is the saved tensor's memory free for the gradient? Nobody else has the tensor, and nobody will read it again.
inline bool may_overwrite(const Tensor& saved) {
  return t_last_use && saved.is_dense() && saved.is_contiguous() &&
         saved->storage->reference_count() == 1 && !saved->storage->is_readonly();
}

}  // namespace oar
