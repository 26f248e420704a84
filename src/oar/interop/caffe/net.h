// Caffe's files as plain structs: the layers of a .prototxt, and the weights of a .caffemodel by layer.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/caffe/text.h"
#include "oar/interop/graph_model.h"

namespace oar::caffe {

struct Layer {
  std::string name, type;  // the type as newer files spell it: "Convolution", not CONVOLUTION
  std::vector<std::string> bottoms, tops;
  TextMessage fields;

  std::string str() const;  // "Convolution 'conv1'"
};

struct Net {
  std::string name;
  std::vector<interop::Port> inputs;
  std::vector<Layer> layers;         // those of a test run
  std::vector<std::string> outputs;  // tops that no layer takes
};

using Weights = std::map<std::string, std::vector<Tensor>>;  // by layer

Net parse_net(std::string_view prototxt);
Weights parse_weights(std::string_view caffemodel);

}  // namespace oar::caffe
