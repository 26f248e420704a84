#include "oar/compiler/fusion/worth.h"

#include <algorithm>

#include "oar/base/flags.h"

namespace oar::fusion {
namespace {

// Measured on a server of 2022; what counts is about how large they are.
constexpr double kBytesPerSecond = 32e9;  // of a core, mostly from its caches
constexpr double kSecondsOfCall = 0.1e-6;
constexpr double kSecondsToCompile = 15e-3;
constexpr double kSecondsToLoad = 50e-3;

constexpr double kInLibrary =
    10e-9;                           // a function of the C library: the loop around it stays scalar
constexpr double kSeries = 0.3e-9;   // one that a kernel written by hand does without
constexpr double kNarrow = 0.25e-9;  // a function of 16-bit floats
constexpr double kFolded = 0.6e-9;   // functions in a loop that sums them up

bool is_float_function(const Step& step) {
  return step.kind == StepKind::Apply && !step.of_row &&
         (step.fn >= ScalarFn::Pow && step.fn <= ScalarFn::Erf);
}
bool is_series(const Step& step) { return is_float_function(step) && flops_of(step.fn) > 1; }

bool is_in_library(const Step& step) {
  if (step.kind != StepKind::Apply || step.of_row) return false;
  if (step.type != DType::Float32 && step.type != DType::Float64) return false;
  switch (step.fn) {
    case ScalarFn::FloorDivide:
    case ScalarFn::Modulo:
    case ScalarFn::Asinh:
    case ScalarFn::Acosh:
    case ScalarFn::Atanh:
      return true;
    case ScalarFn::Pow:
    case ScalarFn::Hypot:
    case ScalarFn::Sin:
    case ScalarFn::Cos:
    case ScalarFn::Tan:
    case ScalarFn::Asin:
    case ScalarFn::Acos:
    case ScalarFn::Atan:
    case ScalarFn::Atan2:
    case ScalarFn::Erf:
      return step.type == DType::Float64;
    default:
      return false;
  }
}

// By step: does a result depend on it? A formula may have parts that an attribute turns off.
std::vector<bool> needed_steps(const Kernel& kernel) {
  std::vector<bool> needed(kernel.steps.size(), false);
  for (const uint16_t result : kernel.results) needed[result] = true;
  for (size_t i = kernel.steps.size(); i-- > 0;)
    for (int k = 0; needed[i] && k < arity_of(kernel.steps[i]); ++k)
      needed[kernel.steps[i].operands[k]] = true;
  return needed;
}

bool is_narrow(const Port& port) {
  return port.dtype == DType::Float16 || port.dtype == DType::BFloat16;
}

}  // namespace

double extra_seconds(const FusedLoop& loop) {
  const Kernel& kernel = loop.kernel;
  double extra = 0;
  int series = 0;
  const std::vector<bool> needed = needed_steps(kernel);
  for (size_t i = 0; i < kernel.steps.size(); ++i) {
    if (!needed[i]) continue;
    const Step& step = kernel.steps[i];
    if (is_in_library(step)) extra += kInLibrary;
    if (is_series(step)) ++series;
  }
  if (series > 1) extra += kSeries * (series - 1);
  if (series > 0 && kernel.folds()) extra += kFolded;
  const bool narrow = std::any_of(kernel.inputs.begin(), kernel.inputs.end(), is_narrow) ||
                      std::any_of(kernel.outputs.begin(), kernel.outputs.end(), is_narrow);
  return narrow ? extra + kNarrow * series : extra;
}

double seconds_saved(double bytes_saved, size_t calls, double extra_seconds) {
  return bytes_saved / kBytesPerSecond + kSecondsOfCall * static_cast<double>(calls - 1) -
         extra_seconds;
}

namespace {
int runs() {
  static const FlagHandle<int> flag("fusion_runs");
  return flag.get();
}
}  // namespace

bool fuses_all() { return runs() == 0; }
bool pays(double seconds_saved_by_run) {
  return fuses_all() || seconds_saved_by_run * runs() > kSecondsToCompile;
}
bool pays_to_load(double seconds_saved_by_run, size_t loops) {
  const double cost = kSecondsToLoad + kSecondsToCompile * static_cast<double>(loops);
  return fuses_all() || seconds_saved_by_run * runs() > cost;
}

}  // namespace oar::fusion
