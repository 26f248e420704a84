// Epilogues: what is done to each element of a result as soon as it is made, by the kernel that makes it, so that
// the result goes to memory once. A call and the ones behind it become one call of a fused op, whose decomposition
// says the same; a kernel that has no such epilogue leaves it to that. Rounding changes.
#include <algorithm>
#include <optional>

#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

class Fusing {
 public:
  explicit Fusing(Program& program)
      : program_(program),
        readers_(program.values.size()),
        uses_(count_uses(program)),
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

  // ---- convolutions: a scale and shift of channels, an addition, an activation

  struct Epilogue {
    ValueId scale = kNoValue, shift = kNoValue, residual = kNoValue;
    std::string activation;
    std::vector<size_t> calls;  // that become part of the convolution, in order
  };

  void fuse_convolution(size_t at) {
    Epilogue e;
    ValueId end = call(at).results[0];
    const auto step = [&](auto&& takes) {
      const std::optional<size_t> reader = only_reader(end);
      if (!reader || !takes(call(*reader))) return;
      e.calls.push_back(*reader);
      end = call(*reader).results[0];
    };
    step([&](const Instruction& next) { return takes_affine(call(at), next, e); });
    step([&](const Instruction& next) { return takes_residual(end, next, e); });
    step([&](const Instruction& next) { return takes_activation(next, e); });
    if (e.calls.empty()) return;
    // The fused call stands where its last part stood: what the others read is there by then.
    const size_t last = e.calls.back();
    call(last) = fused_convolution(call(at), e, end);
    gone_[at] = true;
    for (size_t i : e.calls) gone_[i] = i != last;
    changed_ = true;
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
  bool takes_residual(ValueId value, const Instruction& next, Epilogue& e) const {
    if (next.op->name() != "add" || operand(next, 0) == operand(next, 1)) return false;
    const ValueId other = operand(next, operand(next, 0) == value ? 1 : 0);
    if (!(program_.type_of(other) == program_.type_of(value))) return false;
    // A number per channel or for all: its broadcast view would be read like an image.
    const int maker = made_[static_cast<size_t>(other)];
    if (maker >= 0 &&
        program_.body.instructions[static_cast<size_t>(maker)].op->name() == "broadcast_to")
      return false;
    e.residual = other;
    return true;
  }
  static bool takes_activation(const Instruction& next, Epilogue& e) {
    const std::string& name = next.op->name();
    if (name != "relu" && name != "hardswish" && name != "silu" && name != "sigmoid") return false;
    e.activation = name;
    return true;
  }

  static Instruction fused_convolution(const Instruction& conv, const Epilogue& e, ValueId result) {
    static const Op& op = get_op("conv_fused");
    Instruction made;
    made.op = &op;
    made.location = conv.location;
    made.results = {result};
    const auto value = [&](ValueId id) {
      made.operands.push_back({Operand::One, {id}});
      made.attributes.push(Value());
    };
    const auto copy = [&](std::string_view name) {
      made.operands.push_back({});
      made.attributes.push(attribute(conv, name));
    };
    value(operand(conv, 0));
    value(operand(conv, 1));
    value(operand(conv, 2));
    value(e.scale);
    value(e.shift);
    value(e.residual);
    for (const char* name : {"stride", "padding", "dilation", "groups", "channels_last"})
      copy(name);
    made.operands.push_back({});
    made.attributes.push(Value(std::string_view(e.activation)));
    return made;
  }

  // ---- batch norm in training: a relu behind it, and in front of its derivative

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
  std::vector<int> made_;  // by value: the call that makes it
  std::vector<bool> gone_;
  bool changed_ = false;
};

}  // namespace

bool fuse_epilogues(Program& program) { return Fusing(program).run(); }

}  // namespace oar
