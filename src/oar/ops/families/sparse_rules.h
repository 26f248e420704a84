// Checks that the records of sparse ops share.
#pragma once

#include "oar/ops/core/infer.h"

namespace oar {

inline void check_rank(const Tensor& t, const char* argument, int rank) {
  user_check(t.rank() == rank, ErrorKind::InvalidArgument, "{} has shape {}; it must have {} {}.",
             argument, to_string(t.dims()), rank, rank == 1 ? "axis" : "axes");
}

inline void check_integers(const Tensor& t, const char* argument, int rank) {
  user_check(is_integral(t.dtype()) && t.dtype() != DType::Bool, ErrorKind::InvalidType,
             "{} has dtype {}; it must be an integer type.", argument, name_of(t.dtype()));
  check_rank(t, argument, rank);
}

// One number per element that is held.
inline void check_count(const Tensor& t, const char* argument, const Tensor& like,
                        const char* other) {
  user_check(same(t.dim(0), like.dim(0)), ErrorKind::InvalidArgument,
             "{} has {} entries and {} has {}; there must be one of each per element.", argument,
             t.dim(0).str(), other, like.dim(0).str());
}

// An attribute that is one size, which may be symbolic.
inline Dim one_size(Dims size) {
  user_check(size.size() == 1, ErrorKind::InvalidArgument, "size is {}; it must be one number.",
             to_string(size));
  user_check(!known_less(size[0], Dim(0)), ErrorKind::InvalidArgument,
             "size is {}; it cannot be negative.", size[0].str());
  return size[0];
}

}  // namespace oar
