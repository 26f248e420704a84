// The gradient of a tensor.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// None, a tensor, or zeros that have not been read yet. Such zeros have no memory: they are filled in when they are
// read, and a gradient that is added to them replaces them.
class Gradient {
 public:
  static Gradient zeros(Dims shape, DType dtype, Device device);

  bool defined() const { return value_.defined(); }
  bool is_zeros() const { return zeros_; }
  bool is_tensor() const { return value_.defined() && !zeros_; }
  // Zeros become a tensor: a plain one, or a value of the running capture if a symbolic gradient was cleared.
  const Tensor& get() {
    if (zeros_) [[unlikely]]
      set(content());
    return value_;
  }
  // The same content, but zeros stay as they are.
  Tensor content() const;
  // The tensor; undefined if there are only zeros.
  Tensor tensor() const { return zeros_ ? Tensor() : value_; }
  DType dtype() const { return value_.dtype(); }
  void set(Tensor value) {  // an undefined tensor is none
    value_ = std::move(value);
    zeros_ = symbolic_ = false;
  }
  // Returns the tensor, which must exist, and leaves none.
  Tensor take();
  // A tensor becomes zeros of its shape; none stays none.
  void set_to_zeros();
  // Is it the other one, unchanged? Zeros that were set again are not the same.
  bool is_same(const Gradient& other) const { return value_.is_same(other.value_); }

 private:
  Tensor value_;  // of zeros: shape, dtype and device
  bool zeros_ = false, symbolic_ = false;
};

}  // namespace oar
