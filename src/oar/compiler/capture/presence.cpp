#include "oar/compiler/capture/presence.h"

#include <algorithm>
#include <map>

#include "oar/compiler/passes/edit.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

using Inputs = std::vector<bool>;  // of a region, by number

void unite(Inputs& into, const Inputs& more) {
  if (into.size() < more.size()) into.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) into[i] = into[i] || more[i];
}

bool is_switch(const Instruction& call) { return takes_branches(call.op->schema()); }

ClosureList branches_of(const Instruction& call) {
  return as_programs(attribute(call, "branches"));
}

// By output: the inputs that it is computed from. Inside, any branch may be taken.
std::vector<Inputs> origins(const Program& program) {
  std::vector<Inputs> of(program.values.size());
  const auto at = [&](ValueId id) -> Inputs& { return of[static_cast<size_t>(id)]; };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    at(program.inputs[i]).resize(program.inputs.size());
    at(program.inputs[i])[i] = true;
  }
  for (const Instruction& call : program.body.instructions) {
    if (!is_switch(call)) {
      Inputs all;
      for_each_operand(call, [&](ValueId id) { unite(all, at(id)); });
      for (ValueId id : call.results) at(id) = all;
      continue;
    }
    for (const ClosurePtr& branch : branches_of(call)) {
      const std::vector<Inputs> inner = origins(program_of(*branch));
      for (size_t r = 0; r < std::min(inner.size(), call.results.size()); ++r)
        for (size_t k = 0; k < inner[r].size(); ++k)
          if (inner[r][k] && call.operands[1].ids[k] != kNoValue)
            unite(at(call.results[r]), at(call.operands[1].ids[k]));
    }
  }
  std::vector<Inputs> outputs;
  for (ValueId id : program.outputs) outputs.push_back(at(id));
  return outputs;
}

class Finding {
 public:
  Finding(Program& program, size_t inputs) : program_(program) {
    count_ = program.inputs.size() - inputs;
    for (size_t k = 0; k < count_; ++k) {
      Inputs own(count_);
      own[k] = true;
      terms_[program.inputs[inputs + k]].emplace(kNoValue, own);
    }
    for (Instruction& call : std::exchange(program.body.instructions, {})) {
      const Instruction copy = call;
      program_.body.instructions.push_back(std::move(call));
      if (is_switch(copy))
        pass_switch(copy);
      else
        for (ValueId id : copy.results)
          for_each_operand(copy, [&](ValueId from) { add(id, from, kNoValue); });
    }
  }

  std::vector<Presence> run(size_t outputs, size_t* extra) {
    const std::vector<ValueId> gradients(
        program_.outputs.begin() + static_cast<std::ptrdiff_t>(outputs), program_.outputs.end());
    std::map<ValueId, std::ptrdiff_t> flags;
    std::vector<Presence> found;
    for (ValueId id : gradients) {
      Presence& presence = found.emplace_back();
      for (const auto& [flag, cotangents] : terms_[id]) {
        if (flag != kNoValue && !flags.contains(flag)) {
          flags.emplace(flag, static_cast<std::ptrdiff_t>(flags.size()));
          program_.outputs.push_back(flag);
        }
        presence.terms.push_back({cotangents, flag == kNoValue ? -1 : flags[flag]});
      }
      // The rule of a rounding makes zeros from sizes alone. A cotangent led to them, as there would be no gradient otherwise.
      if (presence.terms.empty()) presence.terms.push_back({Inputs(count_, true), -1});
    }
    *extra = flags.size();
    return found;
  }

 private:
  // What leads to `from` leads to `to`, if the flag is true.
  void add(ValueId to, ValueId from, ValueId flag) {
    const auto found = terms_.find(from);
    if (found == terms_.end()) return;
    const auto terms = found->second;
    for (const auto& [own, cotangents] : terms) unite(terms_[to][both(own, flag)], cotangents);
  }

  void pass_switch(const Instruction& call) {
    const ClosureList branches = branches_of(call);
    std::vector<std::vector<Inputs>> origins_of;
    for (const ClosurePtr& branch : branches) origins_of.push_back(origins(program_of(*branch)));
    for (size_t r = 0; r < call.results.size(); ++r)
      for (size_t k = 0; k < call.operands[1].ids.size(); ++k) {
        std::vector<bool> reads;
        for (const auto& of_branch : origins_of)
          reads.push_back(r >= of_branch.size() || (k < of_branch[r].size() && of_branch[r][k]));
        const auto count = std::count(reads.begin(), reads.end(), true);
        if (count == 0 || !terms_.contains(call.operands[1].ids[k])) continue;
        const bool all = count == static_cast<std::ptrdiff_t>(reads.size());
        add(call.results[r], call.operands[1].ids[k],
            all ? kNoValue : taken(operand(call, 0), reads));
      }
  }

  // Is the branch that is taken one of these?
  ValueId taken(ValueId index, const std::vector<bool>& which) {
    const auto key = std::pair(index, which);
    if (const auto found = taken_.find(key); found != taken_.end()) return found->second;
    // An index out of range takes the last branch.
    const bool with_last = which.back();
    ValueId flag = kNoValue;
    for (size_t i = 0; i + 1 < which.size(); ++i) {
      if (which[i] == with_last) continue;
      const ValueId here = call_op("equal", {index, number(index, static_cast<int64_t>(i))});
      flag = flag == kNoValue ? here : call_op("logical_or", {flag, here});
    }
    if (with_last) flag = call_op("logical_not", {flag});
    return taken_[key] = flag;
  }

  ValueId both(ValueId a, ValueId b) {
    if (a == kNoValue || b == kNoValue || a == b) return a == kNoValue ? b : a;
    const auto key = std::pair(a, b);
    if (!both_.contains(key)) both_[key] = call_op("logical_and", {a, b});
    return both_[key];
  }

  ValueId number(ValueId like, int64_t value) {
    const DType dtype = program_.type_of(like).dtype;
    const Tensor scalar = Tensor::scalar(value, dtype);
    const ValueId id = program_.add_value({dtype, Shape(), Device{}});
    program_.constants.push_back({id, scalar});
    return id;
  }

  ValueId call_op(const char* name, std::initializer_list<ValueId> operands) {
    Instruction call;
    call.op = &get_op(name);
    for (ValueId id : operands) {
      call.operands.push_back({Operand::One, {id}});
      call.attributes.push(Value());
    }
    const ValueId result =
        program_.add_value({DType::Bool, program_.type_of(*operands.begin()).shape, Device{}});
    call.results.push_back(result);
    program_.body.instructions.push_back(std::move(call));
    return result;
  }

  Program& program_;
  size_t count_ = 0;
  std::map<ValueId, std::map<ValueId, Inputs>> terms_;  // by value, then by flag
  std::map<std::pair<ValueId, std::vector<bool>>, ValueId> taken_;
  std::map<std::pair<ValueId, ValueId>, ValueId> both_;
};

}  // namespace

std::vector<Presence> find_presence(Program& program, size_t inputs, size_t outputs,
                                    size_t* extra) {
  return Finding(program, inputs).run(outputs, extra);
}

}  // namespace oar
