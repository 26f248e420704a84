// What the records of parameter updates (optimizer_*.cpp) share.
#pragma once

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/selected_rows.h"
#include "oar/ops/gen/shape.h"

namespace oar {

inline void check_list(TensorList list, const char* name, TensorList params) {
  user_check(list.size() == params.size(), ErrorKind::InvalidArgument,
             "{} has {} tensors and params {}; there must be one for each.", name, list.size(),
             params.size());
  for (size_t i = 0; i < list.size(); ++i) {
    user_check(same(list[i].shape(), params[i].shape()), ErrorKind::InvalidArgument,
               "{}[{}] has shape {} and its parameter {}; they must be equal.", name, i,
               to_string(list[i].dims()), to_string(params[i].dims()));
    user_check(is_floating(list[i].dtype()), ErrorKind::InvalidType,
               "{}[{}] has dtype {}; it must be a float.", name, i, name_of(list[i].dtype()));
  }
}

inline void check_scalar(const Tensor& t, const char* name) {
  user_check(t.rank() == 0 && is_floating(t.dtype()), ErrorKind::InvalidArgument,
             "{} is {}; it must be a 0-d float.", name, t.describe());
}

inline Metas like_params(TensorList params) {
  Metas metas;
  for (const Tensor& t : params) metas.push_back(infer::like(t));
  return metas;
}

inline std::vector<Tensor> written(TensorList params) { return {params.begin(), params.end()}; }

// The gradient as a dense tensor in the precision of updates.
inline Tensor plain(const Tensor& grad) { return widened(selected_rows_to_dense(grad)); }

inline Tensor decayed(const Tensor& grad, const Tensor& param, double weight_decay) {
  return weight_decay == 0 ? plain(grad) : plain(grad) + widened(param) * weight_decay;
}

// One number for each parameter, which the update advances.
inline void check_numbers(TensorList list, const char* name, TensorList params) {
  user_check(list.size() == params.size(), ErrorKind::InvalidArgument,
             "{} has {} tensors and params {}; there must be one for each.", name, list.size(),
             params.size());
  for (size_t i = 0; i < list.size(); ++i)
    user_check(list[i].rank() == 1 && same(list[i].dim(0), 1), ErrorKind::InvalidArgument,
               "{}[{}] has shape {}; it must be [1].", name, i, to_string(list[i].dims()));
}

// Such a number as a 0-d tensor of the dtype that a parameter is updated in.
inline Tensor number_for(const Tensor& number, const Tensor& param) {
  return narrowed(reshape(number, Dims()), param.dtype());
}

inline TensorSpec scalar() { return of_dtype(positive({}), DType::Float32); }
inline TensorSpec count() { return of_dtype(filled_with({3}, {}), DType::Float32); }
inline TensorSpec number(double value) {
  return of_dtype(filled_with({value}, {1}), DType::Float32);
}

inline Specs two() { return {t({4, 3}), t({5})}; }

inline Specs two_positive() { return {positive({4, 3}), positive({5})}; }

inline Specs two_numbers(double value) { return {number(value), number(value)}; }

// The running mean of something: keeps `rate` of the old one.
inline Tensor mixed(const Tensor& old, const Tensor& value, double rate) {
  return widened(old) * rate + value * (1 - rate);
}

struct NamedList {
  const char* name;
  TensorList list;
};

inline Metas check_update(TensorList params, std::initializer_list<NamedList> like_params_lists,
                          const Tensor& lr) {
  check_list(params, "params", params);
  for (const NamedList& l : like_params_lists) check_list(l.list, l.name, params);
  check_scalar(lr, "lr");
  return like_params(params);
}

}  // namespace oar
