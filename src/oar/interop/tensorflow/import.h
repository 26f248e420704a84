// Models of TensorFlow as programs: frozen graphs, SavedModels, graph models of TensorFlow.js.
//
//   const interop::GraphModel model = tensorflow::load_model("saved_model_folder");
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/interop/graph_model.h"

namespace OAR_API oar {
namespace tensorflow {

struct Wanted {
  std::string signature;  // of a SavedModel; empty: the usual one
  // Tensors of the graph, "node" or "node:1"; empty: what the file says, or placeholders and what nothing reads.
  std::vector<std::string> inputs, outputs;
};

// A file or a folder; its content says what it is.
interop::GraphModel load_model(const std::string& path, const Wanted& wanted = {});

// The content of another file of the model, by its path inside the model's folder.
using ReadFile = std::function<std::string(const std::string& path)>;
interop::GraphModel read_frozen_graph(std::string_view file, const Wanted& wanted = {});
interop::GraphModel read_saved_model(std::string_view file, const ReadFile& read,
                                     const Wanted& wanted = {});
interop::GraphModel read_web_model(std::string_view json, const ReadFile& read,
                                   const Wanted& wanted = {});

}  // namespace tensorflow
}  // namespace oar
