// Any model that Oar runs, whatever wrote its file.
//
//   const GraphModel model = load_model("net.onnx");      // or .oar, .pdmodel, .json, .tflite, .prototxt
//   const std::vector<Tensor> out = model.run({image});   // in the order of model.inputs()
#pragma once

#include <string>

#include "oar/base/api.h"
#include "oar/interop/graph_model.h"

namespace OAR_API oar {
namespace interop {

struct LoadOptions {
  std::string method = "forward";  // of an .oar file
  std::string weights;  // the second file of a model that has two; empty: the one beside the first
  bool verify = false;  // compares the weights of an .oar file with their checksums
};

// A file, the prefix of several files, or a folder with one model. Errors name the file.
GraphModel load_model(const std::string& path, const LoadOptions& options = {});

}  // namespace interop
}  // namespace oar
