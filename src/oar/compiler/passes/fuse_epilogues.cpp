// Epilogues: what is done to each element of a result as soon as it is made, by the kernel that makes it, so that
// the result goes to memory once. A call and the ones after it become one call of a fused op, whose decomposition
// says the same; a kernel that has no such epilogue leaves it to that. Rounding changes.
#include <algorithm>
#include <optional>

#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ops/families/activated.h"

namespace oar {
namespace {

constexpr int64_t kMostLookedAt = 16 << 10;  // elements of a constant that may be one number

class Fusing {
 public:
  explicit Fusing(Program& program)
      : program_(program),
        readers_(program.values.size()),
        uses_(count_uses(program)),
        constants_(constant_tensors(program)),
        made_(program.values.size(), -1) {
    std::vector<Instruction>& calls = program.body.instructions;
    for (size_t i = 0; i < calls.size(); ++i) {
      for_each_operand(calls[i],
                       [&](ValueId id) { readers_[static_cast<size_t>(id)].push_back(i); });
      for (ValueId id : calls[i].results) made_[static_cast<size_t>(id)] = static_cast<int>(i);
    }
    gone_.assign(calls.size(), false);
  }

  bool run() {
    std::vector<Instruction>& calls = program_.body.instructions;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (gone_[i]) continue;
      if (calls[i].op->name() == "conv") fuse_convolution(i);
      if (calls[i].op->name() == "linear" || calls[i].op->name() == "matmul") fuse_product(i);
      if (calls[i].op->name() == "batch_norm_train") fuse_batch_norm(i);
    }
    size_t next = 0;
    std::erase_if(calls, [&](const Instruction&) { return gone_[next++]; });
    return changed_;
  }

 private:
  Instruction& call(size_t i) { return program_.body.instructions[i]; }
  // The only call that reads the value, if the program does not give it back.
  std::optional<size_t> only_reader(ValueId id) const {
    const auto& readers = readers_[static_cast<size_t>(id)];
    if (uses_[static_cast<size_t>(id)] != 1 || readers.size() != 1 || gone_[readers[0]])
      return std::nullopt;
    return readers[0];
  }

  struct Epilogue {
    ValueId scale = kNoValue, shift = kNoValue, residual = kNoValue;  // scale: of channels
    ValueId bias = kNoValue;                                          // of a product
    double factor = 1;
    std::string activation;
    ValueId end = kNoValue;     // what it makes of the result
    std::vector<size_t> calls;  // that become part of the one in front, in order
  };

  // The next call becomes part of the epilogue, if takes(call) agrees.
  template <class F>
  void step(Epilogue& e, F&& takes) {
    const std::optional<size_t> reader = only_reader(e.end);
    if (!reader || !takes(call(*reader))) return;
    e.calls.push_back(*reader);
    e.end = call(*reader).results[0];
  }
  // The fused call stands where its last part stood: what the others read is there by then.
  void replace(size_t at, const Epilogue& e, Instruction fused) {
    call(e.calls.back()) = std::move(fused);
    gone_[at] = true;
    for (size_t i : e.calls) gone_[i] = i != e.calls.back();
    changed_ = true;
  }

  // ---- convolutions: a scale and shift of channels, an addition, an activation

  void fuse_convolution(size_t at) {
    Epilogue e{.end = call(at).results[0]};
    step(e, [&](const Instruction& next) { return takes_affine(call(at), next, e); });
    step(e, [&](const Instruction& next) { return takes_residual(at, next, e); });
    step(e, [&](const Instruction& next) { return takes_activation(next, e); });
    if (!e.calls.empty()) replace(at, e, fused_convolution(call(at), e));
  }

