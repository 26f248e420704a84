// A run of a model in the framework that its file belongs to, if Python has that.
#pragma once

#include <string>
#include <vector>

#include "oar/interop/graph_model.h"

namespace oar::cli {

struct PeerRun {
  std::string framework;        // "ONNX Runtime"; empty if Oar is the framework
  std::vector<Tensor> outputs;  // none if it did not run
  std::string note;             // why it did not
};
PeerRun run_in_peer(const interop::GraphModel& model, const std::vector<Tensor>& inputs);

}  // namespace oar::cli
