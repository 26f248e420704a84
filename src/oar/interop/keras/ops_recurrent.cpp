// Recurrent layers, and layers that run another one along the steps.
#include <optional>
#include <tuple>

#include "oar/compiler/capture/control_flow.h"
#include "oar/interop/keras/call.h"
#include "oar/interop/tensorflow_math.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

using List = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;

enum class Gates : uint8_t { Simple, Lstm, Gru };

std::optional<Gates> gates_of(std::string_view type) {
  if (type.ends_with("Cell")) type.remove_suffix(4);
  if (type.starts_with("CuDNN")) type.remove_prefix(5);
  if (type == "SimpleRNN") return Gates::Simple;
  if (type == "LSTM" || type == "ConvLSTM1D" || type == "ConvLSTM2D" || type == "ConvLSTM3D")
    return Gates::Lstm;
  if (type == "GRU") return Gates::Gru;
  return std::nullopt;
}
int64_t count_of(Gates gates) { return gates == Gates::Simple ? 1 : gates == Gates::Lstm ? 4 : 3; }

struct Cell {
  Gates gates = Gates::Simple;
  Tensor kernel, recurrent, bias, own_bias;  // the last one is added to what the state gives
  bool reset_after = false;
  size_t image_axes = 0;  // of convolutions in place of products
};

// How a layer goes along the steps.
struct Along {
  bool backwards = false, zeros_where_masked = false;
};

// ---- weights -----------------------------------------------------------------------------------

// The layout of cuDNN, gate after gate: kernels in the order of columns, weights of the state transposed.
Tensor from_cudnn(const Tensor& kernel, int64_t gates, bool by_columns) {
  Tensors parts = chunk(kernel, gates, -1);
  for (Tensor& part : parts) {
    const Dim rows = part.dim(0), columns = part.dim(1);
    part = transpose(by_columns ? reshape(part, {columns, rows}) : part, {1, 0});
  }
  return concat(parts, -1);
}

Cell cell_of(const Call& c) {
  const auto gates = gates_of(c.layer.type);
  if (!gates) c.refuse("it is no recurrent layer that Oar knows");
  const int64_t count = count_of(*gates);
  const Call part =
      c.layer.weights.by_place() && !c.layer.type.ends_with("Cell") ? c.part({"cell"}) : c;
  Cell cell{*gates, part.weight("kernel"), part.weight("recurrent_kernel"), {}, {}};
  const bool cudnn = c.layer.type.starts_with("CuDNN");
  if (c.flag("use_bias", true)) cell.bias = part.weight("bias");
  if (cudnn) {
    cell.kernel = from_cudnn(cell.kernel, count, true);
    cell.recurrent = from_cudnn(cell.recurrent, count, false);
    const Tensors both = chunk(cell.bias, 2, 0);
    cell.bias = both[0];
    cell.own_bias = both[1];
  }
  cell.reset_after = *gates == Gates::Gru && (cudnn || c.flag("reset_after", false));
  if (cell.reset_after && !cudnn && cell.bias.defined()) {
    const Tensors both = chunk(cell.bias, 2, 0);
    cell.bias = reshape(both[0], {-1});
    cell.own_bias = reshape(both[1], {-1});
  }
  cell.image_axes = static_cast<size_t>(cell.kernel.rank() - 2);
  return cell;
}

// ---- steps -------------------------------------------------------------------------------------

Tensor convolved(const Tensor& x, const Tensor& kernel, interop::Window w) {
  const auto axes = static_cast<int64_t>(w.kernel.size());
  List order{axes + 1, axes};
  for (int64_t i = 0; i < axes; ++i) order.push_back(i);
  Tensor filter = transpose(kernel, order), image = x;
  if (axes == 1) {
    filter = unsqueeze(filter, {2});
    image = unsqueeze(image, {1});
    for (List* list : {&w.kernel, &w.stride, &w.dilation}) list->insert(list->begin(), 1);
  }
  const Tensor y = interop::convolve_last(image, filter, {}, w, 1);
  return axes == 1 ? squeeze(y, IntArgs({1})) : y;
}

