#include "oar/nn/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/log.h"
#include "oar/base/string_util.h"
#include "oar/nn/checkpoint_folder.h"
#include "oar/nn/numpy_random.h"
#include "oar/ops/gen/copy.h"

namespace oar::nn {
namespace {

constexpr const char* kExtra = "extra.pdstate";
constexpr const char* kRandom = "random_state.pdstate";

// The state dict of a module, with the names that its optimiser's states go by.
StateTree state_of(const Module& module) {
  std::map<std::string, std::string> names;
  for (const auto& [key, parameter] : module.named_parameters())
    names.emplace(key, name_of_parameter(parameter));
  return pickled_state(module.state_dict(), names);
}

}  // namespace

CheckpointManager::CheckpointManager(const std::string& directory, CheckpointOptions options)
    : directory_(std::filesystem::absolute(directory).string()), options_(options) {
  for (const auto& value : {options_.max_to_keep, options_.keep_period})
    user_check(!value || *value > 0, ErrorKind::InvalidArgument,
               "max_to_keep and keep_period must be positive, but one is {}.", *value);
  std::error_code problem;
  std::filesystem::create_directories(directory_, problem);
  user_check(!problem, ErrorKind::Runtime, "the folder '{}' cannot be created: {}.", directory_,
             problem.message());
  remove_leftovers(directory_);
}

CheckpointManager& CheckpointManager::add_object(const std::string& name, const char* ending,
                                                 Object object) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  user_check(plain && name != "extra" && name != "random_state", ErrorKind::InvalidArgument,
             "an object cannot be called '{}'.\nhint: Choose letters, digits and '_'.", name);
  object.file = name + ending;
  for (const Object& other : objects_)
    user_check(other.file != object.file, ErrorKind::InvalidArgument,
               "there is an object '{}' already.", name);
  objects_.push_back(std::move(object));
  return *this;
}

CheckpointManager& CheckpointManager::add(const std::string& name, Module& module) {
  return add_object(
      name, ".pdparams",
      {.file = {},
       .state = [&module] { return state_of(module); },
       .check = [&module](const StateTree& state) { module.check_state_dict(tensors_in(state)); },
       .load = [&module](const StateTree& state) { module.load_state_dict(tensors_in(state)); }});
}

CheckpointManager& CheckpointManager::add(const std::string& name, Optimizer& optimizer) {
  return add_object(
      name, ".pdopt",
      {.file = {},
       .state = [&optimizer] { return optimizer.state_dict(); },
       .check = [&optimizer](const StateTree& state) { optimizer.check_state_dict(state); },
       .load = [&optimizer](const StateTree& state) { optimizer.load_state_dict(state); }});
}

CheckpointManager& CheckpointManager::add(const std::string& name, lr::LRScheduler& schedule) {
  return add_object(
      name, ".pdstate",
      {.file = {},
       .state = [&schedule] { return schedule.state_dict(); },
       .check = [](const StateTree& state) { state.at("last_epoch").integer(); },
       .load = [&schedule](const StateTree& state) { schedule.load_state_dict(state); }});
}

CheckpointManager& CheckpointManager::add(const std::string& name, DataLoader& loader) {
  return add_object(name, ".pdstate",
                    {.file = {},
                     .state = [&loader] { return loader.state_dict(); },
                     .check = [](const StateTree& state) { state.at("passes").integer(); },
                     .load = [&loader](const StateTree& state) { loader.load_state_dict(state); }});
}

