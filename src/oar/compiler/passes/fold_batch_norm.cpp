// Inference: a scale and a shift per channel after a convolution become part of its weight and bias.
// Only where all of them are constants, so only in a frozen program. Rounding changes.
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// One number per output channel, against the weight [out_channels, …].
Tensor along_channels(const Tensor& t, int rank) {
  Shape shape(static_cast<size_t>(rank), Dim(1));
  shape[0] = t.dim(0);
  return reshape(t, shape);
}

class Folding {
 public:
  explicit Folding(Program& program)
      : program_(program),
        makers_(program),
        constants_(constant_tensors(program)),
        uses_(count_uses(program)) {}

  // channel_affine(conv(x, w, b), scale, shift) as conv(x, w * scale, b * scale + shift).
  bool fold(Instruction& affine) {
    const Instruction* conv = makers_(operand(affine, 0));
    if (!conv || conv->op->name() != "conv" || uses_[static_cast<size_t>(operand(affine, 0))] != 1)
      return false;
    const bool last = attribute(*conv, "channels_last").as_bool();
    const auto rank = static_cast<int64_t>(program_.type_of(operand(*conv, 0)).shape.size());
    const int64_t axis = attribute(affine, "channel_axis").as_int();
    if ((axis < 0 ? axis + rank : axis) != (last ? rank - 1 : 1)) return false;
    const Tensor *weight = constant(operand(*conv, 1)), *scale = constant(operand(affine, 1)),
                 *shift = constant(operand(affine, 2));
    const ValueId bias_id = operand(*conv, 2);
    const Tensor* bias = bias_id == kNoValue ? nullptr : constant(bias_id);
    if (!weight || !scale || !shift || (bias_id != kNoValue && !bias)) return false;
    if (weight->dtype() != scale->dtype() || weight->dtype() != shift->dtype()) return false;
    const LayersOff off(kDispatchMask);
    Instruction fused = *conv;
    fused.results = affine.results;
    fused.operands[1].ids[0] = add(*weight * along_channels(*scale, weight->rank()));
    fused.operands[2].ids[0] = add(bias ? *bias * *scale + *shift : *shift);
    affine = std::move(fused);
    return true;
  }

  // Appended at the end: until then, pointers into the program's list of constants are in use.
  void finish() {
    for (Constant& c : fresh_) program_.constants.push_back(std::move(c));
  }

 private:
  const Tensor* constant(ValueId id) const { return constants_[static_cast<size_t>(id)]; }
  ValueId add(const Tensor& t) {
    const ValueId id = program_.add_value({t.dtype(), t.shape(), t.device()});
    fresh_.push_back({id, t});
    return id;
  }

  Program& program_;
  const Makers makers_;
  const std::vector<const Tensor*> constants_;
  const std::vector<int> uses_;
  std::vector<Constant> fresh_;
};

}  // namespace

bool fold_batch_norm(Program& program) {
  bool changed = false;
  Folding folding(program);
  for (Instruction& instruction : program.body.instructions)
    if (instruction.op->name() == "channel_affine") changed |= folding.fold(instruction);
  folding.finish();
  return changed;
}

}  // namespace oar
