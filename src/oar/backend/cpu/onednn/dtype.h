// Dtypes in oneDNN's terms.
#pragma once

#include "oar/backend/cpu/onednn/library.h"
#include "oar/tensor/dtype.h"

namespace oar::cpu::onednn {

inline dnnl_data_type_t dtype_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return dnnl_f32;
    case DType::BFloat16:
      return dnnl_bf16;
    case DType::Float16:
      return dnnl_f16;
    default:
      return dnnl_data_type_undef;
  }
}

// Dtypes in which it beats our own kernels on this machine.
inline bool is_fast(DType dtype) {
  return dtype == DType::Float32 || (dtype == DType::BFloat16 && api().fast_bfloat16);
}

}  // namespace oar::cpu::onednn
