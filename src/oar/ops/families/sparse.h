// Sparse tensors: the places of some elements and their values; all other elements are zero.
//
// Such a tensor is a handle. Places and values are dense tensors, and every call on it becomes calls of ordinary ops
// on these (`sparse_forms.cpp`), before the tape and before a capture. So the values carry its history.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

class Sparse : public Payload {
 public:
  Sparse(std::vector<Tensor> p, Tensor v, bool in_order)
      : places(std::move(p)), values(std::move(v)), coalesced(in_order) {}
  // COO: {indices}, one row per sparse axis. CSR: {crows, cols}.
  const std::vector<Tensor> places;
  const Tensor values;   // one per element; of a COO tensor with dense axes, [count, dense axes...]
  const bool coalesced;  // is it known that the elements are in row-major order and differ?
};

inline bool is_sparse(const Tensor& t) {
  return t.kind() == Kind::SparseCoo || t.kind() == Kind::SparseCsr;
}
const Sparse& sparse(const Tensor& t);

// The checks are those of shapes and dtypes; `check_places` reads the index vectors.
Tensor make_coo(const Tensor& indices, const Tensor& values, Dims shape, bool coalesced = false);
Tensor make_csr(const Tensor& crows, const Tensor& cols, const Tensor& values, Dims shape);
// An error unless all places are inside the tensor, and those of a CSR matrix in order.
void check_places(const Tensor& t);

// How many leading axes of a COO tensor have coordinates.
int sparse_dim(const Tensor& t);

// ---- derivatives -------------------------------------------------------------------------------
// What is on the tape for t: the values of a sparse tensor, else t itself.
const Tensor& carrier_of(const Tensor& t);
const Tensor& carrier_of(Tensor&& t) = delete;  // the result is part of the tensor
// The same places with other values.
Tensor with_values(const Tensor& like, const Tensor& values);
// The values of a gradient of `like`, which must have the same places.
Tensor values_for(const Tensor& like, const Tensor& gradient);

// ---- conversions -------------------------------------------------------------------------------
Tensor coalesce(const Tensor& coo);
Tensor to_dense(const Tensor& t);
// The elements that are not zero; of a COO tensor, all that it holds.
Tensor to_coo(const Tensor& t, int axes);
Tensor to_csr(const Tensor& t);
// The elements of a dense tensor at the places of a sparse one.
Tensor mask_as(const Tensor& x, const Tensor& mask);

// The elements of x · y at the places of the mask.
Tensor masked_matmul(const Tensor& x, const Tensor& y, const Tensor& mask);

// From here on, calls on sparse tensors are taken apart.
void install_sparse_layer();

}  // namespace oar
