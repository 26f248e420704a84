// Recurrent networks of several layers, in one or both directions. Arguments and defaults are those of the Python layers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oar/base/api.h"
#include "oar/nn/module.h"

namespace OAR_API oar {
namespace nn {

// The weights of one layer in one direction.
class RnnCell : public Module {
 public:
  // `mode` is "tanh", "relu", "gru" or "lstm".
  RnnCell(std::string mode, int64_t input_size, int64_t hidden_size);

  struct Result {
    Tensor outputs;       // [steps, batch, hidden]
    Tensor hidden, cell;  // after the last step; cell is undefined unless "lstm"
  };
  // x is [steps, batch, input].
  Result run(const Tensor& x, const Tensor& hidden, const Tensor& cell, const Tensor& length,
             bool reverse) const;

  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  std::string kind() const override;

 private:
  std::string mode_;
};

struct RnnOptions {
  int64_t num_layers = 1;
  std::string direction = "forward";  // or "bidirect", "bidirectional"
  bool time_major = false;            // x is [steps, batch, size] instead of [batch, steps, size]
  double dropout = 0;                 // between layers
};

class RnnBase : public Module {
 public:
  struct Result {
    Tensor outputs;  // of the last layer, at each step
    Tensor hidden;   // [layers * directions, batch, hidden], after the last step
    Tensor cell;     // the same of an LSTM, else undefined
  };
  // States to begin with are zeros unless given. With `length`, [batch], steps beyond it are padding.
  Result run(const Tensor& x, const Tensor& hidden = {}, const Tensor& cell = {},
             const Tensor& length = {});
  // The outputs alone.
  Tensor forward(const Tensor& x) override { return run(x).outputs; }

 protected:
  RnnBase(std::string mode, int64_t input_size, int64_t hidden_size, RnnOptions options);

 private:
  bool bidirectional() const { return options_.direction != "forward"; }
  void add_layer(int64_t number, int64_t size);

  std::string mode_;
  int64_t hidden_size_;
  RnnOptions options_;
  std::vector<RnnCell*> cells_;  // layer by layer, forward before backward
};

// activation(W x + b + U h + c) at each step.
class SimpleRNN : public RnnBase {
 public:
  SimpleRNN(int64_t input_size, int64_t hidden_size, RnnOptions options = {},
            const std::string& activation = "tanh");
};

class LSTM : public RnnBase {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, RnnOptions options = {})
      : RnnBase("lstm", input_size, hidden_size, std::move(options)) {}
};

class GRU : public RnnBase {
 public:
  GRU(int64_t input_size, int64_t hidden_size, RnnOptions options = {})
      : RnnBase("gru", input_size, hidden_size, std::move(options)) {}
};

}  // namespace nn
}  // namespace oar
