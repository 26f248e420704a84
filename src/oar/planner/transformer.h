// Training steps of large transformers as programs, from their sizes alone: no weight is allocated. They are what the planner is
// tried on, and descriptions of published models are files of these sizes (docs/planner.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace planner {

struct Transformer {
  std::string name = "transformer";
  int64_t layers = 2, hidden = 64, heads = 4, key_heads = 0, inner = 0, vocabulary = 128;
  int64_t sequence = 16, batch = 8;
  int64_t head_width =
      0;               // hidden / heads if it is 0, as key_heads is heads and inner is 4 * hidden
  bool gated = false;  // RMS norms and a gated unit (silu), no biases
  // Mixtures of experts replace the units of all layers but the first `dense_layers`. Each token takes `expert_choices` experts and
  // the shared one. The program deals tokens out in turn, so it has the work and the messages of a router in balance.
  int64_t experts = 0, expert_choices = 1, expert_inner = 0, dense_layers = 0;
  bool half = true;  // bfloat16 parameters with float32 masters
};

// Loss, gradients and an update by AdamW; the parameters, their masters and moments are states without content.
Program training_step(const Transformer& model);

// How others have run the model.
struct PublishedPlan {
  std::string name;
  int64_t tensor = 1, data = 1, pipeline = 1, interleave = 1, micro_batch = 1;
  int zero = -1;  // open
  bool recompute = false;
  double seconds = 0;  // of a step, as published; 0: unknown
};

struct ModelFile {
  Transformer model;
  std::vector<PublishedPlan> plans;
};

ModelFile parse_model(std::string_view json);

}  // namespace planner
}  // namespace oar