interop::Window window_of(const Call& c, const Tensor& kernel, bool of_state) {
  interop::Window w;
  const auto axes = static_cast<size_t>(kernel.rank() - 2);
  for (size_t i = 0; i < axes; ++i) w.kernel.push_back(kernel.dim(static_cast<int64_t>(i)).value());
  w.stride = of_state ? List(axes, 1) : c.list("strides", axes, 1);
  w.dilation = of_state ? List(axes, 1) : c.list("dilation_rate", axes, 1);
  w.same = of_state || c.text("padding", "valid") == "same";
  return w;
}

// What all steps get from the inputs.
Tensor gates_from(const Call& c, const Cell& cell, const Tensor& x) {
  Tensor gates;
  if (cell.image_axes == 0) {
    gates = matmul(x, cell.kernel);
  } else {
    if (c.channels_first()) c.refuse("its channels come first");
    std::vector<Dim> images{x.dim(0) * x.dim(1)}, back{x.dim(0), x.dim(1)};
    for (int64_t axis = 2; axis < x.rank(); ++axis) images.push_back(x.dim(axis));
    gates = convolved(reshape(x, images), cell.kernel, window_of(c, cell.kernel, false));
    for (int64_t axis = 1; axis < gates.rank(); ++axis) back.push_back(gates.dim(axis));
    gates = reshape(gates, back);
  }
  return cell.bias.defined() ? gates + cell.bias : gates;
}

class Step {
 public:
  Step(const Call& c, const Cell& cell) : c_(c), cell_(cell) {}

  // The new states; the first one is the output.
  Tensors operator()(const Tensor& gates, const Tensors& states) const {
    if (cell_.gates == Gates::Simple) return {inner(gates + from(states[0], cell_.recurrent))};
    return cell_.gates == Gates::Lstm ? lstm(gates, states) : gru(gates, states[0]);
  }

 private:
  Tensor from(const Tensor& state, const Tensor& weight) const {
    return cell_.image_axes == 0 ? matmul(state, weight)
                                 : convolved(state, weight, window_of(c_, weight, true));
  }
  Tensor inner(const Tensor& x) const {
    const JsonValue* activation = c_.find("activation");
    return activation ? activate(c_, x, activation) : tanh(x);
  }
  Tensor gate(const Tensor& x) const {
    const JsonValue* activation = c_.find("recurrent_activation");
    return activation ? activate(c_, x, activation) : sigmoid(x);
  }
  Tensors lstm(const Tensor& gates, const Tensors& states) const {
    Tensor all = gates + from(states[0], cell_.recurrent);
    if (cell_.own_bias.defined()) all = all + cell_.own_bias;
    const Tensors g = chunk(all, 4, -1);  // input, forget, candidate, output
    const Tensor now = gate(g[1]) * states[1] + gate(g[0]) * inner(g[2]);
    return {gate(g[3]) * inner(now), now};
  }
  Tensors gru(const Tensor& gates, const Tensor& state) const {
    const Tensors g = chunk(gates, 3, -1);  // update, reset, candidate
    if (cell_.reset_after) {
      Tensor all = from(state, cell_.recurrent);
      if (cell_.own_bias.defined()) all = all + cell_.own_bias;
      const Tensors h = chunk(all, 3, -1);
      const Tensor z = gate(g[0] + h[0]), r = gate(g[1] + h[1]);
      return {z * state + (1.0 - z) * inner(g[2] + r * h[2])};
    }
    const Tensors w = chunk(cell_.recurrent, 3, -1);
    const Tensor z = gate(g[0] + from(state, w[0])), r = gate(g[1] + from(state, w[1]));
    return {z * state + (1.0 - z) * inner(g[2] + from(r * state, w[2]))};
  }

  const Call& c_;
  const Cell& cell_;
};

// ---- sequences ---------------------------------------------------------------------------------

struct Sequence {
  Tensor outputs;  // [steps, batch, …]
  Tensors states;  // the last ones
};

