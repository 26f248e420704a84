// Checkpoints of a training run, in the format of Python's oar.checkpoint: each language resumes what the other saved.
//
//   nn::CheckpointManager manager("run", {.max_to_keep = 3});
//   manager.add("model", net).add("optimizer", optimizer).add("loader", loader);
//   const auto found = manager.restore();          // nothing at the first start
//   for (int64_t step = found ? found->step : 0; ...) {
//     ...
//     manager.save(step);
//   }
//
// A checkpoint is a folder step_00000012 with a file for each object and a list of them, checkpoint.json, which has their
// checksums. It appears whole or not at all, also if the process is killed or the disk is full.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/pickle.h"
#include "oar/nn/data.h"
#include "oar/nn/lr.h"
#include "oar/nn/module.h"
#include "oar/nn/optimizer.h"

namespace OAR_API oar {
namespace nn {

struct CheckpointOptions {
  std::optional<int64_t> max_to_keep = 5;  // those written last; nothing keeps all
  std::optional<int64_t> keep_period =
      std::nullopt;  // steps that are multiples of it are kept for ever
  bool save_random_state = true;
};

struct Checkpoint {
  int64_t step;
  StateTree extra;  // what was passed to save
  std::string path;
};

class CheckpointManager {
 public:
  explicit CheckpointManager(const std::string& directory, CheckpointOptions options = {});

  // What is saved, by name. The objects must outlive the manager. A schedule that an optimiser has is saved with it.
  CheckpointManager& add(const std::string& name, Module& module);
  CheckpointManager& add(const std::string& name, Optimizer& optimizer);
  CheckpointManager& add(const std::string& name, lr::LRScheduler& schedule);
  CheckpointManager& add(const std::string& name, DataLoader& loader);
  // Tensors by name; restoring writes into them.
  CheckpointManager& add(const std::string& name, const NamedTensors& tensors);

  // Writes a checkpoint, which replaces one of the same step, and removes those that are not kept any more.
  void save(int64_t step, const StateTree& extra = {});
  // Puts a checkpoint into the objects: the last one, or the one of a step. All files are checked, and compared with the objects,
  // before anything changes. Nothing if there are none and no step was requested. With `fallback`, a damaged one is passed over,
  // with a warning, for the one before it.
  std::optional<Checkpoint> restore(std::optional<int64_t> step = std::nullopt,
                                    bool fallback = false);

  // In the order in which they were written.
  std::vector<int64_t> steps() const;
  const std::string& directory() const { return directory_; }

 private:
  struct Object {
    std::string file;
    std::function<StateTree()> state;
    std::function<void(const StateTree&)> check, load;
  };
  CheckpointManager& add_object(const std::string& name, const char* ending, Object object);
  void remove_old();
  std::vector<std::string> file_names() const;
  void apply(int64_t step, const std::vector<std::pair<std::string, StateTree>>& states);

  std::string directory_;
  CheckpointOptions options_;
  std::vector<Object> objects_;
};

}  // namespace nn
}  // namespace oar
