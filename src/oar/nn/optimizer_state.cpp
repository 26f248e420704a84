// The states of an optimiser by name: saved and loaded.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/nn/module.h"
#include "oar/nn/optimizer_slot.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"

namespace oar::nn {
namespace {

constexpr const char* kSchedule = "LR_Scheduler";
constexpr const char* kMasters = "master_weights";
constexpr const char* kPowers[] = {"beta1_pow_acc", "beta2_pow_acc"};
constexpr int64_t kForever = 10'000'000;  // the bias of moments is negligible

// "linear_0.w_0_moment1_0" without its last number.
std::string_view stem_of(std::string_view name) {
  const size_t end = name.rfind('_');
  const std::string_view digits = name.substr(end + 1);
  const bool number =
      end != std::string_view::npos && !digits.empty() &&
      std::all_of(digits.begin(), digits.end(), [](char c) { return std::isdigit(c) != 0; });
  return number ? name.substr(0, end) : name;
}

// A state by its name, or the only one whose name differs in the last number alone: a second optimiser of the same parameters has
// other numbers.
const std::pair<std::string, StateTree>* matching(const StateTree& state, const std::string& name) {
  const std::pair<std::string, StateTree>* found = nullptr;
  size_t alike = 0;
  for (const auto& entry : state.dict()) {
    if (entry.first == name) return &entry;
    if (stem_of(entry.first) != stem_of(name)) continue;
    found = &entry;
    ++alike;
  }
  return alike == 1 ? found : nullptr;
}

// How many steps were done when beta ^ (steps + 1) is known.
int64_t steps_from_power(double beta, double power) {
  if (!(beta > 0 && beta < 1 && power > 0)) return kForever;
  return std::clamp<int64_t>(std::lround(std::log(power) / std::log(beta)) - 1, 0, kForever);
}

}  // namespace

double Optimizer::Slot::to_host(const Tensor& number) {
  return to_device(number, Device{}).item_double();
}

// What a state dict and an optimiser have in common, and what not.
struct Optimizer::Fit {
  struct Place {
    size_t parameter;
    size_t state;
    const Tensor* value;
  };
  std::vector<Place> places;
  std::vector<std::pair<size_t, int64_t>> counts;
  std::vector<std::pair<size_t, const Tensor*>> masters;
  std::vector<std::string> missing, unexpected, mismatched;
};

std::string Optimizer::name_of_slot(size_t i) const {
  const std::string own = name_of_parameter(parameters_[i]);
  return own.empty() ? format("parameter_{}", i) : own;
}

std::string Optimizer::state_name(size_t i, const std::string& state) const {
  return format("{}{}_{}_0", name_of_slot(i), has_master(i) ? "_fp32_master_0" : "", state);
}

StateTree Optimizer::state_dict() const {
  NamedTensors named;
  StateTree::Dict masters;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!slot.created) continue;
    for (size_t k = 0; k < traits_.states.size(); ++k)
      named.emplace(state_name(i, traits_.states[k].name), slot.states[k]);
    if (slot.master.defined()) masters.emplace_back(name_of_slot(i), StateTree(slot.master));
    if (!traits_.counted_betas) continue;
    const auto [beta1, beta2] = *traits_.counted_betas;
    const auto power = [&](double beta) {
      return Tensor::from_vector(
          std::vector<double>{std::pow(beta, static_cast<double>(slot.count() + 1))}, Shape{1},
          parameters_[i].dtype() == DType::Float64 ? DType::Float64 : DType::Float32);
    };
    named.emplace(state_name(i, kPowers[0]), power(beta1));
    named.emplace(state_name(i, kPowers[1]), power(beta2));
  }
  StateTree state = pickled_state(named);
  if (!masters.empty()) state.set(kMasters, StateTree(std::move(masters)));
  if (const auto& schedule = options_.learning_rate.schedule())
    state.set(kSchedule, schedule->state_dict());
  return state;
}

