// What a call of a static function depends on, except the content and the sizes of its tensors.
#pragma once

#include <string_view>

#include "common.h"
#include "oar/base/small_vector.h"

namespace oar::python {

// The modes of the thread and the arguments, written as bytes: the containers, their structure, the type of
// each tensor. Numbers and text are written by value, other objects by their address.
class CallKey {
 public:
  // False if the function must be called as it is: in a capture or a transform, or on tensors of other kinds. `kwargs` may be null.
  bool read(PyObject* args, PyObject* kwargs);

  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }
  // The tensors among the arguments, in order; arrays of NumPy are copied into tensors.
  TensorList tensors() const { return {tensors_.data(), tensors_.size()}; }
  const SmallVector<PyObject*, 4>& objects() const { return objects_; }
  const SmallVector<int64_t, 16>& sizes() const { return sizes_; }
  // What the bytes name by address; borrowed.
  const SmallVector<PyObject*, 4>& named() const { return named_; }

 private:
  void write(PyObject* value);
  void write_modes();
  void write_tensor(PyObject* object);
  void write_items(PyObject* sequence, Py_ssize_t count);
  void write_dict(PyObject* dict);
  void write_number(PyObject* value);
  void write_text(PyObject* text);
  void write_other(PyObject* value);
  bool write_again(PyObject* value);
  void address(PyObject* object);
  void raw(const void* data, size_t size);
  template <class N>
  void number(N value) {
    raw(static_cast<const void*>(&value), sizeof value);
  }

  SmallVector<char, 192> bytes_;
  SmallVector<Tensor, 4> tensors_;
  SmallVector<PyObject*, 4> objects_, named_, seen_;
  SmallVector<int64_t, 16> sizes_;
  std::vector<Ref> made_;  // tensors of arrays
  uint32_t layers_ = 0;
  bool dense_ = true;
};

// A `_C.CallKey`: the bytes; it keeps everything alive that they name.
PyObject* wrap_key(const CallKey& key);
// Its bytes, borrowed; an error if it is something else.
std::string_view key_bytes(PyObject* key);

}  // namespace oar::python
