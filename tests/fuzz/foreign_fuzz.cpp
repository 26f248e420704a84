// Any bytes at all as a model of another framework: either an Error, or a program.
#include <cstdio>
#include <cstdlib>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/formats/gguf.h"
#include "oar/interop/caffe/import.h"
#include "oar/interop/guess.h"
#include "oar/interop/pytorch/import.h"
#include "oar/interop/tflite/import.h"
#include "parsers.h"
#include "tflite_seed.h"
#include "torch_seed.h"
#include "zip_seed.h"

namespace {

using fuzz::number;
using fuzz::zipped;

// Two files in one: the text ends where a line of dashes begins.
constexpr std::string_view kBetween = "\n----\n";

void read_caffe(std::string_view file) {
  const size_t middle = file.find(kBetween);
  if (middle == std::string_view::npos) return;
  import_small(
      oar::caffe::read_model(file.substr(0, middle), file.substr(middle + kBetween.size())));
}

void read_tflite(std::string_view file) {
  import_small(oar::tflite::read_model(std::string(file)));
}

// Texts of an archive, whose checksums would hide them from mutations.
void read_torch_texts(std::string_view file) {
  const size_t middle = file.find(kBetween);
  if (middle == std::string_view::npos) return;
  import_small(
      oar::pytorch::read_model(zipped({{"m/models/model.json", std::string(file.substr(0, middle))},
                                       {"m/data/weights/model_weights_config.json",
                                        std::string(file.substr(middle + kBetween.size()))},
                                       {"m/data/weights/weight_0", std::string(8, '\1')}}))
          .graph);
}
void read_torch(std::string_view file) { import_small(oar::pytorch::read_model(file).graph); }

void read_gguf(std::string_view file) {
  for (const oar::GgufTensor& tensor : oar::parse_gguf(file).tensors)
    if (!tensor.data.empty()) oar::read_gguf_tensor(tensor);
}

// A list of texts, and a tensor of one block.
std::string gguf_seed() {
  const std::string key = number(1, 8) + "k", name = number(1, 8) + "w";
  std::string made = "GGUF" + number(3, 4) + number(1, 8) + number(1, 8) + key + number(9, 4) +
                     number(8, 4) + number(1, 8) + key + name + number(1, 4) + number(32, 8) +
                     number(8, 4) + number(0, 8);
  made.resize((made.size() + 31) / 32 * 32 + 34, '\x11');
  return made;
}

std::string caffe_seed() {
  const std::string text =
      "input: 'x' input_dim: [1, 2, 5, 5]\n"
      "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 1 kernel_size: 1 } }\n"
      "layer { name: 'p' type: 'Pooling' bottom: 'c' top: 'p' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 } }\n"
      "layer { name: 'l' type: 'LRN' bottom: 'p' top: 'l' lrn_param { local_size: 3 norm_region: WITHIN_CHANNEL } }\n"
      "layer { name: 'r' type: 'Reshape' bottom: 'l' top: 'r' reshape_param { shape { dim: 0 dim: -1 } } }\n"
      "layer { name: 's' type: 'Softmax' bottom: 'r' top: 's' }";
  const std::string weight("\x3a\x06\x0a\x04\x01\x02\x01\x01\x2a\x08\0\0\x80\x3f\0\0\0\x40", 18);
  const std::string bias("\x3a\x03\x0a\x01\x01\x2a\x04\0\0\0\0", 11);
  const std::string layer = std::string("\x0a\x01") + "c" + "\x3a" + char(weight.size()) + weight +
                            "\x3a" + char(bias.size()) + bias;
  return text + std::string(kBetween) + std::string("\xa2\x06", 2) + char(layer.size()) + layer;
}

std::string torch_texts() {
  return std::string(kTorchModelSeed) + std::string(kBetween) + kTorchWeightsSeed;
}
// A state dict of older archives: {"w": a tensor of two numbers}.
std::string torch_state() {
  using namespace std::string_literals;
  const auto text = [](const std::string& t) { return "X" + number(t.size(), 4) + t; };
  const std::string storage =
      "(" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\2tQ";
  const std::string pickle = "\x80\2}(" + text("w") + "ctorch._utils\n_rebuild_tensor_v2\n(" +
                             storage + "K\0K\2\x85K\1\x85\x89}tRu."s;
  return zipped({{"archive/data.pkl", pickle}, {"archive/data/0", std::string(8, '\1')}});
}
std::string torch_older() {
  return zipped({{"serialized_exported_program.json", kTorchModelSeed},
                 {"serialized_state_dict.pt", torch_state()}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  expect_error_or_nothing([&] { read_caffe(file); });
  expect_error_or_nothing([&] { read_tflite(file); });
  expect_error_or_nothing([&] { read_gguf(file); });
  expect_error_or_nothing([&] { read_torch(file); });
  expect_error_or_nothing([&] { read_torch_texts(file); });
  expect_error_or_nothing([&] { oar::interop::guess_kind(file, "x"); });
  return 0;
}

std::vector<std::string> seeds() {
  const std::string tflite(std::begin(kTfliteSeed), std::end(kTfliteSeed));
  read_caffe(caffe_seed());  // they are good: an error here ends the program
  read_tflite(tflite);
  read_gguf(gguf_seed());
  read_torch_texts(torch_texts());
  // Mutants of mutants are mostly wrong at their beginning: half of the pool stays good.
  std::vector<std::string> pool(64, caffe_seed());
  pool.resize(128, tflite);
  pool.resize(160, gguf_seed());
  pool.resize(288, torch_texts());
  pool.resize(304, torch_older());
  return pool;
}

std::vector<std::string> dictionary() {
  return {"kernel_size: 3",
          "stride: 2",
          "pad: 1",
          "group: 2",
          "axis: -1",
          "dim: 0",
          "InnerProduct",
          "Eltwise",
          "Slice",
          "Crop",
          "BatchNorm",
          "Scale",
          "bottom: 'x'",
          "top: 'x'",
          "Permute",
          "Flatten",
          "Tile",
          "Deconvolution",
          "num_axes: 1",
          "order: 1",
          "\x3a\x01",
          "\x2a\x04",
          "global_pooling: true",
          "\"as_none\":true",
          "\"as_int\":-1",
          "{\"as_tensor\":{\"name\":\"x\"}}",
          "aten.add_.Tensor",
          "aten.reshape.default",
          "aten.select.int",
          "as_sym_int",
          "9223372036854775807"};
}
