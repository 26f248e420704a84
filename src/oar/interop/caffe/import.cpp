#include "oar/interop/caffe/import.h"

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/caffe/call.h"

namespace oar::caffe {
namespace {

void check_layers(const Net& net) {
  std::vector<std::string> unknown;
  for (const Layer& layer : net.layers)
    if (!find_converter(layer.type)) unknown.push_back(layer.type);
  interop::refuse_unknown(unknown, "layers");
}

Program import_net(const Net& net, const Weights& weights, const Tensors& like) {
  interop::GraphCapture graph;
  std::map<std::string, interop::Value> values;
  for (size_t i = 0; i < net.inputs.size(); ++i)
    values[net.inputs[i].name] = graph.input(net.inputs[i].name, like[i]);
  for (const Layer& layer : net.layers) {
    std::vector<interop::Value> inputs;
    Tensors bottoms, blobs;
    for (const std::string& name : layer.bottoms) {
      const auto found = values.find(name);
      user_check(found != values.end(), ErrorKind::InvalidArgument,
                 "the layer {} reads '{}', which no layer before it computes.", layer.str(), name);
      inputs.push_back(found->second);
      bottoms.push_back(found->second.tensor);
    }
    if (const auto found = weights.find(layer.name); found != weights.end())
      for (size_t i = 0; i < found->second.size(); ++i)
        blobs.push_back(graph.constant(format("{}.{}", layer.name, i), found->second[i]).tensor);
    const Call call(layer, std::move(bottoms), std::move(blobs));
    const auto results = graph.call(format("the layer {}", layer.str()), inputs,
                                    [&] { return find_converter(layer.type)->convert(call); });
    user_check(results.size() >= layer.tops.size(), ErrorKind::Unsupported,
               "the layer {} has {} tops, of which Oar computes {}.", layer.str(),
               layer.tops.size(), results.size());
    for (size_t i = 0; i < layer.tops.size(); ++i) values[layer.tops[i]] = results[i];
  }
  std::vector<interop::Value> outputs;
  for (const std::string& name : net.outputs) outputs.push_back(values.at(name));
  values.clear();  // only the program may keep what the layers computed
  return graph.finish(outputs);
}

}  // namespace

const Tensor& Call::bottom(size_t i) const {
  if (i >= bottoms_.size()) refuse(format("its bottom {} is missing", i));
  return bottoms_[i];
}

const Tensor& Call::blob(size_t i) const {
  if (i >= blobs_.size())
    refuse(format("the file of weights has {} for it, but it needs {}", blobs_.size(), i + 1));
  return blobs_[i];
}

int64_t Call::axis(int64_t given) const {
  const int64_t rank = bottom(0).rank(), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) refuse(format("it has no axis {}", given));
  return axis;
}

void Call::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "the layer {} cannot be imported: {}.", layer.str(), why);
}

const Converter* find_converter(std::string_view type) {
  for (const auto& table : {window_converters(), elementwise_converters(), shape_converters()})
    for (const Converter& converter : table)
      if (converter.type == type) return &converter;
  return nullptr;
}

interop::GraphModel read_model(std::string_view prototxt, std::string_view caffemodel) {
  auto net = std::make_shared<const Net>(parse_net(prototxt));
  check_layers(*net);
  auto weights = std::make_shared<const Weights>(parse_weights(caffemodel));
  return {net->inputs, net->outputs,
          [net, weights](const Tensors& like) { return import_net(*net, *weights, like); }};
}

interop::GraphModel load_model(const std::string& prototxt_path, const std::string& weights_path) {
  return read_model(read_file(prototxt_path), read_file(weights_path));
}

}  // namespace oar::caffe
