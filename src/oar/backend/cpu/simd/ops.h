// Calls the vectorised loop of an op on tensors of any strides.
#pragma once

#include <optional>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/simd/drive.h"

namespace oar::cpu::simd {

// The loop for a dtype, or null. 8-bit floats are computed as copies in float32.
Function loop_for(Op op, DType dtype);
// If an element costs much, a thread pays sooner.
int64_t grain_of(Op op);

inline bool is_float8(DType dtype) { return is_floating(dtype) && size_of(dtype) == 1; }

// The result first, then the operands.
template <size_t N>
using Tensors = std::array<const oar_tensor*, N + 1>;

template <size_t N>
void drive_as_float(Op op, const Tensors<N>& tensors, const double* numbers) {
  const oar_tensor& out = *tensors[0];
  const bool asks = static_cast<DType>(out.dtype) == DType::Bool;
  const Scratch<float> made(asks ? 0 : out.numel);
  const FlatTensor result(out, made.data(), DType::Float32);
  Tensors<N> wide{asks ? &out : &result.get()};
  std::array<std::optional<Converted<float>>, N> copies;
  std::array<std::optional<FlatTensor>, N> flat;
  for (size_t k = 0; k < N; ++k) {
    copies[k].emplace(tensors[k + 1]);
    flat[k].emplace(*tensors[k + 1], const_cast<float*>(copies[k]->data()), DType::Float32);
    wide[k + 1] = &flat[k]->get();
  }
  drive<N>(loop_for(op, DType::Float32), wide, numbers, grain_of(op));
  if (!asks) copy_elements(out, result.get());
}
template <size_t N>
void drive_op(Op op, const Tensors<N>& tensors, const double* numbers = nullptr) {
  const auto dtype = static_cast<DType>(tensors[1]->dtype);
  if (is_float8(dtype)) return drive_as_float<N>(op, tensors, numbers);
  drive<N>(loop_for(op, dtype), tensors, numbers, grain_of(op));
}

}  // namespace oar::cpu::simd
