// The tensor: a reference-counted handle to a description (`TensorImpl`) of memory, of a symbolic value,
// or of another kind of content.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/free_list.h"
#include "oar/base/intrusive.h"
#include "oar/tensor/c_types.h"
#include "oar/tensor/dim.h"
#include "oar/tensor/dtype.h"
#include "oar/tensor/storage.h"

namespace OAR_RUNTIME_API oar {

// How a tensor holds its content. Only the layer that owns a kind reads its payload.
enum class Kind : uint8_t {
  Dense = 0,
  Symbolic = 1,      // a value of the program being captured
  SelectedRows = 2,  // some rows of a tall matrix: an embedding's gradient
  Dual = 3,          // a value with its tangent (jvp)
  Batched = 4,       // a value with a hidden batch axis (vmap)
  SparseCoo = 5,
  SparseCsr = 6,
  Distributed = 7,
  Meta = 8,  // shape and dtype without content
};

// Bits of a tensor that make its calls leave the fast path. One bit per dispatcher layer.
enum TensorFlag : uint32_t {
  kProfile = 1u << 0,
  kAutocast = 1u << 1,
  kQuantised = 1u << 2,  // packed below a byte, or with scales: few ops take it as it is
  kRecording = 1u << 3,  // autograd: the tensor requires a gradient
  kWrapped = 1u << 4,    // jvp or vmap
  kDistributed = 1u << 5,
  kFunctionalise = 1u << 6,
  kCapture = 1u << 7,
  kSparseCoo = 1u << 8,
  kSparseCsr = 1u << 9,
  kSelectedRows = 1u << 10,
  kPlanning = 1u << 11,  // no tensor has it: a decomposition is read for its sharding plan
  kDispatchMask = 0xffffu,
  // Not layers: properties of the tensor.
  kWeakScalar = 1u << 16,  // created from a literal; takes the dtype of the other operand
  kPersistable = 1u << 17,
  kParameter = 1u << 18,
};

// The layer that owns a kind: its bit is set on every tensor of the kind. A dense tensor has none.
constexpr uint32_t flag_of(Kind kind) {
  switch (kind) {
    case Kind::SparseCoo:
      return kSparseCoo;
    case Kind::SparseCsr:
      return kSparseCsr;
    case Kind::Distributed:
      return kDistributed;
    case Kind::SelectedRows:
      return kSelectedRows;
    case Kind::Dual:
    case Kind::Batched:
      return kWrapped;
    default:  // symbolic tensors belong to several layers, which their capture sets
      return 0;
  }
}

// Content of a kind other than dense; the scales of a dense tensor that has some (tensor/scales.h).
class Payload : public RefCounted {
 public:
  virtual ~Payload() = default;
  void release() const {
    if (drop_reference()) delete this;
  }
};

// Autograd data of a tensor; defined in autograd/.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
};

class TensorImpl : public oar_tensor, public RefCounted, public FreeListed<TensorImpl> {
 public:
  static constexpr int kInlineRank = 6;

  TensorImpl(Dims shape, DType dtype, Device device, Kind kind);
  TensorImpl(const TensorImpl&) = delete;
  TensorImpl& operator=(const TensorImpl&) = delete;

  void release() const {
    if (drop_reference()) delete this;
  }
  // The same content without autograd's and Python's part: a second handle to the same memory.
  Intrusive<TensorImpl> alias() const;
  void set_sizes(Dims shape);  // contiguous strides
  void set_layout(Dims shape, Ints strides);
  int64_t* mutable_strides() { return sizes_ + capacity_; }
  // Takes over content, shape and dtype of another tensor; identity, name and history stay.
  void become(const TensorImpl& other);

  StoragePtr storage;
  Intrusive<Payload> payload;
  std::unique_ptr<AutogradMeta> autograd;
  // The tensor this one is a view of, while gradients are on: an in-place write must reach its history.
  Intrusive<TensorImpl> view_base;
  void* python =
      nullptr;  // the Python object, if there is one; python_owned says which side owns the other
  bool python_owned = false;
  bool contiguous = true;

 private:
  friend class FreeListed<TensorImpl>;
  friend class Intrusive<TensorImpl>;
  ~TensorImpl();
  void reserve_rank(int rank);

  int32_t capacity_ = kInlineRank;
  int64_t* sizes_;  // shape, then strides
  int64_t inline_sizes_[2 * kInlineRank];
};

// Called when the last native reference to a tensor that owns its Python object is dropped.
using PythonReleaser = void (*)(void* object);
void set_python_releaser(PythonReleaser releaser);

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Intrusive<TensorImpl> impl) : impl_(std::move(impl)) {}
  static Tensor share(TensorImpl* impl) { return Tensor(Intrusive<TensorImpl>(impl)); }

  // Uninitialised dense tensor.
  static Tensor empty(Dims shape, DType dtype, Device device = {});
  static Tensor empty(const Shape& shape, DType dtype, Device device = {}) {
    return empty(Dims(shape), dtype, device);
  }
  static Tensor meta(Dims shape, DType dtype, Device device = {});
  // A dense view on a storage.
  static Tensor view_of(const StoragePtr& storage, Dims shape, Ints strides, void* data,
                        DType dtype);
  // `flags` beyond the one of the kind.
  static Tensor with_payload(Kind kind, Dims shape, DType dtype, Device device, uint32_t flags,
                             Intrusive<Payload> payload);
  // A 0-d tensor; `weak` as for a literal.
  static Tensor scalar(double value, DType dtype, bool weak = false);
  static Tensor scalar(int64_t value, DType dtype, bool weak = false);
  template <class T>
  static Tensor from_vector(const std::vector<T>& values, Dims shape, DType dtype);

  bool defined() const { return static_cast<bool>(impl_); }
  explicit operator bool() const { return defined(); }
  TensorImpl* impl() const { return impl_.get(); }
  TensorImpl* operator->() const { return impl_.get(); }

  DType dtype() const { return static_cast<DType>(impl_->dtype); }
  Kind kind() const { return static_cast<Kind>(impl_->kind); }
  Device device() const { return {impl_->device_type, impl_->device_index}; }
  int rank() const { return impl_->ndim; }
  Dims dims() const { return as_dims({impl_->shape, static_cast<size_t>(impl_->ndim)}); }
  Shape shape() const { return Shape(dims()); }
  // The size of an axis; negative axes count from the end.
  Dim dim(int64_t axis) const;
  Ints strides() const { return {impl_->strides, static_cast<size_t>(impl_->ndim)}; }
  Dim numel() const;
  bool is_dense() const { return kind() == Kind::Dense; }
  bool is_contiguous() const { return impl_->contiguous; }
  bool has(uint32_t flag) const { return (impl_->flags & flag) != 0; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  template <class T>
  T* data() const {
    return static_cast<T*>(impl_->data);
  }
  // The value of a one-element dense CPU tensor, in host precision.
  double item_double() const;
  int64_t item_int() const;
  template <class T>
  std::vector<T> to_vector() const;

  std::string describe() const;  // "float32[4, 7]"

  friend bool operator==(const Tensor& a, const Tensor& b) = delete;

 private:
  Intrusive<TensorImpl> impl_;
};
static_assert(sizeof(Tensor) == sizeof(void*), "lists of tensors are handed over as arrays");

using TensorList = std::span<const Tensor>;

// Row-major strides.
SmallVector<int64_t, 6> contiguous_strides(Dims shape);

// Makes a negative axis positive; an error that names axis and rank if it does not fit.
int64_t normalise_axis(int64_t axis, int64_t rank, const char* argument = "axis");

}  // namespace oar
