// Short names for autograd's tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/base/error.h"
#include "oar/ops/core/operators.h"

namespace oar::test {

using Values = std::vector<double>;

// A vector of float64 that requires a gradient.
inline Tensor leaf(const Values& values, Shape shape = {}) {
  if (shape.empty()) shape = Shape{static_cast<int64_t>(values.size())};
  const Tensor t = Tensor::from_vector(values, shape, DType::Float64);
  set_stop_gradient(t, false);
  return t;
}
inline Tensor constant(const Values& values) {
  return Tensor::from_vector(values, Shape{static_cast<int64_t>(values.size())}, DType::Float64);
}

inline Values values_of(const Tensor& t) { return t.defined() ? t.to_vector<double>() : Values{}; }
inline Values grad_of(const Tensor& t) {
  const History* history = maybe_history(t);
  return history ? values_of(history->grad.content()) : Values{};
}

inline void run_backward(const Tensor& root, BackwardOptions options = {}) {
  backward(TensorList(&root, 1), {}, options);
}
inline Tensor grad_wrt(const Tensor& output, const Tensor& input, BackwardOptions options = {}) {
  return grad(TensorList(&output, 1), TensorList(&input, 1), {}, options)[0];
}

template <class F>
Error error_of(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::Internal, "nothing was thrown"};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace oar::test
