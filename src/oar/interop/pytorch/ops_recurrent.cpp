// Recurrent layers: LSTM, GRU and plain cells, several layers deep and in both directions.
#include <limits>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

using List = std::vector<int64_t>;

struct Weights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};

struct Direction {
  Tensor states, last, last_cell;
};

// The steps of one layer in one direction. Oar adds one bias to the inputs and one to the state, as PyTorch does.
Direction run_direction(const Tensor& x, const Weights& w, const Tensor& hidden, const Tensor& cell,
                        const char* mode, bool backwards) {
  Tensor gates = matmul(x, w.input, false, true);
  if (w.input_bias.defined()) gates = gates + w.input_bias;
  const Tensor projection = w.projection.defined() ? swapaxes(w.projection, 0, 1) : Tensor{};
  const auto [states, cells] =
      recurrent(gates, w.hidden, hidden, cell, w.hidden_bias, projection, {}, mode, backwards);
  const int64_t first = backwards ? 0 : -1,
                behind = backwards ? 1 : std::numeric_limits<int64_t>::max();
  const auto end_of = [&](const Tensor& all) {
    return squeeze(slice(all, {0}, {first}, {behind}), IntArgs({0}));
  };
  return {states, end_of(states), cell.defined() ? end_of(cells) : Tensor{}};
}

Tensor row(const Tensor& x, int64_t at) {
  return squeeze(slice(x, {0}, {at}, {at + 1}), IntArgs({0}));
}

Value layers(const Call& c, const char* mode) {
  const bool lstm = std::string_view(mode) == "lstm";
  if (c.flag("train") && c.number("dropout") != 0)
    c.refuse("it is in training mode; call eval() before the export");
  Tensor x = c.tensor("input");
  const bool batched = x.rank() == 3, batch_first = batched && c.flag("batch_first");
  if (!batched) x = unsqueeze(x, {1});
  if (batch_first) x = swapaxes(x, 0, 1);
  const std::vector<Tensor> params = c.tensors("params");
  const int64_t count = c.integer("num_layers"), directions = c.flag("bidirectional") ? 2 : 1;
  const size_t parts = c.flag("has_biases") ? 4 : 2;
  if (count <= 0 || count > 1000) c.refuse(format("it has {} layers", count));
  const auto sets = static_cast<size_t>(count * directions);
  const bool projects = params.size() == sets * (parts + 1);
  const size_t step = parts + (projects ? 1 : 0);
  if (params.size() != sets * step) c.refuse("its weights do not fit its layers");
  Tensor hidden, cell;
  if (lstm) {
    const std::vector<Tensor> states = c.tensors("hx");
    if (states.size() != 2) c.refuse("its first state is incomplete");
    hidden = states[0];
    cell = states[1];
  } else {
    hidden = c.tensor("hx");
  }
  if (!batched) {
    hidden = unsqueeze(hidden, {1});
    if (lstm) cell = unsqueeze(cell, {1});
  }
  std::vector<Tensor> last, last_cells;
  for (int64_t layer = 0; layer < count; ++layer) {
    std::vector<Tensor> made;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t at = layer * directions + d;
      const Tensor* p = &params[static_cast<size_t>(at) * step];
      const Weights w{p[0], p[1], parts == 4 ? p[2] : Tensor{}, parts == 4 ? p[3] : Tensor{},
                      projects ? p[parts] : Tensor{}};
      const Direction one =
          run_direction(x, w, row(hidden, at), lstm ? row(cell, at) : Tensor{}, mode, d == 1);
      made.push_back(one.states);
      last.push_back(one.last);
      if (lstm) last_cells.push_back(one.last_cell);
    }
    x = made.size() == 1 ? made[0] : concat(made, 2);
  }
  if (batch_first) x = swapaxes(x, 0, 1);
  if (!batched) x = squeeze(x, IntArgs({1}));
  const auto ends = [&](const std::vector<Tensor>& all) {
    const Tensor made = stack(all, 0);
    return batched ? made : squeeze(made, IntArgs({1}));
  };
  std::vector<Tensor> results{x, ends(last)};
  if (lstm) results.push_back(ends(last_cells));
  return c.tuple(results);
}
Value lstm_layers(const Call& c) { return layers(c, "lstm"); }
Value gru_layers(const Call& c) { return layers(c, "gru"); }
Value tanh_layers(const Call& c) { return layers(c, "tanh"); }
Value relu_layers(const Call& c) { return layers(c, "relu"); }

Direction one_step(const Call& c, const Tensor& hidden, const Tensor& cell, const char* mode) {
  const Weights w{c.tensor("w_ih"), c.tensor("w_hh"), c.maybe("b_ih"), c.maybe("b_hh"), {}};
  return run_direction(unsqueeze(c.tensor("input"), {0}), w, hidden, cell, mode, false);
}
Value lstm_step(const Call& c) {
  const std::vector<Tensor> states = c.tensors("hx");
  if (states.size() != 2) c.refuse("its first state is incomplete");
  const Direction made = one_step(c, states[0], states[1], "lstm");
  return c.tuple({made.last, made.last_cell});
}
Value gru_step(const Call& c) { return one_step(c, c.tensor("hx"), {}, "gru").last; }
Value tanh_step(const Call& c) { return one_step(c, c.tensor("hx"), {}, "tanh").last; }
Value relu_step(const Call& c) { return one_step(c, c.tensor("hx"), {}, "relu").last; }

constexpr Converter kConverters[] = {
    {"lstm(input, hx, params, has_biases:bool, num_layers, dropout, train, bidirectional, batch_first)",
     lstm_layers},
    {"gru(input, hx, params, has_biases:bool, num_layers, dropout, train, bidirectional, batch_first)",
     gru_layers},
    {"rnn_tanh(input, hx, params, has_biases:bool, num_layers, dropout, train, bidirectional, batch_first)",
     tanh_layers},
    {"rnn_relu(input, hx, params, has_biases:bool, num_layers, dropout, train, bidirectional, batch_first)",
     relu_layers},
    {"lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)", lstm_step},
    {"gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)", gru_step},
    {"rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)", tanh_step},
    {"rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None)", relu_step},
};

}  // namespace

std::span<const Converter> recurrent_converters() { return kConverters; }

}  // namespace oar::pytorch
