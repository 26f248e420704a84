// Trades time for memory in a function with its derivative (in_backward marks what belongs to the derivative): if what
// is saved for the derivative would exceed the flag backward_memory_mb, cheap values are recomputed, each right
// before its first reader there. Random values are not, and no bit changes.
#include <algorithm>

#include "oar/compiler/passes/backward.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

int64_t elements(const Program& program, ValueId id) {
  int64_t count = 1;
  for (Dim d : program.type_of(id).shape) count *= d.hint();
  return count;
}

int64_t bytes_of(const Program& program, ValueId id) {
  return byte_count(elements(program, id), program.type_of(id).dtype);
}

constexpr int kDeepest = 16;  // calls in a row that are recomputed for one value

// A pass over each element; rows are read several times.
bool is_cheap(const Op& op) {
  return (op.has(Trait::Elementwise) || op.has(Trait::Rowwise)) && !op.has(Trait::Random) &&
         !op.has(Trait::DataDependent) && !is_update(op);
}

// Chooses the calls to recompute, starting with those that save the most bytes for their work.
class RecomputeChoice {
 public:
  RecomputeChoice(const Program& program, PassContext& context)
      : program_(program),
        context_(context),
        late_(depends_on_backward(program)),
        again(program.body.instructions.size(), false) {
    for (ValueId id : program.outputs)
      if (late_[static_cast<size_t>(id)]) gradients_.push_back(id);
  }

  // Until at most `most` bytes are saved, or as few as possible. First single calls, as that is less work; then
  // together with the calls whose results would have to be saved instead.
  void run(int64_t most) {
    values_ = kept();
    while (bytes_kept(values_) > most && (improve(most, 0) || improve(most, kDeepest))) {
    }
  }

 private:
  std::vector<ValueId> kept() const {
    return kept_for_backward(program_, late_, gradients_, again).values;
  }
  bool improve(int64_t most, int depth) {
    int64_t bytes = bytes_kept(values_);
    bool better = false;
    for (size_t call : candidates()) {
      if (bytes <= most) break;
      if (again[call]) continue;
      const std::vector<bool> before = again;
      again[call] = true;
      std::vector<ValueId> fewer = kept();
      for (int i = 0; i < depth && bytes_kept(fewer) >= bytes && also_makers_of(fewer); ++i)
        fewer = kept();
      if (bytes_kept(fewer) >= bytes) {
        again = before;
        continue;
      }
      bytes = bytes_kept(fewer);
      values_ = std::move(fewer);
      better = true;
    }
    return better;
  }

  // Inputs are the caller's.
  int64_t bytes_kept(const std::vector<ValueId>& values) const {
    int64_t bytes = 0;
    for (ValueId id : values)
      if (std::find(program_.inputs.begin(), program_.inputs.end(), id) == program_.inputs.end())
        bytes += bytes_of(program_, id);
    return bytes;
  }

  // What a choice would have saved instead may be cheap to compute as well. False if nothing is.
  bool also_makers_of(const std::vector<ValueId>& kept) {
    std::vector<bool> fresh(program_.values.size(), false);
    for (ValueId id : kept) fresh[static_cast<size_t>(id)] = true;
    for (ValueId id : values_) fresh[static_cast<size_t>(id)] = false;
    bool any = false;
    const std::vector<Instruction>& calls = program_.body.instructions;
    for (size_t i = 0; i < calls.size(); ++i) {
      const bool makes = std::any_of(calls[i].results.begin(), calls[i].results.end(),
                                     [&](ValueId id) { return fresh[static_cast<size_t>(id)]; });
      if (!makes || again[i] || !is_cheap(*calls[i].op)) continue;
      again[i] = any = true;
    }
    return any;
  }

  std::vector<size_t> candidates() const {
    std::vector<bool> is_kept(program_.values.size(), false);
    for (ValueId id : values_) is_kept[static_cast<size_t>(id)] = true;
    std::vector<std::pair<double, size_t>> found;
    const std::vector<Instruction>& calls = program_.body.instructions;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (again[i] || !is_cheap(*calls[i].op)) continue;
      int64_t bytes = 0;
      for (ValueId id : calls[i].results)
        if (is_kept[static_cast<size_t>(id)]) bytes += bytes_of(program_, id);
      if (bytes == 0) continue;
      found.emplace_back(static_cast<double>(bytes) / context_.cost(calls[i]), i);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<size_t> order;
    for (const auto& [worth, call] : found) order.push_back(call);
    return order;
  }