Optimizer::Fit Optimizer::fit_of(const StateTree& state) const {
  Fit fit;
  std::set<const void*> used;
  const auto take = [&](size_t i, const std::string& name) -> const Tensor* {
    const auto* entry = matching(state, state_name(i, name));
    if (!entry || !entry->second.is_tensor()) return nullptr;
    used.insert(entry);
    return &entry->second.tensor();
  };
  std::vector<std::string> absent;  // of parameters that may never have been updated
  for (size_t i = 0; i < parameters_.size(); ++i) {
    for (size_t k = 0; k < traits_.states.size(); ++k) {
      const StateSpec& spec = traits_.states[k];
      const Tensor* value = take(i, spec.name);
      if (!value) {
        (slots_[i].created ? fit.missing : absent).push_back(state_name(i, spec.name));
        continue;
      }
      const Shape wanted = spec.is_number ? Shape{1} : parameters_[i].shape();
      if (value->shape() != wanted && !(spec.is_number && value->numel() == Dim(1)))
        fit.mismatched.push_back(format("{} is {}, expected the shape {}", state_name(i, spec.name),
                                        value->describe(), wanted.str()));
      fit.places.push_back({i, k, value});
    }
    if (traits_.counted_betas) {
      take(i, kPowers[0]);  // says the same, less precisely
      const Tensor* power = take(i, kPowers[1]);
      if (power && power->numel() == Dim(1))
        fit.counts.emplace_back(
            i, steps_from_power(traits_.counted_betas->second, power->item_double()));
      else if (slots_[i].created)
        fit.missing.push_back(state_name(i, kPowers[1]));
    }
    if (const StateTree* masters = state.find(kMasters); masters && masters->is_dict())
      if (const StateTree* own = masters->find(name_of_slot(i)); own && own->is_tensor())
        fit.masters.emplace_back(i, &own->tensor());
  }
  for (const auto& entry : state.dict())
    if (!used.contains(&entry) && entry.second.is_tensor()) fit.unexpected.push_back(entry.first);
  if (options_.learning_rate.schedule() && !state.contains(kSchedule))
    fit.missing.push_back(kSchedule);
  if (!fit.unexpected.empty() || !fit.missing.empty())
    fit.missing.insert(fit.missing.end(), absent.begin(), absent.end());
  return fit;
}

void Optimizer::check_state_dict(const StateTree& state) const {
  const Fit fit = fit_of(state);
  std::string problems;
  for (const auto& [what, names] :
       {std::pair("missing", &fit.missing), std::pair("unexpected", &fit.unexpected),
        std::pair("mismatched", &fit.mismatched)})
    if (!names->empty())
      problems += format("{}{} [{}]", problems.empty() ? "" : "; ", what, join(*names, ", "));
  user_check(
      problems.empty(), ErrorKind::InvalidArgument,
      "the state dict does not fit the optimiser: {}. Nothing was loaded.\nhint: States go by the names of parameters, "
      "which count the layers of a process: build the network as it was built when the state was saved, before other "
      "layers, or call restart_names() first.",
      problems);
}

void Optimizer::load_state_dict(const StateTree& state) {
  check_state_dict(state);
  const NoGrad off;
  const Fit fit = fit_of(state);
  for (const auto& [i, k, value] : fit.places) {
    create_states(i);
    copy_into(slots_[i].states[k], reshape(*value, slots_[i].states[k].dims()));
  }
  for (const auto& [i, value] : fit.masters) {
    create_states(i);
    if (slots_[i].master.defined()) copy_into(slots_[i].master, *value);
  }
  for (const auto& [i, count] : fit.counts) {
    slots_[i].clock = nullptr;
    slots_[i].loaded_count = count;
  }
  if (const auto& schedule = options_.learning_rate.schedule())
    schedule->load_state_dict(state.at(kSchedule));
  present_.clear();  // the next step sorts parameters again
  buckets_.clear();
}

}  // namespace oar::nn
