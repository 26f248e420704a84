// Activations as layers. Arguments and defaults are those of the Python layers.
#pragma once

#include <tuple>

#include "oar/base/api.h"
#include "oar/nn/module.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/gates.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shrink.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/trigonometry.h"

namespace OAR_API oar {
namespace nn {

// The layer that calls a function of one tensor and some settings.
template <auto Function, class... Settings>
class Activation : public Module {
 public:
  explicit Activation(Settings... settings) : settings_(settings...) {}
  Tensor forward(const Tensor& x) override {
    return std::apply([&](const Settings&... settings) { return Function(x, settings...); },
                      settings_);
  }

 private:
  std::tuple<Settings...> settings_;
};

using ReLU = Activation<&relu>;
using ReLU6 = Activation<&relu6>;
using Sigmoid = Activation<&sigmoid>;
using Tanh = Activation<&tanh>;
using Silu = Activation<&silu>;
using Swish = Activation<&swish>;
using Mish = Activation<&mish>;
using Hardswish = Activation<&hardswish>;
using LogSigmoid = Activation<&log_sigmoid>;
using Softsign = Activation<&softsign>;
using Tanhshrink = Activation<&tanhshrink>;

struct Hardsigmoid : Activation<&hardsigmoid, double, double> {
  explicit Hardsigmoid(double slope = 0.1666667, double offset = 0.5) : Activation(slope, offset) {}
};
struct GELU : Activation<&gelu, bool> {
  explicit GELU(bool approximate = false) : Activation(approximate) {}
};
struct CELU : Activation<&celu, double> {
  explicit CELU(double alpha = 1) : Activation(alpha) {}
};
struct ELU : Activation<&elu, double> {
  explicit ELU(double alpha = 1) : Activation(alpha) {}
};
struct SELU : Activation<&selu, double, double> {
  explicit SELU(double scale = 1.0507009873554805, double alpha = 1.6732632423543772)
      : Activation(scale, alpha) {}
};
struct LeakyReLU : Activation<&leaky_relu, double> {
  explicit LeakyReLU(double negative_slope = 0.01) : Activation(negative_slope) {}
};
struct Hardshrink : Activation<&hardshrink, double> {
  explicit Hardshrink(double threshold = 0.5) : Activation(threshold) {}
};
struct Softshrink : Activation<&softshrink, double> {
  explicit Softshrink(double threshold = 0.5) : Activation(threshold) {}
};
struct Hardtanh : Activation<&hardtanh, double, double> {
  explicit Hardtanh(double min = -1, double max = 1) : Activation(min, max) {}
};
struct Softplus : Activation<&softplus, double, double> {
  explicit Softplus(double beta = 1, double threshold = 20) : Activation(beta, threshold) {}
};
struct ThresholdedReLU : Activation<&thresholded_relu, double, double> {
  explicit ThresholdedReLU(double threshold = 1, double value = 0) : Activation(threshold, value) {}
};
struct Maxout : Activation<&maxout, int64_t, int64_t> {
  explicit Maxout(int64_t groups, int64_t axis = 1) : Activation(groups, axis) {}
};
struct GLU : Activation<&glu, int64_t> {
  explicit GLU(int64_t axis = -1) : Activation(axis) {}
};
struct Softmax : Activation<&softmax, int64_t, std::optional<DType>> {
  explicit Softmax(int64_t axis = -1) : Activation(axis, std::nullopt) {}
};
struct LogSoftmax : Activation<&log_softmax, int64_t, std::optional<DType>> {
  explicit LogSoftmax(int64_t axis = -1) : Activation(axis, std::nullopt) {}
};

// x where it is positive, else x times a slope that is learnt: one, or one for each channel.
class PReLU : public Module {
 public:
  explicit PReLU(int64_t num_parameters = 1, double init = 0.25, std::string data_format = "NCHW");
  Tensor forward(const Tensor& x) override;

  Tensor weight;  // in files "_weight", as Paddle calls it

 private:
  std::string data_format_;
};

}  // namespace nn
}  // namespace oar
