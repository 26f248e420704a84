// Models of Caffe as programs.
//
//   const interop::GraphModel model = caffe::load_model("deploy.prototxt", "weights.caffemodel");
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/interop/graph_model.h"

namespace OAR_API oar {
namespace caffe {

// The text of a .prototxt and the bytes of a .caffemodel.
interop::GraphModel read_model(std::string_view prototxt, std::string_view caffemodel);
interop::GraphModel load_model(const std::string& prototxt_path, const std::string& weights_path);

}  // namespace caffe
}  // namespace oar
