// Epilogues: what a kernel does to each element of its result as soon as it is computed, so that
// the result is written to memory once. A call and the ones after it become one call of a fused op, whose decomposition
// is equivalent; a device without a kernel for it runs that. Rounding changes. The records say which ops have
// epilogues, of which steps, and which calls can be a step (`epilogue`).
#include <algorithm>

#include "oar/compiler/passes/match.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

constexpr int64_t kMostLookedAt = 16 << 10;  // elements of a constant that may be one number

// The steps that were found, by the names of the fused op's parameters.
struct Steps {
  std::vector<std::pair<const char*, ValueId>> operands;
  double factor = 1;
  std::string activation;
  ValueId end = kNoValue;     // the value after them
  std::vector<size_t> calls;  // that become part of the one before them, in order
};

class Fusing {
 public:
  Fusing(Program& program, PassContext& context)
      : program_(program), context_(context), gone_(program.body.instructions.size(), false) {}

  bool run() {
    std::vector<Instruction>& calls = program_.body.instructions;
    bool changed = false;
    for (size_t i = 0; i < calls.size(); ++i) {
      const Epilogue& epilogue = calls[i].op->def().epilogue;
      if (gone_[i] || epilogue.steps[0] == EpilogueStep::None) continue;
      changed |= *epilogue.fused ? fuse(i) : set_activation(i);
    }
    size_t next = 0;
    std::erase_if(calls, [&](const Instruction&) { return gone_[next++]; });
    return changed;
  }

 private:
  Instruction& call(size_t i) { return program_.body.instructions[i]; }
  const ValueType& type(ValueId id) const { return program_.type_of(id); }
  // The only call that reads the value, if the program does not return it.
  std::optional<size_t> only_reader(ValueId id) {
    const std::optional<size_t> reader = context_.uses().only_reader(id);
    return reader && !gone_[*reader] ? reader : std::nullopt;
  }

  // ---- steps that a fused op does

  bool fuse(size_t at) {
    const Epilogue& epilogue = call(at).op->def().epilogue;
    const Op& fused = get_op(epilogue.fused);
    if (!fused.accepts(type(call(at).results[0]).dtype)) return false;
    if (epilogue.accepts && !epilogue.accepts(meta_arguments(program_, call(at)).args()))
      return false;
    Steps steps{.end = call(at).results[0]};
    for (EpilogueStep step : epilogue.steps) {
      const std::optional<size_t> reader = only_reader(steps.end);
      if (!reader || !is_step(step, at, call(*reader), steps)) continue;
      steps.calls.push_back(*reader);
      steps.end = call(*reader).results[0];
    }
    if (steps.calls.empty()) return false;
    // The fused call takes the position of its last part: all operands are computed by then.
    const size_t last = steps.calls.back();
    call(last) = fused_call(fused, call(at), steps);
    gone_[at] = true;
    for (size_t i : steps.calls) gone_[i] = i != last;
    return true;
  }

  bool is_step(EpilogueStep step, size_t at, const Instruction& next, Steps& steps) {
    switch (step) {
      case EpilogueStep::ScaleShift:
        return is_scale_shift(call(at), next, steps);
      case EpilogueStep::Bias:
        return is_bias(call(at), next, steps);
      case EpilogueStep::Factor:
        return is_factor(next, steps);
      case EpilogueStep::Residual:
        return is_residual(at, next, steps);
      case EpilogueStep::Activation:
        steps.activation = activation(call(at), next);
        return !steps.activation.empty();
      case EpilogueStep::None:
        break;
    }
    return false;
  }

  bool is_scale_shift(const Instruction& producer, const Instruction& next, Steps& steps) {
    static const Pattern scaled = patterns::call(patterns::has_role(EpilogueRole::ScaleShift))
                                      .operand("scale", patterns::any().as("scale"))
                                      .operand("shift", patterns::any().as("shift"));
    const std::optional<Match> m = match(scaled, next, context_);
    if (!m || channel_axis(program_, next) != channel_axis(program_, producer)) return false;
    steps.operands.emplace_back("scale", m->value("scale"));
    steps.operands.emplace_back("shift", m->value("shift"));
    return true;
  }

  // A sum or product with the value after the steps so far; captures the other operand.
  static Pattern with_end(EpilogueRole role, const Steps& steps, const Pattern& other) {
    return patterns::call(patterns::has_role(role))
        .either_order(patterns::this_value(steps.end), other);
  }
  static const Pattern& spread() {
    static const Pattern pattern = patterns::call(patterns::has_role(EpilogueRole::Spread))
                                       .operand("x", patterns::any().as("row"));
    return pattern;
  }

  // A number for each column, unless the call has them already.
  bool is_bias(const Instruction& producer, const Instruction& next, Steps& steps) {
    if (has_parameter(producer, "bias") && operand(producer, "bias") != kNoValue) return false;
    const std::optional<Match> m =
        match(with_end(EpilogueRole::Sum, steps, spread()), next, context_);
    if (!m) return false;
    const ValueType &row = type(m->value("row")), &out = type(steps.end);
    if (row.dtype != out.dtype || row.shape.size() != 1 || !(row.shape[0] == out.shape.back()))
      return false;
    steps.operands.emplace_back("bias", m->value("row"));
    return true;
  }

