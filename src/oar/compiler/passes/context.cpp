#include "oar/compiler/passes/context.h"

#include <algorithm>
#include <complex>

#include "oar/base/flags.h"
#include "oar/base/string_util.h"
#include "oar/runtime/layout.h"
#include "oar/runtime/program_device.h"

namespace oar {

PassTarget PassTarget::of(const Program& program) { return {device_of(program)}; }

bool PassTarget::has_kernel(const Op& op, Args args, TensorList results) const {
  return kernel_for(op, args, results, device) != nullptr;
}

// Our own convolutions have no such preference.
bool PassTarget::prefers_channels_last() const { return device.is_cpu() && flag<bool>("onednn"); }

PassOptions PassOptions::from_flags() {
  return {.off = flag<std::string>("passes_off"),
          .verify = flag<bool>("verify_passes"),
          .backward_bytes = int64_t{flag<int>("backward_memory_mb")} << 20};
}

bool PassOptions::is_off(std::string_view pass) const {
  const std::vector<std::string_view> words = split(off, ',');
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return trim(word) == pass || trim(word) == "all";
  });
}

const Tensor* PassContext::constant(ValueId id) {
  if (id == kNoValue) return nullptr;
  if (!constants_) constants_ = constant_tensors(*program_);
  const auto i = static_cast<size_t>(id);
  return i < constants_->size() ? (*constants_)[i] : nullptr;
}

// Where the elements of the value come from: a view has elements of its operand, unless it reads their bits as another
// dtype. The operand of a backward mark is not known before the derivative runs.
ValueId PassContext::shown(ValueId id) {
  const DType dtype = program_->type_of(id).dtype;
  while (const Instruction* maker = makers()(id)) {
    if (!maker->op->has(Trait::View) || maker->op->has(Trait::BackwardMark)) break;
    const ValueId base = operand(*maker, 0);
    if (program_->type_of(base).dtype != dtype) break;
    id = base;
  }
  return id;
}

std::optional<double> PassContext::constant_number(ValueId id, int64_t most) {
  const Tensor* t = constant(shown(id));
  if (!t || !t->is_dense() || !t->device().is_cpu() || (*t)->numel == 0 || (*t)->numel > most)
    return std::nullopt;
  const std::vector<std::complex<double>> values = t->to_vector<std::complex<double>>();
  const bool same = std::all_of(values.begin(), values.end(),
                                [&](std::complex<double> v) { return v == values[0]; });
  return same && values[0].imag() == 0 ? std::optional(values[0].real()) : std::nullopt;
}

std::optional<double> PassContext::number(ValueId id) {
  const Instruction* maker = makers()(shown(id));
  if (!maker) return constant_number(id, 1);
  const char* fill = maker->op->def().fill;
  if (!*fill) return std::nullopt;
  const Scalar number = attribute(*maker, fill).as_scalar();
  return number.kind() == Scalar::Complex ? std::nullopt : std::optional(number.to_double());
}

void PassContext::changed() {
  uses_.reset();
  lives_.reset();
  memory_.reset();
  makers_.reset();
  constants_.reset();
}

}  // namespace oar
