// A product of tensors as products of matrices: batches, vectors and broadcasting expressed as strides.
#pragma once

#include <algorithm>
#include <cstdint>

#include "oar/base/small_vector.h"
#include "oar/tensor/c_types.h"

namespace oar::cpu {

// A product of two matrices for each element of the batch axes. Strides are in elements.
struct Batched {
  int64_t m = 1, n = 1, k = 1;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0;
  int64_t count = 1;
  struct Axis {
    int64_t size, a, b, c;
  };
  SmallVector<Axis, 4> axes;

  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  Offsets at(int64_t index) const {
    Offsets offsets;
    for (size_t i = axes.size(); i-- > 0;) {
      const int64_t place = index % axes[i].size;
      index /= axes[i].size;
      offsets.a += place * axes[i].a;
      offsets.b += place * axes[i].b;
      offsets.c += place * axes[i].c;
    }
    return offsets;
  }
  // Batches of rows against one matrix are more rows, if they continue each other.
  void fold_rows() {
    while (!axes.empty()) {
      const Axis& last = axes.back();
      if (last.b != 0 || (m > 1 && last.a != a_row * m) || (m > 1 && last.c != c_row * m)) return;
      if (m == 1) {
        a_row = last.a;
        c_row = last.c;
      }
      m *= last.size;
      count /= std::max<int64_t>(last.size, 1);
      axes.pop_back();
    }
  }
};

// Stride of the batch axis that is `from_end` axes before the matrix; 0 if it is broadcast.
inline int64_t batch_stride(const oar_tensor& t, int from_end) {
  const int axis = t.ndim - 3 - from_end;
  return axis >= 0 && t.shape[axis] != 1 ? t.strides[axis] : 0;
}

inline Batched batched_product(const oar_tensor& x, const oar_tensor& y, const oar_tensor& out,
                               bool transpose_x, bool transpose_y) {
  Batched p;
  const bool x_vector = x.ndim == 1, y_vector = y.ndim == 1;
  // A vector has one axis, which is summed, whatever the flags.
  const int x_sum = x_vector || !transpose_x ? x.ndim - 1 : x.ndim - 2;
  const int y_sum = y_vector || transpose_y ? y.ndim - 1 : y.ndim - 2;
  p.k = x.shape[x_sum];
  p.a_column = x.strides[x_sum];
  p.b_row = y.strides[y_sum];
  if (!x_vector) {
    const int free = 2 * x.ndim - 3 - x_sum;
    p.m = x.shape[free];
    p.a_row = x.strides[free];
  }
  if (!y_vector) {
    const int free = 2 * y.ndim - 3 - y_sum;
    p.n = y.shape[free];
    p.b_column = y.strides[free];
  }
  p.c_row = p.n;
  const int batch_rank = out.ndim - (x_vector ? 0 : 1) - (y_vector ? 0 : 1);
  int64_t c = p.m * p.n;
  for (int i = batch_rank; i-- > 0;) c *= out.shape[i];
  for (int i = 0; i < batch_rank; ++i) {
    const int64_t size = out.shape[i];
    c = size == 0 ? 0 : c / size;
    p.count *= size;
    if (size == 1) continue;
    const int from_end = batch_rank - 1 - i;
    p.axes.push_back({size, batch_stride(x, from_end), batch_stride(y, from_end), c});
  }
  p.fold_rows();
  return p;
}

// Why the sums of linear cannot start from its bias; null if they can. Its product and sum then run apart.
inline const char* objection_to_linear(const oar_tensor& weight, const oar_tensor* bias) {
  if (weight.ndim != 2) return "the weight is not a matrix";
  const bool row =
      bias == nullptr || (bias->ndim == 1 && (bias->numel == weight.shape[1] || bias->numel == 1));
  return row ? nullptr : "the bias is not a row of the result";
}

}  // namespace oar::cpu