bool is_usual(const Call& c, const Cell& cell) {
  if (cell.image_axes != 0 || c.text("activation", "tanh") != "tanh") return false;
  if (cell.gates == Gates::Simple) return true;
  if (c.text("recurrent_activation", "sigmoid") != "sigmoid") return false;
  return cell.gates == Gates::Lstm || cell.reset_after;
}

// By Oar's own op, whose gates of a GRU begin with the reset.
Sequence by_op(const Cell& cell, Tensor gates, const Tensors& states) {
  Tensor weight = transpose(cell.recurrent, {1, 0}), bias = cell.own_bias;
  if (cell.gates == Gates::Gru) {
    const auto reset_first = [](const Tensor& t, int64_t axis) {
      const Tensors g = chunk(t, 3, axis);
      return concat({g[1], g[0], g[2]}, axis);
    };
    gates = reset_first(gates, -1);
    weight = reset_first(weight, 0);
    if (bias.defined()) bias = reset_first(bias, 0);
  }
  const char* mode = cell.gates == Gates::Lstm ? "lstm" : cell.gates == Gates::Gru ? "gru" : "tanh";
  const auto [hidden, cells] =
      recurrent(gates, weight, states[0], cell.gates == Gates::Lstm ? states[1] : Tensor{}, bias,
                {}, {}, mode, false);
  const auto last = [](const Tensor& all) {
    return squeeze(slice(all, {0}, {-1}, {std::numeric_limits<int64_t>::max()}), IntArgs({0}));
  };
  Sequence made{hidden, {last(hidden)}};
  if (cell.gates == Gates::Lstm) made.states.push_back(last(cells));
  return made;
}

// `counts` is [steps, batch, 1, …] or undefined: a step that does not count keeps the states and repeats the output.
Sequence by_steps(const Step& step, const Tensor& gates, const Tensors& states,
                  const Tensor& counts, bool zeros_where_masked) {
  const size_t n = states.size();
  Tensors carried = states, sequences{gates};
  if (counts.defined()) {
    sequences.push_back(counts);
    carried.push_back(zeros_like(states[0]));  // the last output
  }
  const auto body = [&](const Tensors& v) -> Tensors {
    const Tensors before(v.begin(), v.begin() + static_cast<ptrdiff_t>(n));
    Tensors now = step(v[carried.size()], before);
    Tensor output = now[0];
    if (counts.defined()) {
      const Tensor& counted = v.back();
      for (size_t i = 0; i < n; ++i) now[i] = where(counted, now[i], before[i]);
      output = where(counted, output, zeros_where_masked ? zeros_like(output) : v[n]);
      now.push_back(output);
    }
    now.push_back(output);
    return now;
  };
  const Tensors made = scan(body, carried, sequences);
  return {made.back(), {made.begin(), made.begin() + static_cast<ptrdiff_t>(n)}};
}

Tensor flipped(const Tensor& x, bool backwards) { return backwards ? flip(x, {0}) : x; }

// The states that the first step starts from: zeros, unless they are given.
Tensors start_of(const Call& c, const Cell& cell, const Tensor& gates, const Items& given) {
  Tensors states;
  for (const Item& item : given) states.push_back(item.tensor);
  const size_t wanted = cell.gates == Gates::Lstm ? 2 : 1;
  if (!states.empty() && states.size() != wanted)
    c.refuse(format("it is given {} states", states.size()));
  if (!states.empty()) return states;
  std::vector<Dim> shape{gates.dim(1)};
  for (int64_t axis = 2; axis + 1 < gates.rank(); ++axis) shape.push_back(gates.dim(axis));
  shape.push_back(cell.recurrent.dim(-2));
  return Tensors(wanted, zeros(shape, gates.dtype()));
}

Tensor mask_of(const Call& c) {
  if (const Given* given = c.named("mask"); given && !given->items.empty())
    return given->items[0].tensor;
  return c.item().mask;
}

Items given_states(const Call& c) {
  if (const Given* given = c.named("initial_state"); given && !given->items.empty())
    return given->items;
  return {c.items().begin() + 1, c.items().end()};
}

