// The subcommands that work on models: `run`, `bench`, `inspect`, `train`. Each prints to `out` and returns the exit status.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "oar/cli/model_inputs.h"

namespace oar::cli {

struct ModelChoice {
  std::string path, method = "forward", weights;
  bool verify = false;
  int threads = 0;  // 0: as the flag num_threads says
};

struct RunQuery {
  ModelChoice model;
  InputOptions inputs;
  std::string
      output;  // a folder, an .npz file, or an .npy file for the only output; empty: nowhere
  std::string labels;  // a file with the name of a class in each line
  bool json = false;
};
int run_model(std::ostream& out, bool color, const RunQuery& query);

struct BenchQuery {
  ModelChoice model;
  InputOptions inputs;
  int warmup = 3, repeat = 20;
  bool json = false, profile = false;
};
int bench_model(std::ostream& out, bool color, const BenchQuery& query);

struct FileQuery {
  std::string path;
  std::string method = "forward", weights = {};
  bool json = false;
};
// What a model takes and gives, or which tensors a file holds.
int describe_file(std::ostream& out, bool color, const FileQuery& query);

struct TrainQuery {
  ModelChoice model;
  std::string data;        // .npz with an array for each input
  std::string checkpoint;  // a folder; empty: none are written
  std::string output;      // .npz or .safetensors: the states at the end
  int epochs = 1;
  int64_t batch = 32, save_every = 0, seed = 0;  // save_every: steps; 0: at the end of each epoch
  bool shuffle = true, drop_last = false, resume = false, json = false;
};
int train_model(std::ostream& out, bool color, const TrainQuery& query);

}  // namespace oar::cli
