// The gradients of outside tensors that a captured function finds, reads and leaves.
#include <algorithm>

#include "oar/compiler/capture/capture.h"
#include "oar/compiler/passes/edit.h"

namespace oar {

void Capture::meet_gradient_of(const Tensor& leaf, GradientUse use) {
  if (t_layers.off & kCapture) return;
  std::vector<PlainTensors::Entry*> zeros;
  const PlainTensors::Entry* inner = nullptr;
  for (Capture* capture = this; capture; capture = capture->around_) {
    PlainTensors::Entry* entry = capture->plain_.own_entry(leaf, inner);
    if (!entry) continue;
    inner = entry;
    entry->grad_met = true;
    entry->grad_removed |= use == GradientUse::SetToNone;
    if (use != GradientUse::Read || entry->grad.is_tensor() || entry->grad_removed ||
        entry->has_other_gradient())
      continue;
    entry->grad_seen = true;
    if (entry->grad.is_zeros()) zeros.push_back(entry);
  }
  for (PlainTensors::Entry* entry : zeros) entry->shown_zeros = history_of(leaf).grad.get();
}

namespace {

bool makes_rows(const Instruction& call) {
  return call.op->def().rows && call.op->def().rows(call.attributes.args()).has_value();
}

// Copies and sums of rows are rows (families/selected_rows.cpp).
bool keeps_rows(const Op& op) {
  if (!op.def().scalar || !op.has(Trait::Linear) || op.has(Trait::Inplace)) return false;
  return op.copied() == 0 || op.scalar()->is_sum();
}

}  // namespace

// What eager mode holds as rows.
bool Capture::stands_for_rows(const Tensor& grad) {
  const auto& calls = program_.body.instructions;
  for (; rows_known_ < calls.size(); ++rows_known_) {
    const Instruction& call = calls[rows_known_];
    const auto all_operands_are_rows = [&](const Instruction& reader) {
      bool all = true;
      for_each_operand(reader, [&](ValueId id) {
        all &= rows_.contains(id) &&
               program_.type_of(id).dtype == program_.type_of(reader.results[0]).dtype;
      });
      return all;
    };
    if (makes_rows(call) || (keeps_rows(*call.op) && all_operands_are_rows(call)))
      rows_.insert(call.results[0]);
  }
  return !rows_.empty() && rows_.contains(value_of(grad));
}

bool OutsideGradient::fits(const Gradient* now) const {
  const bool tensor = now && now->is_tensor(), zeros = now && now->is_zeros();
  return tensor == was_tensor && (!seen || zeros == was_zeros);
}

void Capture::collect_gradients(std::vector<OutsideGradient>& gradients) {
  using End = OutsideGradient::End;
  std::vector<ValueId> left;
  const size_t met = plain_.entries().size();
  for (size_t i = 0; i < met; ++i) {
    const PlainTensors::Entry& entry = plain_.entries()[i];
    const bool other = entry.has_other_gradient();
    const Tensor before = entry.grad.is_zeros() ? entry.shown_zeros : entry.grad.tensor();
    PlainTensors::Entry* content = before.defined() ? plain_.find(before) : nullptr;
    if (!other && !content && !entry.grad_met) continue;
    if (std::any_of(gradients.begin(), gradients.end(),
                    [&](const OutsideGradient& g) { return g.leaf.is_same(entry.tensor); }))
      continue;
    user_check(!before.defined() || before.kind() != Kind::SelectedRows, ErrorKind::Unsupported,
               "a gradient that holds some rows only cannot be read by a captured function.");
    OutsideGradient g{.leaf = entry.tensor,
                      .was_tensor = entry.grad.is_tensor(),
                      .was_zeros = entry.grad.is_zeros(),
                      .seen = entry.grad_seen};
    if (content && content->value != kNoValue) {
      g.read = content->is_input = true;
      program_.inputs.push_back(content->value);
    }
    const History* history = maybe_history(entry.tensor);
    const Gradient now = history ? history->grad : Gradient();
    if (!now.defined() && (other || entry.grad_removed)) g.end = End::None;
    if (now.is_zeros() && other) {
      g.end = End::Zeros;
      g.zeros = Gradient::zeros(entry.tensor.dims(), now.dtype(), entry.tensor.device());
    }
    if (content && content->cell->was_written()) {
      g.rewritten = true;
      left.push_back(value_of(before));
    }
    if (now.is_tensor() && other) {
      g.end = End::Output;
      left.push_back(value_of(now.tensor()));
    }
    gradients.push_back(std::move(g));
  }
  for (ValueId id : left) program_.outputs.push_back(id);
}

}  // namespace oar