  bool takes_affine(const Instruction& conv, const Instruction& next, Epilogue& e) const {
    if (next.op->name() != "channel_affine") return false;
    const auto rank = static_cast<int64_t>(program_.type_of(conv.results[0]).shape.size());
    const int64_t axis = attribute(next, "channel_axis").as_int();
    const bool last = attribute(conv, "channels_last").as_bool();
    if ((axis < 0 ? axis + rank : axis) != (last ? rank - 1 : 1)) return false;
    e.scale = operand(next, 1);
    e.shift = operand(next, 2);
    return true;
  }
  // What the other operand of a sum or product with the epilogue's end is; none where it is another call.
  std::optional<ValueId> other_operand(const Instruction& next, std::string_view op,
                                       const Epilogue& e) const {
    if (next.op->name() != op || operand(next, 0) == operand(next, 1)) return std::nullopt;
    return operand(next, operand(next, 0) == e.end ? 1 : 0);
  }
  const Instruction* broadcast(ValueId id) const {
    const int maker = made_[static_cast<size_t>(id)];
    if (maker < 0) return nullptr;
    const Instruction& call = program_.body.instructions[static_cast<size_t>(maker)];
    return call.op->name() == "broadcast_to" ? &call : nullptr;
  }
  // One that is made after the call would make it wait, and keep what it reads in memory.
  bool takes_residual(size_t at, const Instruction& next, Epilogue& e) const {
    const std::optional<ValueId> other = other_operand(next, "add", e);
    if (other && made_[static_cast<size_t>(*other)] > static_cast<int>(at)) return false;
    // A number per channel or for all: its broadcast view would be read like an image.
    if (!other || !(program_.type_of(*other) == program_.type_of(e.end)) || broadcast(*other))
      return false;
    e.residual = *other;
    return true;
  }
  static bool takes_activation(const Instruction& next, Epilogue& e) {
    const std::span<const char* const> known = activation_names();
    if (std::find(known.begin(), known.end(), next.op->name()) == known.end()) return false;
    e.activation = next.op->name();
    return true;
  }

  // A call of the op with values and attributes in the order of its schema.
  struct Building {
    Instruction made;
    Building(const char* op, const Instruction& from, ValueId result) {
      made.op = &get_op(op);
      made.location = from.location;
      made.called = from.called;
      made.results = {result};
    }
    void values(std::initializer_list<ValueId> ids) {
      for (ValueId id : ids) {
        made.operands.push_back({Operand::One, {id}});
        made.attributes.push(Value());
      }
    }
    void set(const Value& value) {
      made.operands.push_back({});
      made.attributes.push(value);
    }
  };

  static Instruction fused_convolution(const Instruction& conv, const Epilogue& e) {
    Building b("conv_fused", conv, e.end);
    b.values({operand(conv, 0), operand(conv, 1), operand(conv, 2), e.scale, e.shift, e.residual});
    for (const char* name : {"stride", "padding", "dilation", "groups", "channels_last"})
      b.set(attribute(conv, name));
    b.set(Value(std::string_view(e.activation)));
    return std::move(b.made);
  }

  // ---- products: a bias, a factor, an addition, an activation

  void fuse_product(size_t at) {
    const bool linear = call(at).op->name() == "linear";
    const ValueType& type = program_.type_of(call(at).results[0]);
    if (!is_floating(type.dtype) || program_.type_of(operand(call(at), 1)).shape.size() < 2) return;
    Epilogue e{.end = call(at).results[0]};
    if (linear) e.bias = operand(call(at), 2);
    if (e.bias != kNoValue && !is_row_of(e.bias, type)) return;
    if (e.bias == kNoValue) step(e, [&](const Instruction& next) { return takes_bias(next, e); });
    step(e, [&](const Instruction& next) { return takes_factor(next, e); });
    step(e, [&](const Instruction& next) { return takes_residual(at, next, e); });
    // Other activations take as long there as alone, and round otherwise.
    step(e, [&](const Instruction& next) {
      return next.op->name() == "relu" && takes_activation(next, e);
    });
    if (!e.calls.empty()) replace(at, e, fused_product(call(at), e));
  }
  // A number for each column.
  bool is_row_of(ValueId id, const ValueType& type) const {
    const ValueType& row = program_.type_of(id);
    return row.dtype == type.dtype && row.shape.size() == 1 && row.shape[0] == type.shape.back();
  }
  bool takes_bias(const Instruction& next, Epilogue& e) const {
    const std::optional<ValueId> other = other_operand(next, "add", e);
    const Instruction* spread = other ? broadcast(*other) : nullptr;
    if (!spread || !is_row_of(operand(*spread, 0), program_.type_of(e.end))) return false;
    e.bias = operand(*spread, 0);
    return true;
  }
  bool takes_factor(const Instruction& next, Epilogue& e) const {
    const std::optional<ValueId> other = other_operand(next, "multiply", e);
    const std::optional<double> factor = other ? number_of(*other) : std::nullopt;
    if (!factor) return false;
    e.factor = *factor;
    return true;
  }
  // The number that all elements of a constant are.
  std::optional<double> number_of(ValueId id) const {
    if (const Instruction* spread = broadcast(id)) id = operand(*spread, 0);
    const Tensor* t = constants_[static_cast<size_t>(id)];
    if (!t || !t->is_dense() || !t->device().is_cpu() || (*t)->numel == 0 ||
        (*t)->numel > kMostLookedAt)
      return std::nullopt;
    const std::vector<double> values = t->to_vector<double>();
    const bool same =
        std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
    return same ? std::optional(values.front()) : std::nullopt;
  }