  const Program& program_;
  PassContext& context_;
  const std::vector<bool> late_;
  std::vector<ValueId> gradients_;
  std::vector<ValueId> values_;  // that are saved

 public:
  std::vector<bool> again;  // by instruction
};

// Inserts copies of the chosen calls, and of views of their results, before their readers in the derivative.
class Copying {
 public:
  Copying(Program& program, const std::vector<bool>& again)
      : program_(program),
        again_(again),
        late_(depends_on_backward(program)),
        maker_(program.values.size(), -1),
        remade_(program.values.size(), kNoValue),
        marked_(program.values.size(), kNoValue) {}

  void run() {
    before_ = std::move(program_.body.instructions);
    program_.body.instructions.clear();
    for (size_t i = 0; i < before_.size(); ++i)
      for (ValueId id : before_[i].results) maker_[static_cast<size_t>(id)] = static_cast<int>(i);
    for (Instruction& call : before_) {
      Instruction own = call;
      if (!call.results.empty() && is_late(call.results[0]) && !is_marker(call))
        for_each_id(own, [&](ValueId& id) { id = again(id); });
      program_.body.instructions.push_back(std::move(own));
    }
  }

 private:
  template <class F>
  static void for_each_id(Instruction& call, F&& body) {
    for (Operand& o : call.operands)
      for (ValueId& id : o.ids)
        if (id != kNoValue) body(id);
  }
  bool is_late(ValueId id) const { return late_[static_cast<size_t>(id)]; }

  // The value as the derivative sees it: itself, or the result of a copy of its call.
  ValueId again(ValueId id) {
    const int maker = maker_[static_cast<size_t>(id)];
    if (maker < 0 || is_late(id)) return id;
    if (remade_[static_cast<size_t>(id)] != kNoValue) return remade_[static_cast<size_t>(id)];
    const Instruction& call = before_[static_cast<size_t>(maker)];
    const bool chosen = again_[static_cast<size_t>(maker)];
    if (!chosen && !call.op->has(Trait::View)) return id;
    Instruction copy = call;
    bool other = chosen;
    for_each_id(copy, [&](ValueId& operand) {
      const ValueId seen = again(operand);
      other |= seen != operand;
      operand = seen;
    });
    if (!other) return id;
    for_each_id(copy, [&](ValueId& operand) { operand = in_backward(operand); });
    for (ValueId& result : copy.results) {
      const ValueId fresh = add(program_.type_of(result));
      remade_[static_cast<size_t>(result)] = fresh;
      late_[static_cast<size_t>(fresh)] = true;
      result = fresh;
    }
    program_.body.instructions.push_back(std::move(copy));
    return remade_[static_cast<size_t>(id)];
  }

  ValueId in_backward(ValueId id) {
    if (is_late(id)) return id;
    if (marked_[static_cast<size_t>(id)] == kNoValue) {
      const ValueId fresh = add(program_.type_of(id));
      marked_[static_cast<size_t>(id)] = fresh;
      late_[static_cast<size_t>(fresh)] = true;
      program_.body.instructions.push_back(marker(id, fresh));
    }
    return marked_[static_cast<size_t>(id)];
  }

  ValueId add(const ValueType& type) {
    const ValueType own = type;
    const ValueId id = program_.add_value(own);
    late_.push_back(false);
    maker_.push_back(-1);
    remade_.push_back(kNoValue);
    marked_.push_back(kNoValue);
    return id;
  }

  Program& program_;
  const std::vector<bool>& again_;
  std::vector<Instruction> before_;
  std::vector<bool> late_;       // by value, as are the others
  std::vector<int> maker_;       // the call of `before_`
  std::vector<ValueId> remade_;  // the result of the copy
  std::vector<ValueId> marked_;  // the value after its marker
};

}  // namespace

bool recompute(Program& program, PassContext& context) {
  const int64_t most = context.options.backward_bytes;
  if (most == 0) return false;
  RecomputeChoice choosing(program, context);
  choosing.run(most);
  const std::vector<bool>& again = choosing.again;
  if (std::none_of(again.begin(), again.end(), [](bool chosen) { return chosen; })) return false;
  Copying(program, again).run();
  return true;
}

}  // namespace oar
