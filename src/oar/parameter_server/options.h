// What servers, clients and tables are told.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace oar::parameter_server {

using Milliseconds = std::chrono::milliseconds;

enum class RuleKind : uint8_t { Sgd, Adagrad, Adam, Sum };
enum class InitialKind : uint8_t { Constant, Uniform, Gaussian };
enum class EntryKind : uint8_t { Always, Count, Probability };

// How the values of a row change with a gradient.
struct RuleOptions {
  RuleKind kind = RuleKind::Sgd;
  float learning_rate = 0.01F;  // where a push brings none
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;
  float initial_accumulator = 0.0F;  // of Adagrad
};

struct InitialOptions {
  InitialKind kind = InitialKind::Uniform;
  float value = 0.0F;  // of Constant
  float scale = 0.1F;  // Uniform: [-scale, scale); Gaussian: the standard deviation
  uint64_t seed = 0;
};

// What shows and clicks mean, and which rows a shrink removes.
struct ScoreOptions {
  bool counts_shows = false;
  float show_coefficient = 0.1F, click_coefficient = 1.0F;
  float decay = 0.98F;  // of shows and clicks with each shrink
  float least_score = 0.8F;
  uint32_t most_unseen = 30;  // shrinks that a row survives without a push
};

// Which keys get a row.
struct EntryOptions {
  EntryKind kind = EntryKind::Always;
  float threshold = 0.0F;  // pushes of a key, or a probability
};

struct TableOptions {
  std::string name;
  bool sparse = true;
  uint64_t width = 0;  // values of a row; of a dense table: values on all servers together
  bool on_disk = false;
  uint64_t cache_bytes = 64 << 20;  // of a table on disk, on each server
  RuleOptions rule;
  InitialOptions initial;
  ScoreOptions score;
  EntryOptions entry;
};

struct ServerOptions {
  std::string address = "127.0.0.1:0";
  std::string token;
  std::string folder;  // of the log, the checkpoint and the tables on disk
  uint32_t index = 0, servers = 1, workers = 1;
  uint64_t most_message_bytes = 64 << 20;
  uint64_t log_bytes = 256 << 20;  // a checkpoint replaces a log that is longer
};

struct ClientOptions {
  std::vector<std::string> servers;
  std::string token;
  uint32_t worker = 0;
  Milliseconds timeout{60000};
};

// What a table holds on all servers together.
struct TableSize {
  bool exists = true;
  uint64_t rows = 0;
  uint64_t bytes = 0;       // in memory
  uint64_t candidates = 0;  // keys that have no row yet
};

enum class SaveMode : uint8_t { Base, Delta };

}  // namespace oar::parameter_server