CheckpointManager& CheckpointManager::add(const std::string& name, const NamedTensors& tensors) {
  return add_object(
      name, ".pdparams",
      {.file = {},
       .state =
           [tensors] {
             StateTree::Dict state;
             for (const auto& [key, tensor] : tensors) state.emplace_back(key, tensor);
             return StateTree(std::move(state));
           },
       .check =
           [tensors](const StateTree& state) {
             const NamedTensors saved = tensors_in(state);
             for (const auto& [key, tensor] : tensors) {
               const auto found = saved.find(key);
               user_check(found != saved.end(), ErrorKind::InvalidArgument, "it has no '{}'.", key);
               user_check(found->second.describe() == tensor.describe(), ErrorKind::InvalidArgument,
                          "'{}' is {} there, but {} here.", key, found->second.describe(),
                          tensor.describe());
             }
           },
       .load =
           [tensors](const StateTree& state) {
             const NamedTensors saved = tensors_in(state);
             for (const auto& [key, tensor] : tensors) copy_into(tensor, saved.at(key));
           }});
}

void CheckpointManager::save(int64_t step, const StateTree& extra) {
  user_check(step >= 0, ErrorKind::InvalidArgument, "the step must not be negative, but is {}.",
             step);
  NamedStates states;
  for (const Object& object : objects_) states.emplace_back(object.file, object.state());
  states.emplace_back(kExtra, StateTree(StateTree::Dict{{"extra", extra}}));
  if (options_.save_random_state) states.emplace_back(kRandom, random_states());
  int64_t serial = 0;
  for (const auto& [other, number] : steps_in(directory_))
    if (number != kUnknownSerial) serial = std::max(serial, number + 1);
  try {
    write_checkpoint(directory_, step, serial, states);
  } catch (const Error& error) {
    fail(
        error.kind(),
        "the checkpoint of step {} could not be written to '{}': {} Those of the steps [{}] are unchanged.\nhint: Free some space "
        "or choose another directory.",
        step, directory_, error.text(), join(steps(), ", "));
  }
  remove_old();
}

void CheckpointManager::remove_old() {
  if (!options_.max_to_keep) return;
  const std::vector<int64_t> all = steps();
  for (size_t i = 0; i + static_cast<size_t>(*options_.max_to_keep) < all.size(); ++i)
    if (!options_.keep_period || all[i] % *options_.keep_period != 0)
      remove_checkpoint(directory_, all[i]);
}

std::vector<int64_t> CheckpointManager::steps() const {
  std::vector<int64_t> all;
  for (const auto& [step, serial] : steps_in(directory_)) all.push_back(step);
  return all;
}

std::vector<std::string> CheckpointManager::file_names() const {
  std::vector<std::string> names;
  for (const Object& object : objects_) names.push_back(object.file);
  names.emplace_back(kExtra);
  if (options_.save_random_state) names.emplace_back(kRandom);
  return names;
}

void CheckpointManager::apply(int64_t step,
                              const std::vector<std::pair<std::string, StateTree>>& states) {
  for (size_t i = 0; i < objects_.size(); ++i) {
    try {
      objects_[i].check(states[i].second);
    } catch (const Error& error) {
      fail(error.kind(), "checkpoint {} does not fit '{}': {} Nothing was restored.\nhint: {}",
           step, objects_[i].file, error.text(), error.hint());
    }
  }
  for (size_t i = 0; i < objects_.size(); ++i) objects_[i].load(states[i].second);
  if (options_.save_random_state) set_random_states(states.back().second);
}

std::optional<Checkpoint> CheckpointManager::restore(std::optional<int64_t> step, bool fallback) {
  std::vector<int64_t> wanted = step ? std::vector{*step} : steps();
  while (!wanted.empty()) {
    const int64_t one = wanted.back();
    wanted.pop_back();
    NamedStates states;
    try {
      states = read_states(directory_, one, file_names());
    } catch (const Error& error) {
      if (fallback && !wanted.empty()) {
        log_warning("{} The checkpoint before it is tried.", error.what());
        continue;
      }
      fail(error.kind(), "{} There are checkpoints of the steps [{}].\nhint: {}", error.text(),
           join(steps(), ", "), error.hint());
    }
    apply(one, states);
    return Checkpoint{one, states[objects_.size()].second.at("extra"), folder_of(directory_, one)};
  }
  return std::nullopt;
}

}  // namespace oar::nn
