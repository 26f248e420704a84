#include "oar/nn/rnn.h"

#include <cmath>

#include "oar/nn/fresh.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/dropout.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/recurrent.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar::nn {
namespace {

// x[index] along the first axis.
Tensor row_of(const Tensor& x, int64_t index) {
  return squeeze(slice(x, {0}, {index}, {index + 1}), IntArgs{0});
}

// A module that only gives its cells their names: "0.cell.weight_ih", "0.cell_fw.weight_ih".
struct RnnLayer : Module {
  RnnCell& add(const char* name, std::unique_ptr<RnnCell> cell) {
    return static_cast<RnnCell&>(register_module(name, std::move(cell)));
  }
};

}  // namespace

RnnCell::RnnCell(std::string mode, int64_t input_size, int64_t hidden_size)
    : mode_(std::move(mode)) {
  check_positive("input_size", input_size);
  check_positive("hidden_size", hidden_size);
  const int64_t rows = hidden_size * (mode_ == "lstm" ? 4 : mode_ == "gru" ? 3 : 1);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto drawn = [&](const Shape& shape) {
    const Tensor made = unfilled(shape);
    init::uniform(made, -bound, bound);
    return made;
  };
  weight_ih = register_parameter("weight_ih", drawn({rows, input_size}));
  weight_hh = register_parameter("weight_hh", drawn({rows, hidden_size}));
  bias_ih = register_parameter("bias_ih", drawn({rows}), Role::Bias);
  bias_hh = register_parameter("bias_hh", drawn({rows}), Role::Bias);
}

std::string RnnCell::kind() const {
  return mode_ == "lstm" ? "lstm_cell" : mode_ == "gru" ? "gru_cell" : "simple_rnn_cell";
}

RnnCell::Result RnnCell::run(const Tensor& x, const Tensor& hidden, const Tensor& cell,
                             const Tensor& length, bool reverse) const {
  const bool gru = mode_ == "gru", lstm = mode_ == "lstm";
  const Tensor gates = linear(x, transpose(weight_ih, {1, 0}), gru ? bias_ih : bias_ih + bias_hh);
  auto [outputs, cells] = recurrent(gates, weight_hh, hidden, cell, gru ? bias_hh : Tensor(), {},
                                    length, mode_, reverse);
  const int64_t steps = x.dim(0).value();
  if (steps == 0) return {outputs, hidden, cell};
  const int64_t last = reverse ? 0 : steps - 1;
  Result result{outputs, row_of(outputs, last), lstm ? row_of(cells, last) : Tensor()};
  if (length.defined()) {
    const Tensor times =
        reshape(range(Scalar(0), Scalar(steps), Scalar(1), length.dtype()), {steps, 1, 1});
    const Tensor running = less_than(times, reshape(length, {1, -1, 1}));
    result.outputs = where(running, outputs, zeros({}, outputs.dtype()));
  }
  return result;
}

RnnBase::RnnBase(std::string mode, int64_t input_size, int64_t hidden_size, RnnOptions options)
    : mode_(std::move(mode)), hidden_size_(hidden_size), options_(std::move(options)) {
  check_positive("num_layers", options_.num_layers);
  user_check(options_.direction == "forward" || options_.direction == "bidirect" ||
                 options_.direction == "bidirectional",
             ErrorKind::InvalidArgument,
             "direction is '{}'.\nhint: Pass forward, bidirect or bidirectional.",
             options_.direction);
  for (int64_t number = 0; number < options_.num_layers; ++number)
    add_layer(number, number == 0 ? input_size : hidden_size * (bidirectional() ? 2 : 1));
}

void RnnBase::add_layer(int64_t number, int64_t size) {
  auto layer = std::make_unique<RnnLayer>();
  const size_t before = cells_.size();
  for (int way = 0; way < (bidirectional() ? 2 : 1); ++way) {
    const char* name = !bidirectional() ? "cell" : way == 0 ? "cell_fw" : "cell_bw";
    cells_.push_back(&layer->add(name, std::make_unique<RnnCell>(mode_, size, hidden_size_)));
  }
  register_module(std::to_string(number), std::move(layer));
  for (size_t i = before; i < cells_.size(); ++i) {
    const std::string end = format("_l{}{}", number, i == before ? "" : "_reverse");
    register_alias("weight_ih" + end, cells_[i]->weight_ih);
    register_alias("weight_hh" + end, cells_[i]->weight_hh);
    register_alias("bias_ih" + end, cells_[i]->bias_ih);
    register_alias("bias_hh" + end, cells_[i]->bias_hh);
  }
}

RnnBase::Result RnnBase::run(const Tensor& input, const Tensor& hidden, const Tensor& cell,
                             const Tensor& length) {
  user_check(input.rank() == 3, ErrorKind::InvalidArgument,
             "a recurrent network takes sequences with 3 axes, but got {}.", input.describe());
  const bool lstm = mode_ == "lstm";
  Tensor x = options_.time_major ? input : assign(transpose(input, {1, 0, 2}));
  const Tensor blank = zeros({x.dim(1), hidden_size_}, x.dtype());
  std::vector<Tensor> outputs, hiddens, cells;
  const size_t ways = bidirectional() ? 2 : 1;
  for (size_t i = 0; i < cells_.size(); ++i) {
    if (i > 0 && i % ways == 0) x = dropout(x, options_.dropout, std::nullopt, is_training());
    const auto place = static_cast<int64_t>(i);
    const Tensor first = hidden.defined() ? row_of(hidden, place) : blank;
    const Tensor first_cell = !lstm ? Tensor() : cell.defined() ? row_of(cell, place) : blank;
    const RnnCell::Result made = cells_[i]->run(x, first, first_cell, length, i % ways == 1);
    outputs.push_back(made.outputs);
    hiddens.push_back(made.hidden);
    cells.push_back(made.cell);
    if (i % ways != ways - 1) continue;
    x = ways == 1 ? outputs[0] : concat(outputs, -1);
    outputs.clear();
  }
  return {options_.time_major ? x : transpose(x, {1, 0, 2}), stack(hiddens, 0),
          lstm ? stack(cells, 0) : Tensor()};
}

SimpleRNN::SimpleRNN(int64_t input_size, int64_t hidden_size, RnnOptions options,
                     const std::string& activation)
    : RnnBase(activation, input_size, hidden_size, std::move(options)) {
  user_check(activation == "tanh" || activation == "relu", ErrorKind::InvalidArgument,
             "the activation is '{}'.\nhint: Pass tanh or relu.", activation);
}

}  // namespace oar::nn
