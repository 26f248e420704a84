// Models of Keras as programs: `.keras`, `.h5`, and models of layers of TensorFlow.js.
//
//   const interop::GraphModel model = keras::load_model("net.keras");
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/interop/graph_model.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace keras {

// Its content says which format it is. The weights of a model.json are beside it.
interop::GraphModel load_model(const std::string& path);

// A `.keras` archive or an `.h5` file.
interop::GraphModel read_model(std::string_view file);
// The content of another file of the model, by its path inside the model's folder.
using ReadFile = std::function<std::string(const std::string& path)>;
interop::GraphModel read_layers_model(std::string_view json, const ReadFile& read);

struct NamedTensor {
  std::string name;  // "dense/kernel", or "layers/dense/vars/0"
  Tensor tensor;
};
// The weights of an `.h5` file, in its order.
std::vector<NamedTensor> read_weights(std::string_view file);

}  // namespace keras
}  // namespace oar