// The outputs of all steps in the order in which they were computed, and the last states. `cell_call` has the cell's configuration.
Sequence run_cell(const Call& cell_call, const Tensor& x, const Tensor& mask, const Items& start,
                  const Along& along) {
  const Cell cell = cell_of(cell_call);
  std::vector<int64_t> order{1, 0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) order.push_back(axis);
  const Tensor steps = flipped(transpose(x, order), along.backwards);
  const Tensor gates = gates_from(cell_call, cell, steps);
  const Tensors states = start_of(cell_call, cell, gates, start);
  Tensor counts;
  if (mask.defined()) {
    counts = flipped(transpose(cast(mask, DType::Bool), {1, 0}), along.backwards);
    std::vector<Dim> shape{counts.dim(0), counts.dim(1)};
    shape.resize(static_cast<size_t>(states[0].rank()) + 1, 1);
    counts = reshape(counts, shape);
  }
  if (!mask.defined() && is_usual(cell_call, cell)) return by_op(cell, gates, states);
  return by_steps(Step(cell_call, cell), gates, states, counts, along.zeros_where_masked);
}

Tensor batch_first(const Tensor& x) {
  std::vector<int64_t> order{1, 0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) order.push_back(axis);
  return transpose(x, order);
}

Items results_of(const Call& c, const Sequence& s, const Tensor& mask) {
  Items made;
  if (c.flag("return_sequences", false))
    made.emplace_back(batch_first(s.outputs), mask);
  else
    made.emplace_back(
        squeeze(slice(s.outputs, {0}, {-1}, {std::numeric_limits<int64_t>::max()}), IntArgs({0})));
  if (c.flag("return_state", false))
    for (const Tensor& state : s.states) made.emplace_back(state);
  return made;
}

// Cells one above the other: layers that return their sequences.
Items stacked(const Call& c, const Layer& cells, bool backwards) {
  const JsonValue* list = cells.config.find("cells");
  if (!list) c.refuse("it has no cells");
  Tensor x = c.tensor();
  const Tensor mask = mask_of(c);
  Sequence s;
  Tensors states;
  TurnedWeights turned;
  const Call outer(cells, {}, {}, turned);
  std::map<std::string, int> used;
  for (const JsonValue& json : list->list()) {
    std::string group = name_of_group(json.at("class_name").text());
    const int before = used[group]++;
    if (before > 0) group += "_" + std::to_string(before);
    const Call holder_part = cells.weights.by_place() ? outer.part({"cells"}) : outer;
    const Layer cell = holder_part.inner(json, {group});
    const Call call(cell, {}, {}, turned);
    s = run_cell(call, x, mask, {}, {backwards, false});
    backwards = false;  // what comes from below is already in this order
    x = batch_first(s.outputs);
    states.insert(states.end(), s.states.begin(), s.states.end());
  }
  s.states = states;
  return results_of(c, s, mask);
}

Items recurrent_layer(const Call& c, const Along& along) {
  const bool backwards = c.flag("go_backwards", false) != along.backwards;
  const Tensor mask = mask_of(c);
  const bool zeros = along.zeros_where_masked || c.flag("zero_output_for_mask", false);
  const Along own{backwards, zeros};
  if (c.layer.type != "RNN")
    return results_of(c, run_cell(c, c.tensor(), mask, given_states(c), own), mask);
  const JsonValue* json = c.find("cell");
  if (!json) c.refuse("it has no cell");
  const Layer cell = c.inner(*json, {"cell"});
  if (cell.type == "StackedRNNCells") {
    if (!given_states(c).empty()) c.refuse("it is given states");
    return stacked(c, cell, backwards);
  }
  TurnedWeights turned;
  const Call call(cell, {}, {}, turned);
  return results_of(c, run_cell(call, c.tensor(), mask, given_states(c), own), mask);
}
Items recurrent_layer_of(const Call& c) { return recurrent_layer(c, {}); }

// ---- wrappers ----------------------------------------------------------------------------------

