// What kind of file is this? Its content decides. The ending does so only for text that could be anything.
//
// A new importer adds a kind here, and a row in load.cpp if its files are models that run.
#pragma once

#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/base/error.h"

namespace OAR_API oar {
namespace interop {

enum class FileKind {
  Unknown,
  // models
  Oar,           // .oar
  OarProgram,    // the .pdmodel that Oar writes, with .pdiparams beside it
  PaddleLegacy,  // the .pdmodel that Paddle writes
  PaddlePir,     // .json
  Onnx,
  Tflite,
  CaffeNet,      // .prototxt, with a .caffemodel beside it
  TensorFlow,    // saved_model.pb, a frozen graph, or the model.json of TensorFlow.js
  Keras,         // .keras, or an .h5 with an architecture
  TorchProgram,  // what torch.export.save writes
  TorchScript,   // what torch.jit.save writes
  // tensors by name
  CaffeWeights,
  Safetensors,
  Npz,
  Npy,  // one tensor
  Gguf,
  Hdf5,      // .h5: weights of Keras
  Pickle,    // .pdparams, or an old file of PyTorch
  TorchZip,  // what torch.save writes
  // neither
  ProgramText,  // what oar.jit.capture prints
  Jpeg,
  Png,
  Json,
};

// "an ONNX model"
const char* described(FileKind kind);
// "onnx": one word, for programs that read it.
const char* to_string(FileKind kind);
bool is_model(FileKind kind);
bool holds_tensors(FileKind kind);

// The first bytes are enough for all kinds but ONNX, whose graph may begin anywhere.
FileKind guess_kind(std::string_view content, std::string_view path);
FileKind guess_kind(const std::string& path);

// The file that is meant by a path: the file itself; for the prefix of several files, the one with the program; for a folder, the only
// model inside. An error says what was looked for.
std::string model_file(const std::string& path);

// Calls body, and names the file in an error that does not.
template <class F>
auto naming_file(const std::string& path, F&& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted || path.empty() ||
        error.text().find(path) != std::string::npos)
      throw;
    throw Error(error.kind(), "\"" + path + "\" cannot be read: " + error.text(), error.hint());
  }
}

}  // namespace interop
}  // namespace oar
