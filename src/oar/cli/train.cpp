#include <chrono>
#include <cmath>
#include <ostream>

#include "oar/base/error.h"
#include "oar/base/parallel.h"
#include "oar/base/string_util.h"
#include "oar/cli/model_commands.h"
#include "oar/cli/progress.h"
#include "oar/cli/tensor_text.h"
#include "oar/formats/npz.h"
#include "oar/nn/checkpoint.h"
#include "oar/nn/numpy_random.h"
#include "oar/ops/gen/copy.h"
#include "oar/runtime/model.h"

namespace oar::cli {
namespace {

// The tensors that a run of the step replaces: parameters, moments, counters.
NamedTensors written_states(const Model& step, const std::string& path) {
  NamedTensors states = step.written_states();
  user_check(
      !states.empty(), ErrorKind::InvalidArgument,
      "\"{}\" changes no parameter, so there is nothing to train.\nhint: Save a function that calls backward() and "
      "optimizer.step() with oar.jit.save; docs/command.md shows how.",
      path);
  return states;
}

// The arrays for the step's inputs, in its order.
std::vector<Tensor> arrays_for(const Model& step, const TrainQuery& query) {
  user_check(query.data.ends_with(".npz"), ErrorKind::InvalidArgument,
             "\"{}\" is no .npz file.\nhint: Write the data with numpy.savez.", query.data);
  const NamedTensors arrays = load_npz(query.data);
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(format("{} {}", name, array.describe()));
  std::vector<Tensor> made;
  for (const Model::Port& port : step.inputs()) {
    const auto found = arrays.find(port.name);
    user_check(
        found != arrays.end(), ErrorKind::InvalidArgument,
        "\"{}\" has no array '{}', which the step takes as {}; it has {}.\nhint: Save it under that name.",
        query.data, port.name, port.str(), join(names, ", "));
    user_check(found->second.dtype() == port.dtype, ErrorKind::InvalidArgument,
               "the array '{}' of \"{}\" is {}, but the step takes {}.\nhint: Save it as {}.",
               port.name, query.data, found->second.describe(), port.str(), name_of(port.dtype));
    made.push_back(found->second);
  }
  return made;
}

// The first output, which is the loss as a rule.
double first_number(const std::vector<Tensor>& outputs) {
  const bool one = !outputs.empty() && outputs[0].numel() == Dim(1);
  return one ? cast(outputs[0], DType::Float64).item_double() : 0;
}

void write_states(const std::string& path, const NamedTensors& states) {
  if (path.empty()) return;
  if (path.ends_with(".npz")) return save_npz(path, states);
  user_check(path.ends_with(".safetensors"), ErrorKind::InvalidArgument,
             "\"{}\" has an unknown ending.\nhint: --output takes .safetensors or .npz.", path);
  save_safetensors(path, states);
}

// Sums of an epoch.
struct Epoch {
  double loss = 0;
  int64_t steps = 0;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
};

void report(std::ostream& out, const TrainQuery& query, int64_t number, int64_t step,
            const Epoch& epoch) {
  const double loss = epoch.steps > 0 ? epoch.loss / static_cast<double>(epoch.steps) : 0;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - epoch.start).count();
  if (query.json)
    out << format("{{\"epoch\": {}, \"step\": {}, \"loss\": {}, \"seconds\": {}}}\n", number, step,
                  json_number(loss), json_number(seconds));
  else
    out << format("epoch {}: step {}, mean of the first output {:.6g}, {:.1f} s\n", number, step,
                  loss, seconds);
  out.flush();
}

}  // namespace

int train_model(std::ostream& out, bool, const TrainQuery& query) {
  user_check(query.epochs > 0 && query.batch > 0 && query.save_every >= 0,
             ErrorKind::InvalidArgument, "--epochs and --batch must be positive.");
  user_check(!query.resume || !query.checkpoint.empty(), ErrorKind::InvalidArgument,
             "--resume needs the folder of the checkpoints.\nhint: Pass --checkpoint DIR.");
  if (query.model.threads > 0) set_num_threads(query.model.threads);
  nn::seed_all(static_cast<uint64_t>(query.seed));
  const Model step = Model::load(query.model.path, query.model.method, query.model.verify);
  const NamedTensors states = written_states(step, query.model.path);
  const nn::TensorDataset data(arrays_for(step, query));
  nn::DataLoader loader(
      data, {.batch_size = query.batch, .shuffle = query.shuffle, .drop_last = query.drop_last});
  user_check(loader.size() > 0, ErrorKind::InvalidArgument, "\"{}\" has no batch of {} samples.",
             query.data, query.batch);
  std::optional<nn::CheckpointManager> manager;
  int64_t done = 0;
  if (!query.checkpoint.empty()) {
    manager.emplace(query.checkpoint);
    manager->add("states", states).add("loader", loader);
    user_check(
        query.resume || manager->steps().empty(), ErrorKind::InvalidArgument,
        "\"{}\" has checkpoints already.\nhint: Pass --resume to continue, or another folder.",
        query.checkpoint);
    if (query.resume)
      if (const auto found = manager->restore()) done = found->step;
    if (done > 0 && !query.json) out << format("continues after step {}\n", done);
  }
  const int64_t per_epoch = loader.size(), total = per_epoch * query.epochs;
  Progress progress("train", total);
  bool finite = true;
  while (done < total && finite) {
    Epoch epoch;
    for (const nn::Batch& batch : loader) {
      const double loss = first_number(step.run(batch));
      finite = std::isfinite(loss);
      epoch.loss += loss;
      ++epoch.steps;
      ++done;
      progress.advance(done, format("{:.6g}", loss));
      if (manager && query.save_every > 0 && done % query.save_every == 0) manager->save(done);
      if (!finite) break;
    }
    if (epoch.steps == 0) continue;  // what was restored was the end of a pass
    progress.clear();
    if (manager && finite && (query.save_every == 0 || done == total) &&
        (manager->steps().empty() || manager->steps().back() != done))
      manager->save(done);
    report(out, query, (done + per_epoch - 1) / per_epoch, done, epoch);
  }
  write_states(query.output, states);
  if (!query.output.empty() && !query.json) out << "Written to " << query.output << '\n';
  if (!finite && !query.json) out << "Stopped: the first output is not finite.\n";
  return finite ? 0 : 1;
}

}  // namespace oar::cli