  static Instruction fused_product(const Instruction& product, const Epilogue& e) {
    const bool linear = product.op->name() == "linear";
    Building b("matmul_fused", product, e.end);
    b.values({operand(product, 0), operand(product, 1), e.bias, e.residual});
    for (const char* name : {"transpose_x", "transpose_y"})
      b.set(linear ? Value(false) : attribute(product, name));
    b.set(Value(e.factor));
    b.set(Value(std::string_view(e.activation)));
    b.set(Value(linear));
    return std::move(b.made);
  }

  // ---- batch norm in training: a relu after it, and before its derivative

  void fuse_batch_norm(size_t at) {
    if (attribute(call(at), "relu").as_bool()) return;
    const ValueId plain = call(at).results[0];
    const std::optional<size_t> relu = only_reader(plain);
    if (!relu || call(*relu).op->name() != "relu") return;
    const ValueId out = call(*relu).results[0];
    const std::optional<Pair> backward = derivative_of(call(at), out);
    if (!backward && readers_of_op(out, "relu_grad") > 0) return;
    set(call(at), "relu", Value(true));
    call(at).results[0] = out;
    gone_[*relu] = true;
    if (backward) {
      Instruction &gate = call(backward->gate), &norm = call(backward->norm);
      norm.operands[4].ids[0] = operand(gate, 1);
      const Operand& bias = call(at).operands[2];
      norm.operands[9] = bias;
      set(norm, "relu", Value(true));
      gone_[backward->gate] = true;
    }
    changed_ = true;
  }

  struct Pair {
    size_t gate, norm;
  };
  // relu_grad(out, g), read by nothing but the derivative of this batch norm.
  std::optional<Pair> derivative_of(const Instruction& norm, ValueId out) const {
    for (size_t gate : readers_[static_cast<size_t>(out)]) {
      const Instruction& g = program_.body.instructions[gate];
      if (g.op->name() != "relu_grad" || operand(g, 0) != out || operand(g, 1) == out) continue;
      const std::optional<size_t> reader = only_reader(g.results[0]);
      if (!reader) return std::nullopt;
      const Instruction& d = program_.body.instructions[*reader];
      if (d.op->name() != "batch_norm_train_grad" || operand(d, 4) != g.results[0] ||
          operand(d, 0) != operand(norm, 0) || operand(d, 2) != norm.results[1] ||
          operand(d, 3) != norm.results[2])
        return std::nullopt;
      return Pair{gate, *reader};
    }
    return std::nullopt;
  }
  size_t readers_of_op(ValueId id, std::string_view op) const {
    const auto& readers = readers_[static_cast<size_t>(id)];
    return static_cast<size_t>(std::count_if(readers.begin(), readers.end(), [&](size_t i) {
      return program_.body.instructions[i].op->name() == op;
    }));
  }
  static void set(Instruction& call, std::string_view name, const Value& value) {
    call.attributes.set(static_cast<size_t>(call.op->schema().index_of(name)), value);
  }

  Program& program_;
  std::vector<std::vector<size_t>> readers_;
  const std::vector<int> uses_;
  const std::vector<const Tensor*> constants_;
  std::vector<int> made_;  // by value: the call that makes it
  std::vector<bool> gone_;
  bool changed_ = false;
};

}  // namespace

bool fuse_epilogues(Program& program) { return Fusing(program).run(); }

}  // namespace oar
