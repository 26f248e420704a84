// Recurrent layers.
#include "oar/compiler/capture/control_flow.h"
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

// Which sequences go on at each step, [steps, batch, 1], as 0 and 1; none if all are as long as the longest.
Tensor goes_on(const Call& c, Dim steps, DType dtype) {
  if (!c.has(4)) return {};
  const Tensor at = cumsum_along(full({steps}, 1.0, DType::Float32), 0, false, false);
  const Tensor length = reshape(cast(c.tensor(4), DType::Float32), {1, -1, 1});
  return cast(less_equal(reshape(at, {steps, Dim(1), Dim(1)}), length), dtype);
}
// A sequence that has ended keeps its state.
Tensor kept(const Tensor& fresh, const Tensor& old, const std::vector<Tensor>& v, size_t on) {
  return on < v.size() ? old + v[on] * (fresh - old) : fresh;
}

// Step by step, for cells that Oar's own op does not have. Gates are in Oar's order.
std::pair<Tensor, Tensor> with_peepholes(const Tensor& gates, const Tensor& weight,
                                         const Tensor& hidden, const Tensor& cell,
                                         const Tensor& peepholes, const Tensor& on,
                                         bool backwards) {
  const std::vector<Tensor> p = chunk(peepholes, 3, 0);  // of i, o, f
  const auto step = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const std::vector<Tensor> g = chunk(v[2] + matmul(v[0], weight, false, true), 4, -1);
    const Tensor i = sigmoid(g[0] + p[0] * v[1]), f = sigmoid(g[1] + p[2] * v[1]);
    const Tensor fresh = f * v[1] + i * tanh(g[2]);
    const Tensor now = kept(fresh, v[1], v, 3);
    const Tensor h = kept(sigmoid(g[3] + p[1] * fresh) * tanh(fresh), v[0], v, 3);
    return {h, now, h, now};
  };
  std::vector<Tensor> rows{gates};
  if (on.defined()) rows.push_back(on);
  const std::vector<Tensor> made = scan(step, {hidden, cell}, rows, backwards);
  return {made[2], made[3]};
}
Tensor reset_first(const Tensor& gates, const Tensor& weight, const Tensor& hidden,
                   const Tensor& bias, const Tensor& on, bool backwards) {
  const std::vector<Tensor> w = chunk(weight, 3, 0);  // r, z, h
  const Tensor all = bias.defined() ? gates + bias : gates;
  const auto step = [&](const std::vector<Tensor>& v) -> std::vector<Tensor> {
    const std::vector<Tensor> g = chunk(v[1], 3, -1);
    const Tensor r = sigmoid(g[0] + matmul(v[0], w[0], false, true));
    const Tensor z = sigmoid(g[1] + matmul(v[0], w[1], false, true));
    const Tensor candidate = tanh(g[2] + matmul(r * v[0], w[2], false, true));
    const Tensor h = kept((1.0 - z) * candidate + z * v[0], v[0], v, 2);
    return {h, h};
  };
  std::vector<Tensor> rows{all};
  if (on.defined()) rows.push_back(on);
  return scan(step, {hidden}, rows, backwards)[1];
}

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
  const bool lstm = cell.gates == 4;
  Tensor x = c.tensor(0);  // [steps, batch, features]
  const bool batch_first = c.flag("layout");
  if (batch_first) x = transpose(x, {1, 0, 2});
  const std::string direction = c.text("direction", "forward");
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const int64_t hidden = c.integer("hidden_size", c.tensor(2).dim(2).value());
  const Dim batch = x.dim(1);
  const Tensor on = goes_on(c, x.dim(0), x.dtype());
  const Tensor length = c.has(4) ? cast(c.tensor(4), DType::Int64) : Tensor{};
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
    const bool resets_first = cell.gates == 3 && !c.flag("linear_before_reset");
    Tensor states, cells;
    if (lstm && c.has(7))
      std::tie(states, cells) = with_peepholes(own_bias.defined() ? gates + own_bias : gates, r,
                                               start(5), first_cell, of(7, 0), on, backwards);
    else if (resets_first)
      states = reset_first(gates, r, start(5), own_bias, on, backwards);
    else
      std::tie(states, cells) =
          recurrent(gates, r, start(5), first_cell, own_bias, {}, length, cell.mode, backwards);
    const int64_t first = backwards ? 0 : -1;
    const int64_t behind = backwards ? 1 : std::numeric_limits<int64_t>::max();
    all.push_back(on.defined() ? states * on : states);  // rows after the end are zeros
    last_states.push_back(squeeze(slice(states, {0}, {first}, {behind}), IntArgs({0})));
    if (lstm) last_cells.push_back(squeeze(slice(cells, {0}, {first}, {behind}), IntArgs({0})));
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
