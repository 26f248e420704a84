// Inference: a scale and a shift per channel after a convolution become part of its weight and bias.
// Only if all of them are constants, so only in a frozen program. Rounding changes.
#include "oar/compiler/passes/match.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// One number per output channel, to multiply the weight [out_channels, …].
Tensor along_channels(const Tensor& t, int rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = t.dim(0);
  return reshape(t, shape);
}

// x * scale + shift of a convolution, where everything but the image is constant.
const Pattern& scaled_convolution() {
  using namespace patterns;
  static const Pattern convolution = call(takes(EpilogueStep::ScaleShift))
                                         .operand("weight", constant().as("weight"))
                                         .operand("bias", constant().optional().as("bias"))
                                         .once()
                                         .as("convolution");
  static const Pattern scaled = call(has_role(EpilogueRole::ScaleShift))
                                    .operand("x", convolution)
                                    .operand("scale", constant().as("scale"))
                                    .operand("shift", constant().as("shift"));
  return scaled;
}

class Folding {
 public:
  Folding(Program& program, PassContext& context) : program_(program), context_(context) {}

  // conv(x, w, b) * scale + shift as conv(x, w * scale, b * scale + shift).
  bool fold(Instruction& affine) {
    const std::optional<Match> m = match(scaled_convolution(), affine, context_);
    if (!m || channel_axis(program_, affine) != channel_axis(program_, m->call("convolution")))
      return false;
    const auto tensor = [&](const char* name) { return context_.constant(m->value(name)); };
    const Tensor *weight = tensor("weight"), *bias = tensor("bias"), *scale = tensor("scale"),
                 *shift = tensor("shift");
    if (weight->dtype() != scale->dtype() || weight->dtype() != shift->dtype()) return false;
    const LayersOff off(kDispatchMask);
    Instruction fused = m->call("convolution");
    fused.results = affine.results;
    set_operand(fused, "weight", add(*weight * along_channels(*scale, weight->rank())));
    set_operand(fused, "bias", add(bias ? *bias * *scale + *shift : *shift));
    affine = std::move(fused);
    return true;
  }

  // Appended at the end: until then, pointers into the program's list of constants are in use.
  void finish() {
    for (Constant& c : fresh_) program_.constants.push_back(std::move(c));
  }

 private:
  ValueId add(const Tensor& t) {
    const ValueId id = program_.add_value({t.dtype(), t.shape(), t.device()});
    fresh_.push_back({id, t});
    return id;
  }

  Program& program_;
  PassContext& context_;
  std::vector<Constant> fresh_;
};

}  // namespace

bool fold_batch_norm(Program& program, PassContext& context) {
  bool changed = false;
  Folding folding(program, context);
  for (Instruction& instruction : program.body.instructions) changed |= folding.fold(instruction);
  folding.finish();
  return changed;
}

}  // namespace oar
