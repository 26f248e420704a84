#include "oar/compiler/fusion/kernel.h"

#include <algorithm>

#include "oar/base/format.h"

namespace oar::fusion {

int arity_of(const Step& step) {
  switch (step.kind) {
    case StepKind::Load:
    case StepKind::Number:
    case StepKind::Count:
      return 0;
    case StepKind::Apply:
      return oar::arity_of(step.fn);
    default:
      return 1;
  }
}

bool has_hard_arguments(const Step& step) {
  return step.kind == StepKind::Apply && step.type == DType::Float32 &&
         (step.fn == ScalarFn::Sin || step.fn == ScalarFn::Cos || step.fn == ScalarFn::Tan);
}

bool Kernel::folds() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const Step& s) { return s.kind == StepKind::Fold; });
}

void Kernel::place_steps() {
  for (Step& step : steps) {
    step.of_row = true;
    step.loop = 0;
    if (step.kind == StepKind::Load) step.of_row = inputs[step.port].lie == Lie::Single;
    for (int k = 0; k < arity_of(step); ++k) {
      const Step& from = steps[step.operands[k]];
      step.loop = std::max(step.loop, from.loop);
      step.of_row = step.of_row && from.of_row;
    }
    if (step.kind != StepKind::Fold) continue;
    step.of_row = true;
    ++step.loop;  // known when its loop has ended
  }
}

namespace {

double cost_of(const Step& step) {
  return step.kind == StepKind::Apply ? flops_of(step.fn) : step.kind == StepKind::Load ? 0 : 1;
}

// By step: the loops in which something reads its value for an element.
std::vector<std::vector<bool>> read_in(const Kernel& kernel, const std::vector<bool>& kept) {
  const size_t loops =
      1 +
      std::max_element(kernel.steps.begin(), kernel.steps.end(), [](const Step& a, const Step& b) {
        return a.loop < b.loop;
      })->loop;
  std::vector<std::vector<bool>> made(kernel.steps.size(), std::vector<bool>(loops, false));
  for (size_t k = 0; k < kernel.results.size(); ++k)
    if (const Step& step = kernel.steps[kernel.results[k]]; !step.of_row)
      made[kernel.results[k]][step.loop] = true;
  for (size_t i = kernel.steps.size(); i-- > 0;) {
    const Step& step = kernel.steps[i];
    const bool fold = step.kind == StepKind::Fold;
    if (step.of_row && !fold) continue;
    std::vector<bool> at = made[i];
    if (!fold && std::find(at.begin(), at.end(), true) == at.end()) continue;
    if (fold) {
      at.assign(loops, false);
      at[step.loop - 1U] = true;
    } else if (kept[i]) {
      std::fill(std::find(at.begin(), at.end(), true) + 1, at.end(), false);
    }
    for (int k = 0; k < arity_of(step); ++k)
      if (const uint16_t from = step.operands[k]; !kernel.steps[from].of_row)
        for (size_t loop = 0; loop < loops; ++loop)
          if (at[loop]) made[from][loop] = true;
  }
  return made;
}

}  // namespace

// A costly step that several loops read is kept; the others are computed again.
std::vector<bool> kept_steps(const Kernel& kernel) {
  std::vector<bool> kept(kernel.steps.size(), false);
  std::vector<double> cost(kernel.steps.size(), 0);  // from what is loaded or kept
  for (size_t i = 0; i < kernel.steps.size(); ++i) {
    const Step& step = kernel.steps[i];
    if (step.of_row) continue;
    cost[i] = cost_of(step);
    for (int k = 0; k < arity_of(step); ++k) cost[i] += cost[step.operands[k]];
    const std::vector<std::vector<bool>> reads = read_in(kernel, kept);
    if (std::count(reads[i].begin(), reads[i].end(), true) < 2 || cost[i] <= Kernel::kCheap)
      continue;
    kept[i] = true;
    cost[i] = 0;
  }
  return kept;
}

std::vector<std::vector<bool>> computed_in(const Kernel& kernel, const std::vector<bool>& kept) {
  return read_in(kernel, kept);
}

namespace {
std::string text_of(const Port& port) {
  const std::string joins =
      port.is_total() ? format("+{}", static_cast<int>(port.joins)) : std::string();
  return format("{}{}{}", name_of(port.dtype), "dsr"[static_cast<int>(port.lie)], joins);
}
}  // namespace

std::string Kernel::text() const {
  std::string made;
  for (const Port& p : inputs) made += text_of(p) + " ";
  made += "->";
  for (size_t k = 0; k < outputs.size(); ++k)
    made += format(" {}={}", text_of(outputs[k]), results[k]);
  for (const Step& s : steps) {
    made += format("\n{}{} {} {} {}", static_cast<int>(s.kind), s.loose ? "l" : "",
                   static_cast<int>(s.fn), name_of(s.type),
                   s.kind == StepKind::Round ? name_of(s.rounded) : "");
    for (int k = 0; k < arity_of(s); ++k) made += format(" %{}", s.operands[k]);
    if (s.kind == StepKind::Load) made += format(" port {}", s.port);
    if (s.kind == StepKind::Number) made += format(" {:a} {}", s.number, s.integer);
  }
  return made;
}

}  // namespace oar::fusion