Items joined(const Call& c, const Items& forward, const Items& backward, bool sequences) {
  const std::string mode = c.has("merge_mode") ? c.text("merge_mode") : "none";
  const Tensor a = forward[0].tensor;
  const Tensor b = sequences ? flip(backward[0].tensor, {1}) : backward[0].tensor;
  const Tensor& mask = forward[0].mask;
  Items made;
  if (mode == "none")
    made = {{a, mask}, {b, mask}};
  else if (mode == "concat")
    made = {{concat({a, b}, -1), mask}};
  else if (mode == "sum")
    made = {{a + b, mask}};
  else if (mode == "ave")
    made = {{(a + b) / 2.0, mask}};
  else if (mode == "mul")
    made = {{a * b, mask}};
  else
    c.refuse(format("its merge_mode is '{}'", mode));
  made.insert(made.end(), forward.begin() + 1, forward.end());
  made.insert(made.end(), backward.begin() + 1, backward.end());
  return made;
}

Items bidirectional(const Call& c) {
  const JsonValue *json = c.find("layer"), *other = c.find("backward_layer");
  if (!json) c.refuse("it has no layer");
  const std::string& name = json->at("config").at("name").text();
  const std::string to_end = name.starts_with("forward_") ? name : "forward_" + name;
  const std::string own = to_end.substr(std::string_view("forward_").size());
  const std::string second = other ? other->at("config").at("name").text() : "";
  Layer first = c.inner(*json, {"forward_layer"}, {to_end});
  Layer last = c.inner(other ? *other : *json, {"backward_layer"},
                       {"backward_" + own, second, "backward_" + second});
  if (!gates_of(first.type) && first.type != "RNN") c.refuse("its layer is not recurrent");
  const bool sequences =
      first.config.find("return_sequences") && first.config.at("return_sequences").flag();
  Items states = given_states(c);
  const size_t half = states.size() / 2;
  const auto run = [&](const Layer& layer, bool backwards, size_t from) {
    Given input, mask;
    input.items = {c.item()};
    for (size_t i = from; i < from + half; ++i) input.items.push_back(states[i]);
    NamedGiven named;
    if (const Given* given = c.named("mask")) named["mask"] = *given;
    TurnedWeights turned;
    // Without a configuration of its own, the second layer is the first one, the other way.
    return recurrent_layer(Call(layer, {input}, named, turned), {backwards, sequences});
  };
  const Items forward = run(first, false, 0), backward = run(last, !other, half);
  return joined(c, forward, backward, sequences);
}

// Each step is an entry of the batch.
Items along_time(const Call& c) {
  const JsonValue* json = c.find("layer");
  if (!json) c.refuse("it has no layer");
  const Layer inner = c.inner(*json, {"layer"});
  const Tensor& x = c.tensor();
  if (x.rank() < 3) c.refuse(format("its input has {} axes", x.rank()));
  std::vector<Dim> rows{x.dim(0) * x.dim(1)};
  for (int64_t axis = 2; axis < x.rank(); ++axis) rows.push_back(x.dim(axis));
  Items made = c.run(inner, {Item(reshape(x, rows))});
  for (Item& item : made) {
    std::vector<Dim> shape{x.dim(0), x.dim(1)};
    for (int64_t axis = 1; axis < item.tensor.rank(); ++axis)
      shape.push_back(item.tensor.dim(axis));
    item = Item(reshape(item.tensor, shape), c.item().mask);
  }
  return made;
}

constexpr Converter kConverters[] = {
    {"SimpleRNN", recurrent_layer_of, Converter::Own},
    {"LSTM", recurrent_layer_of, Converter::Own},
    {"GRU", recurrent_layer_of, Converter::Own},
    {"CuDNNLSTM", recurrent_layer_of, Converter::Own},
    {"CuDNNGRU", recurrent_layer_of, Converter::Own},
    {"ConvLSTM1D", recurrent_layer_of, Converter::Own},
    {"ConvLSTM2D", recurrent_layer_of, Converter::Own},
    {"ConvLSTM3D", recurrent_layer_of, Converter::Own},
    {"RNN", recurrent_layer_of, Converter::Own},
    {"Bidirectional", bidirectional, Converter::Own},
    {"TimeDistributed", along_time, Converter::Own},
};

}  // namespace

std::span<const Converter> recurrent_converters() { return kConverters; }

}  // namespace oar::keras