  bool is_factor(const Instruction& next, Steps& steps) {
    const std::optional<Match> m =
        match(with_end(EpilogueRole::Product, steps, patterns::any().as("factor")), next, context_);
    const std::optional<double> factor =
        m ? context_.constant_number(m->value("factor"), kMostLookedAt) : std::nullopt;
    if (factor) steps.factor = *factor;
    return factor.has_value();
  }

  bool is_residual(size_t at, const Instruction& next, Steps& steps) {
    const std::optional<Match> m =
        match(with_end(EpilogueRole::Sum, steps, patterns::any().as("residual")), next, context_);
    if (!m) return false;
    const ValueId residual = m->value("residual");
    // One that is computed after the call would delay it, and keep its operands in memory.
    if (context_.lives().begin(residual) > static_cast<int>(at)) return false;
    // A number per channel or for all: its broadcast view would be read like an image.
    if (!(type(residual) == type(steps.end)) || match(spread(), residual, context_)) return false;
    steps.operands.emplace_back("residual", residual);
    return true;
  }

  // The name of the activation that the call is, among those that the producer knows.
  static std::string activation(const Instruction& producer, const Instruction& next) {
    const auto known = producer.op->def().epilogue.activations;
    const bool is_known = std::any_of(known.begin(), known.end(),
                                      [&](const char* name) { return next.op->name() == name; });
    return is_known ? next.op->name() : std::string();
  }

  static Instruction fused_call(const Op& fused, const Instruction& producer, const Steps& steps) {
    NewCall made(fused, producer);
    const std::vector<Parameter>& own = producer.op->schema().parameters;
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].is_tensor())  // operands by position: what one op calls y, the other calls weight
        made.operand(fused.schema().parameters[i].name, operand(producer, i));
      else
        made.attribute(own[i].name, producer.attributes[i]);
    }
    for (const auto& [name, value] : steps.operands) made.operand(name, value);
    if (steps.factor != 1) made.attribute("scale", Value(steps.factor));
    if (!steps.activation.empty())
      made.attribute("activation", Value(std::string_view(steps.activation)));
    const char* flag = producer.op->def().epilogue.sets;
    if (*flag) made.attribute(flag, Value(true));
    return made.result(steps.end).take();
  }

  // ---- an activation that the op itself applies if an attribute is set, and its gradient too

  bool set_activation(size_t at) {
    Instruction& producer = call(at);
    const std::optional<size_t> reader = only_reader(producer.results[0]);
    if (!reader) return false;
    const std::string name = activation(producer, call(*reader));
    if (name.empty() || is_set(producer, name)) return false;
    const ValueId out = call(*reader).results[0];
    const Op& gradient = get_op(call(*reader).op->def().epilogue.gradient);
    const std::optional<Backward> backward = backward_of(producer, out, gradient);
    if (!backward && has_reader(out, gradient)) return false;
    set_attribute(producer, name, Value(true));
    producer.results[0] = out;
    gone_[*reader] = true;
    if (backward) {
      Instruction& of_producer = call(backward->of_producer);
      set_operand(of_producer, "grad", operand(call(backward->of_activation), "grad"));
      set_operand(of_producer, "bias", operand(producer, "bias"));
      set_attribute(of_producer, name, Value(true));
      gone_[backward->of_activation] = true;
    }
    return true;
  }

  struct Backward {
    size_t of_activation, of_producer;
  };
  // The activation's gradient, read by nothing but the gradient of this producer.
  std::optional<Backward> backward_of(const Instruction& producer, ValueId out,
                                      const Op& gradient) {
    const Pattern of_activation = patterns::call(patterns::is_op(gradient))
                                      .operand("out", patterns::this_value(out))
                                      .operand("grad", patterns::any().as("grad"));
    for (size_t i : context_.uses().readers(out)) {
      const std::optional<Match> m = match(of_activation, call(i), context_);
      if (!m || m->value("grad") == out) continue;
      const std::optional<size_t> reader = only_reader(call(i).results[0]);
      if (!reader || !is_gradient_of(producer, call(*reader), call(i).results[0]))
        return std::nullopt;
      return Backward{i, *reader};
    }
    return std::nullopt;
  }
  // Does it read what the producer read and computed, under the same names?
  static bool is_gradient_of(const Instruction& producer, const Instruction& gradient,
                             ValueId grad) {
    if (gradient.op->name() != producer.op->def().epilogue.gradient) return false;
    if (operand(gradient, "grad") != grad) return false;
    for (const Parameter& p : gradient.op->schema().parameters) {
      if (!p.is_tensor() || operand(gradient, p.name) == kNoValue) continue;
      const ValueId made = result_named(producer, p.name);
      const ValueId read = has_parameter(producer, p.name) ? operand(producer, p.name) : made;
      if (read != kNoValue && operand(gradient, p.name) != read) return false;
    }
    return true;
  }
  bool has_reader(ValueId id, const Op& op) {
    const std::span<const size_t> readers = context_.uses().readers(id);
    return std::any_of(readers.begin(), readers.end(), [&](size_t i) { return call(i).op == &op; });
  }

  Program& program_;
  PassContext& context_;
  std::vector<bool> gone_;
};

}  // namespace

bool fuse_epilogues(Program& program, PassContext& context) {
  return Fusing(program, context).run();
}

}  // namespace oar
