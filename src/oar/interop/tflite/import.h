// Models of TFLite as programs.
//
//   const interop::GraphModel model = tflite::load_model("model.tflite");
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <string>

#include "oar/base/api.h"
#include "oar/interop/graph_model.h"

namespace OAR_API oar {
namespace tflite {

interop::GraphModel read_model(std::string file);
interop::GraphModel load_model(const std::string& path);

}  // namespace tflite
}  // namespace oar
