// Initial values for parameters, written into an existing tensor. They follow the random seed,
// and with the same seed produce the same values as the Python initialisers.
#pragma once

#include <string_view>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace nn::init {

void constant(const Tensor& t, double value);
void uniform(const Tensor& t, double low = -1, double high = 1);
void normal(const Tensor& t, double mean = 0, double std = 1);
// Cut off at a and b standard deviations from the mean.
void truncated_normal(const Tensor& t, double mean = 0, double std = 1, double a = -2,
                      double b = 2);
// After Glorot and Bengio: the variance is 2 / (fan_in + fan_out).
void xavier_uniform(const Tensor& t, double gain = 1);
void xavier_normal(const Tensor& t, double gain = 1);
// After He et al., for layers before a ReLU: the variance is 2 / fan_in.
struct KaimingOptions {
  double negative_slope = 0;
  const char* nonlinearity = "relu";  // see gain_of
  const char* mode = "fan_in";        // or "fan_out"
};
void kaiming_uniform(const Tensor& t, const KaimingOptions& options = {});
void kaiming_normal(const Tensor& t, const KaimingOptions& options = {});
// Rows, or columns, that are orthonormal, times the gain; t has two axes or more.
void orthogonal(const Tensor& t, double gain = 1);
// These values, in the dtype of t.
void assign(const Tensor& t, const Tensor& values);
// A convolution that passes its input through.
void dirac(const Tensor& t, int64_t groups = 1);

// The factor by which an activation changes the spread of its input: "linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu".
double gain_of(std::string_view nonlinearity, double negative_slope = 0.01);

// Inputs and outputs of one unit: a weight is [in, out] or [out, in, kernel...].
struct Fans {
  double in, out;
};
Fans fans_of(const Tensor& t);

}  // namespace nn::init
}  // namespace oar
