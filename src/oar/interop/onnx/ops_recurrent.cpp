// Recurrent layers.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

using List = std::vector<int64_t>;

// ONNX orders the gates of an LSTM as i, o, f, c and those of a GRU as z, r, h; Oar as i, f, c, o and r, z, h.
Tensor reordered(const Tensor& gates, const std::vector<int64_t>& order) {
  const std::vector<Tensor> parts = chunk(gates, static_cast<int64_t>(order.size()), 0);
  std::vector<Tensor> sorted;
  for (const int64_t i : order) sorted.push_back(parts[static_cast<size_t>(i)]);
  return concat(sorted, 0);
}

struct Cell {
  size_t gates;
  const char* mode;
  List order;
};

Values recurrent_layer(const Call& c, const Cell& cell) {
  for (const char* unusual : {"activations", "clip", "activation_alpha"})
    if (c.given(unusual)) {
      const Attribute* a = c.node.find(unusual);
      const bool usual = a->texts == std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"} ||
                         a->texts == std::vector<std::string>{"Sigmoid", "Tanh"} ||
                         a->texts == std::vector<std::string>{"Tanh"} ||
                         a->texts == std::vector<std::string>{"Sigmoid", "Tanh", "Tanh",
                                                              "Sigmoid", "Tanh", "Tanh"};
      if (!usual) c.refuse(format("it has {}", unusual));
    }
  if (c.has(7)) c.refuse("it has peepholes");
  if (c.has(4)) c.refuse("its sequences have different lengths");
  const bool lstm = cell.gates == 4;
  if (cell.gates == 3 && !c.flag("linear_before_reset"))
    c.refuse("its reset gate acts before the product");
  Tensor x = c.tensor(0);  // [steps, batch, features]
  const bool batch_first = c.flag("layout");
  if (batch_first) x = transpose(x, {1, 0, 2});
  const std::string direction = c.text("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t hidden = c.integer("hidden_size", c.tensor(2).dim(2).value());
  const Dim batch = x.dim(1);
  std::vector<Tensor> all, last_states, last_cells;
  for (int64_t d = 0; d < directions; ++d) {
    const auto of = [&](size_t i, int64_t axis) {
      return squeeze(slice(c.tensor(i), {axis}, {d}, {d + 1}), IntArgs({axis}));
    };
    const Tensor w = reordered(of(1, 0), cell.order), r = reordered(of(2, 0), cell.order);
    Tensor in_bias, own_bias;
    if (c.has(3)) {
      const std::vector<Tensor> both = chunk(of(3, 0), 2, 0);
      in_bias = reordered(both[0], cell.order);
      own_bias = reordered(both[1], cell.order);
    }
    const auto start = [&](size_t i) {
      return c.has(i) ? of(i, batch_first ? 1 : 0) : zeros({batch, hidden}, x.dtype());
    };
    Tensor gates = matmul(x, w, false, true);
    if (in_bias.defined()) gates = gates + in_bias;
    const Tensor first_cell = lstm ? start(6) : Tensor{};
    const bool backwards = direction == "reverse" || d == 1;
    const auto [states, cells] =
        recurrent(gates, r, start(5), first_cell, own_bias, {}, {}, cell.mode, backwards);
    const int64_t end = backwards ? 0 : x.dim(0).value() - 1;
    all.push_back(states);
    last_states.push_back(squeeze(slice(states, {0}, {end}, {end + 1}), IntArgs({0})));
    if (lstm) last_cells.push_back(squeeze(slice(cells, {0}, {end}, {end + 1}), IntArgs({0})));
  }
  const int64_t at = batch_first ? 1 : 0;
  Tensor states = stack(all, 1);  // [steps, directions, batch, hidden]
  if (batch_first) states = transpose(states, {2, 0, 1, 3});
  Values results{states, stack(last_states, at)};
  if (lstm) results.emplace_back(stack(last_cells, at));
  return results;
}
Values lstm_layer(const Call& c) { return recurrent_layer(c, {4, "lstm", {0, 2, 3, 1}}); }
Values gru_layer(const Call& c) { return recurrent_layer(c, {3, "gru", {1, 0, 2}}); }
Values rnn_layer(const Call& c) { return recurrent_layer(c, {1, "tanh", {0}}); }

constexpr Converter kConverters[] = {{"LSTM", lstm_layer}, {"GRU", gru_layer}, {"RNN", rnn_layer}};

}  // namespace

std::span<const Converter> recurrent_converters() { return kConverters; }

}  // namespace oar::onnx
