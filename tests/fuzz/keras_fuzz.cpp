// Any bytes at all as a model of Keras: either an Error, or a program.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "driver.h"
#include "hdf5_seed.h"
#include "oar/base/error.h"
#include "oar/interop/keras/import.h"
#include "parsers.h"
#include "zip_seed.h"

namespace {

// Files of TensorFlow.js in one: the weights come after a line of dashes.
constexpr std::string_view kBetween = "\n----\n";

void read_web(std::string_view files) {
  const size_t end = files.find(kBetween);
  const std::string_view weights =
      end == std::string_view::npos ? std::string_view() : files.substr(end + kBetween.size());
  import_small(oar::keras::read_layers_model(
      files.substr(0, end), [&](const std::string&) { return std::string(weights); }));
}

// ---- seeds -------------------------------------------------------------------------------------

std::string old_architecture() {
  return R"({"class_name": "Functional", "config": {"name": "m", "layers": [)"
         R"({"class_name": "InputLayer", "config": {"batch_input_shape": [null, 4, 4, 2], "dtype": "float32"}, "name": "x", "inbound_nodes": []},)"
         R"({"class_name": "Conv2D", "config": {"filters": 2, "strides": [1, 1], "padding": "same", "activation": "relu"}, "name": "c", "inbound_nodes": [[["x", 0, 0, {}]]]},)"
         R"({"class_name": "ZeroPadding2D", "config": {"padding": [[1, 0], [0, 1]]}, "name": "z", "inbound_nodes": [[["c", 0, 0, {}]]]},)"
         R"({"class_name": "UpSampling2D", "config": {"size": [2, 1]}, "name": "u", "inbound_nodes": [[["z", 0, 0, {}]]]},)"
         R"({"class_name": "MaxPooling2D", "config": {"pool_size": [2, 2], "padding": "same"}, "name": "p", "inbound_nodes": [[["u", 0, 0, {}]]]},)"
         R"({"class_name": "Reshape", "config": {"target_shape": [-1, 2]}, "name": "r", "inbound_nodes": [[["p", 0, 0, {}]]]},)"
         R"({"class_name": "Bidirectional", "config": {"merge_mode": "concat", "layer": {"class_name": "SimpleRNN", "config": {"name": "s", "units": 2, "return_sequences": true}}}, "name": "b", "inbound_nodes": [[["r", 0, 0, {}]]]},)"
         R"({"class_name": "TFOpLambda", "config": {"function": "math.multiply"}, "name": "t", "inbound_nodes": [["b", 0, 0, {"y": 2.0}]]},)"
         R"({"class_name": "SlicingOpLambda", "config": {}, "name": "k", "inbound_nodes": [["t", 0, 0, {"slice_spec": [{"start": null, "stop": null, "step": null}, -1]}]]},)"
         R"({"class_name": "Concatenate", "config": {"axis": -1}, "name": "y", "inbound_nodes": [[["k", 0, 0, {}], ["k", 0, 0, {}]]]}],)"
         R"("input_layers": [["x", 0, 0]], "output_layers": [["y", 0, 0]]}})";
}

std::string h5_seed() {
  Hdf5Seed h;
  const auto empty =
      std::vector<std::string>{"b/f/kernel:0", "b/f/recurrent_kernel:0", "b/f/bias:0"};
  const auto kernel = h.floats({2, 2}, {1, 2, 3, 4}), square = h.floats({2, 2}, {1, 0, 0, 1}),
             bias = h.floats({2}, {1, 2});
  const auto inner =
      h.group({{"bias:0", bias}, {"kernel:0", kernel}, {"recurrent_kernel:0", square}}, {});
  const auto layer = h.group({{"f", inner}}, {});
  const auto rows = h.group({{"b", layer}}, {{"weight_names", empty}});
  const auto filter = h.floats({1, 1, 2, 2}, {1, 2, 3, 4}, true);
  const auto conv = h.group({{"k", filter}, {"l", bias}}, {{"weight_names", {"k", "l"}}});
  const auto weights = h.group({{"b", rows}, {"c", conv}}, {{"layer_names", {"b", "c"}}});
  return h.file(h.group({{"model_weights", weights}},
                        {{"keras_version", {"2.9.0"}}, {"model_config", {old_architecture()}}}));
}

std::string archive_seed() {
  Hdf5Seed h;
  const auto vars = h.group(
      {{"0", h.floats({3, 2}, {1, 2, 3, 4, 5, 6})}, {"1", h.floats({2}, {1, 2}, true)}}, {});
  const auto layers = h.group({{"dense", h.group({{"vars", vars}}, {})}}, {});
  const std::string weights = h.file(h.group({{"layers", layers}}, {}));
  const std::string config =
      R"({"module": "keras", "class_name": "Sequential", "config": {"layers": [)"
      R"({"class_name": "InputLayer", "config": {"batch_shape": [null, 3], "dtype": "float32", "name": "i"}},)"
      R"({"class_name": "Dense", "config": {"name": "d", "units": 2, "activation": "tanh", "use_bias": true}},)"
      R"({"class_name": "Softmax", "config": {"name": "s", "axis": -1}}]}})";
  return fuzz::zipped({{"config.json", config},
                       {"metadata.json", R"({"keras_version": "3.1"})"},
                       {"model.weights.h5", weights}});
}

std::string web_seed() {
  return R"({"format": "layers-model", "modelTopology": {"keras_version": "2.9", "model_config": {"class_name": "Sequential", "config": [)"
         R"({"class_name": "Dense", "config": {"name": "d", "batch_input_shape": [null, 2], "activation": "relu"}},)"
         R"({"class_name": "BatchNormalization", "config": {"name": "n", "center": false, "scale": false}},)"
         R"({"class_name": "Softmax", "config": {"name": "q", "axis": 1}}]}},)"
         R"("weightsManifest": [{"paths": ["p"], "weights": [{"name": "d/kernel", "shape": [2, 2], "dtype": "float32", "quantization": {"dtype": "uint8", "scale": 0.5, "min": -1}},)"
         R"({"name": "d/bias", "shape": [2], "dtype": "float32", "quantization": {"dtype": "float16"}},)"
         R"({"name": "n/moving_mean", "shape": [2], "dtype": "float32"}, {"name": "n/moving_variance", "shape": [2], "dtype": "float32"}]}]})" +
         std::string(kBetween) +
         std::string("\1\2\3\4\0\x3c\0\x40\0\0\x80\x3f\0\0\0\x40\0\0\x80\x3f\0\0\0\x40", 24);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  if (file.starts_with('{')) {
    expect_error_or_nothing([&] { read_web(file); });
    return 0;
  }
  expect_error_or_nothing([&] { import_small(oar::keras::read_model(file)); });
  expect_error_or_nothing([&] { oar::keras::read_weights(file); });
  return 0;
}

std::vector<std::string> seeds() {
  import_small(oar::keras::read_model(h5_seed()));  // they are good: an error here ends the program
  import_small(oar::keras::read_model(archive_seed()));
  read_web(web_seed());
  // Mutants of mutants are mostly wrong at their beginning: half of the pool stays good.
  std::vector<std::string> pool(96, h5_seed());
  pool.resize(112, archive_seed());
  pool.resize(160, web_seed());
  return pool;
}

std::vector<std::string> dictionary() {
  return {"Conv1D",
          "Conv2DTranspose",
          "SeparableConv2D",
          "DepthwiseConv2D",
          "LSTM",
          "GRU",
          "Bidirectional",
          "TimeDistributed",
          "RNN",
          "Dot",
          "Reshape",
          "Permute",
          "Flatten",
          "Cropping2D",
          "Resizing",
          "CategoryEncoding",
          "GroupNormalization",
          "Attention",
          "MultiHeadAttention",
          "Embedding",
          "\"axis\": 9",
          "null",
          "-1",
          "[1, 2]",
          "\"same\"",
          "causal",
          "channels_first",
          "1e300",
          "TREE",
          "SNOD",
          "HEAP",
          "GCOL",
          std::string(8, '\xff'),
          std::string(4, '\0')};
}
