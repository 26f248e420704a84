// Recurrent networks: several layers, in one or both directions.
#include "oar/interop/paddle/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::paddle {
namespace {

struct Mode {
  std::string_view name;
  const char* cell;
};
constexpr Mode kModes[] = {
    {"LSTM", "lstm"}, {"GRU", "gru"}, {"RNN_TANH", "tanh"}, {"RNN_RELU", "relu"}};

Tensor row(const Tensor& x, int64_t at) {
  return squeeze(slice(x, {0}, {at}, {at + 1}), IntArgs({0}));
}

// The last state of each sequence: that of its last step, or of the first if it runs backwards. States after the end of a
// shorter sequence stay as they were.
Tensor last_of(const Tensor& states, bool backwards) {
  if (backwards) return row(states, 0);
  return squeeze(slice(states, {0}, {-1}, {std::numeric_limits<int32_t>::max()}), IntArgs({0}));
}

Values recurrent_layers(const Call& c) {
  const char* cell = nullptr;
  for (const Mode& m : kModes)
    if (m.name == c.text("mode", "RNN_TANH")) cell = m.cell;
  if (!cell) c.refuse("its mode is " + c.text("mode", ""));
  if (c.has(3)) c.refuse("its sequences have different lengths");
  if (!c.flag("is_test", true) && c.number("dropout_prob", 0) > 0)
    c.refuse("it is in training mode");
  const bool lstm = std::string_view(cell) == "lstm";
  const int64_t directions = c.flag("is_bidirec") ? 2 : 1, layers = c.integer("num_layers", 1);
  const std::vector<Tensor> first = c.tensors(1), weights = c.tensors(2);
  const auto parts = static_cast<size_t>(layers * directions);
  if (weights.size() != 4 * parts || first.size() != (lstm ? 2U : 1U))
    c.refuse("its weights or states do not fit its layers");
  Tensor x = c.tensor(0);  // [steps, batch, features]
  std::vector<Tensor> hidden, cells;
  for (int64_t layer = 0; layer < layers; ++layer) {
    std::vector<Tensor> made;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t part = layer * directions + d;
      const auto at = static_cast<size_t>(2 * part);
      const Tensor &in = weights[at], &own = weights[at + 1];
      const Tensor &in_bias = weights[2 * parts + at], &own_bias = weights[2 * parts + at + 1];
      const Tensor gates = matmul(x, in, false, true) + in_bias;
      const bool backwards = d == 1;
      const auto [states, inner] =
          recurrent(gates, own, row(first[0], part), lstm ? row(first[1], part) : Tensor{},
                    own_bias, {}, {}, cell, backwards);
      made.push_back(states);
      hidden.push_back(last_of(states, backwards));
      if (lstm) cells.push_back(last_of(inner, backwards));
    }
    x = made.size() == 1 ? made[0] : concat(made, -1);
  }
  std::vector<Item> last{stack(hidden)};
  if (lstm) last.emplace_back(stack(cells));
  return {x, Item(), Item::of_list(std::move(last))};
}

constexpr Converter kConverters[] = {{"rnn", recurrent_layers}};

}  // namespace

std::span<const Converter> recurrent_converters() { return kConverters; }

}  // namespace oar::paddle
