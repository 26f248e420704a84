// A layer of a recurrent network in one direction, as an op `rnn` of one layer.
#include <algorithm>

#include "oar/interop/paddle/writer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/shape.h"

namespace oar::paddle {
namespace {

struct Mode {
  std::string_view cell;
  const char* name;
};
constexpr Mode kModes[] = {
    {"lstm", "LSTM"}, {"gru", "GRU"}, {"tanh", "RNN_TANH"}, {"relu", "RNN_RELU"}};

// What the layer computes the gates from: [steps, batch, features], and the product's operands as the op has them.
struct Projection {
  FileId x, weight, bias;
  int64_t features;
};

FileId turned(const Written& c, const ProgramCall& product) {
  if (const Tensor* weight = c.writer.constant_of(product.value_of("weight")))
    return c.writer.parameter(transpose(*weight, {1, 0}),
                              c.program.label(product.value_of("weight")).substr(1));
  return c.transposed(c.writer.id_of(product.value_of("weight")), {1, 0});
}
FileId zeros_of(const Written& c, int64_t size) {
  return c.writer.parameter(Tensor::from_vector(std::vector<double>(static_cast<size_t>(size)),
                                                Shape{size}, c.type("gates").dtype),
                            "no_bias");
}
// Gates that no product made are one with a unit matrix.
Projection projection_of(const Written& c) {
  const int64_t width = c.type("gates").shape[2].value();
  const Instruction* made = c.maker_of(c.value_of("gates"));
  if (made && made->op == &get_op("linear")) {
    const ProgramCall product(c.program, *made);
    if (product.rank("x") == 3 && product.type("x").shape[2].is_known())
      return {c.writer.id_of(product.value_of("x")), turned(c, product),
              product.has("bias") ? c.writer.id_of(product.value_of("bias")) : zeros_of(c, width),
              product.type("x").shape[2].value()};
  }
  const auto size = static_cast<size_t>(width);
  std::vector<double> unit(size * size);
  for (size_t i = 0; i < size; ++i) unit[i * size + i] = 1;
  return {c.in("gates"),
          c.writer.parameter(Tensor::from_vector(unit, Shape{width, width}, c.type("gates").dtype),
                             "unit"),
          zeros_of(c, width), width};
}

FileId flipped(const Written& c, FileId x) {
  return c.add("flip", {x}, c.writer.type_of(x), {ints_of("axis", {0})});
}

void recurrent_op(const Written& c) {
  const std::string cell = c.text("mode");
  const bool lstm = cell == "lstm", backwards = c.flag("reverse");
  const Mode& mode = *std::find_if(std::begin(kModes), std::end(kModes),
                                   [&](const Mode& m) { return m.cell == cell; });
  const Projection in = projection_of(c);
  const auto first = [&](const char* name) {
    FileType type = c.type_in(name);
    type.shape.insert(type.shape.begin(), 1);
    return c.add("unsqueeze", {c.in(name), FileOperand::constant("axis", {0})}, type);
  };
  std::vector<FileId> states{first("hidden")};
  if (lstm) states.push_back(first("cell"));
  const int64_t width = c.type("gates").shape[2].value(),
                hidden = c.type("weight").shape[1].value();
  const FileId bias = c.has("bias") ? c.in("bias") : zeros_of(c, width);
  const FileId x = backwards ? flipped(c, in.x) : in.x;
  FileNode node{
      "rnn",
      {x, FileOperand::list(states), FileOperand::list({in.weight, c.in("weight"), in.bias, bias}),
       0,
       c.writer.parameter(Tensor::from_vector(std::vector<double>{0}, Shape{1}, DType::UInt8),
                          "dropout_state")},
      {},
      {false, false, true, false},
      {float_of("dropout_prob", 0), flag_of("is_bidirec", false), int_of("input_size", in.features),
       int_of("hidden_size", hidden), int_of("num_layers", 1), text_of("mode", mode.name),
       int_of("seed", 0), flag_of("is_test", true)},
      {}};
  const FileId out = c.writer.new_value(c.result());
  std::vector<FileId> last;
  for (const FileId state : states) last.push_back(c.writer.new_value(c.writer.type_of(state)));
  node.results = {{out},
                  {c.writer.new_value({DType::UInt8, {1}})},
                  last,
                  {c.writer.new_value({c.result().dtype, {-1}})}};
  c.writer.append(std::move(node));
  c.give(backwards ? flipped(c, out) : out);
  // The last cell stands for those of all steps: nothing reads another one.
  if (lstm) c.writer.stand_for(c.call.results[1], last[1]);
}
bool is_plain(const ProgramCall& c) {
  if (c.text("mode") == "lstm" ? !reads_last_cell(c) : c.is_read(c.call.results[1])) return false;
  return !c.has("projection") && !c.has("length") && c.type("gates").shape[2].is_known() &&
         c.type("weight").shape[1].is_known();
}

constexpr OpWriter kWriters[] = {{"recurrent", recurrent_op, is_plain}};

}  // namespace

std::span<const OpWriter> recurrent_writers() { return kWriters; }

}  // namespace oar::paddle
