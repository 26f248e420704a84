#include "oar/interop/guess.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/formats/hdf5.h"
#include "oar/formats/mapped_tensors.h"
#include "oar/formats/zip.h"
#include "oar/interop/paddle/import.h"
#include "oar/interop/protobuf.h"
#include "oar/interop/pytorch/import.h"

namespace oar::interop {
namespace {

struct Known {
  FileKind kind;
  const char* word;
  const char* text;
  enum { Model, Tensors, Other } use;
};
constexpr Known kKinds[] = {
    {FileKind::Unknown, "unknown", "a file of an unknown kind", Known::Other},
    {FileKind::Oar, "oar", "an .oar file", Known::Model},
    {FileKind::OarProgram, "oar-program", "a program of Oar", Known::Model},
    {FileKind::PaddleLegacy, "paddle", "a program of Paddle (.pdmodel)", Known::Model},
    {FileKind::PaddlePir, "paddle-pir", "a program of Paddle (PIR)", Known::Model},
    {FileKind::Onnx, "onnx", "an ONNX model", Known::Model},
    {FileKind::Tflite, "tflite", "a TFLite model", Known::Model},
    {FileKind::CaffeNet, "caffe", "a Caffe net", Known::Model},
    {FileKind::TensorFlow, "tensorflow", "a model of TensorFlow", Known::Model},
    {FileKind::Keras, "keras", "a model of Keras", Known::Model},
    {FileKind::TorchProgram, "torch-export", "a program of torch.export", Known::Model},
    {FileKind::TorchScript, "torchscript", "a TorchScript archive", Known::Model},
    {FileKind::CaffeWeights, "caffemodel", "the weights of a Caffe net", Known::Other},
    {FileKind::Safetensors, "safetensors", "safetensors", Known::Tensors},
    {FileKind::Npz, "npz", "an .npz file", Known::Tensors},
    {FileKind::Npy, "npy", "an .npy file", Known::Tensors},
    {FileKind::Gguf, "gguf", "a GGUF file", Known::Tensors},
    {FileKind::Hdf5, "hdf5", "weights in an HDF5 file", Known::Tensors},
    {FileKind::Pickle, "pickle", "a pickle (Paddle's or PyTorch's)", Known::Tensors},
    {FileKind::TorchZip, "torch", "a file of torch.save", Known::Tensors},
    {FileKind::ProgramText, "program-text", "a captured program as text", Known::Other},
    {FileKind::Jpeg, "jpeg", "a JPEG image", Known::Other},
    {FileKind::Png, "png", "a PNG image", Known::Other},
    {FileKind::Json, "json", "JSON", Known::Other},
};

const Known& known(FileKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [&](const Known& k) { return k.kind == kind; });
}

struct Magic {
  FileKind kind;
  size_t at;
  std::string_view bytes;
};
constexpr Magic kMagics[] = {
    {FileKind::Oar, 0, "\x89OAR\r\n\x1a\n"},
    {FileKind::Tflite, 4, "TFL3"},
    {FileKind::Gguf, 0, "GGUF"},
    {FileKind::Npy, 0, "\x93NUMPY"},
    {FileKind::Jpeg, 0, "\xff\xd8\xff"},
    {FileKind::Png, 0, "\x89PNG\r\n\x1a\n"},
};

// Files of arrays, of Keras, torch.export, torch.jit.save or torch.save: by the names of entries, which are known where the archive is
// whole.
FileKind kind_of_whole_zip(std::string_view content) {
  try {
    const ZipFile zip(content);
    if (zip.find("config.json") && zip.find("model.weights.h5")) return FileKind::Keras;
    switch (pytorch::kind_of_archive(zip)) {
      case pytorch::ArchiveKind::Export:
        return FileKind::TorchProgram;
      case pytorch::ArchiveKind::Script:
        return FileKind::TorchScript;
      case pytorch::ArchiveKind::Other:
        break;
    }
    return FileKind::Unknown;
  } catch (const Error&) {
    return FileKind::Unknown;
  }
}

// Of a damaged archive the beginning still tells what it was.
FileKind kind_of_zip(std::string_view content) {
  uint16_t length = 0;
  if (content.size() < 30) return FileKind::Unknown;
  std::memcpy(&length, content.data() + 26, sizeof(length));
  const std::string_view name = content.substr(30, length);
  if (name.ends_with(".npy")) return FileKind::Npz;
  const FileKind whole = kind_of_whole_zip(content);
  if (whole != FileKind::Unknown) return whole;
  return name.ends_with("/data.pkl") || name.ends_with("/version") ? FileKind::TorchZip
                                                                   : FileKind::Unknown;
}

// A whole model has its architecture among the attributes of the root.
FileKind kind_of_hdf5(std::string_view content) {
  try {
    return Hdf5File(content).root().texts("model_config") ? FileKind::Keras : FileKind::Hdf5;
  } catch (const Error&) {  // damaged, or only its beginning
    return FileKind::Hdf5;
  }
}

bool is_safetensors(std::string_view content) {
  uint64_t header = 0;
  if (content.size() < 10) return false;
  std::memcpy(&header, content.data(), sizeof(header));
  return header <= content.size() - 8 && content[8] == '{';
}

// A ModelProto: it has a graph, the version of the format or of the operators, and nothing that does not belong there.
bool is_onnx(std::string_view content) {
  bool graph = false, version = false;
  try {
    for (ProtoReader r(content); r.next();) {
      const int field = r.field();
      if ((field < 1 || field > 8) && field != 14 && field != 20 && field != 25 && field != 26)
        return false;
      if (field == 1) version |= r.integer() > 0;
      if (field == 8) version |= !r.bytes().empty();
      if (field == 7) {
        r.bytes();
        graph = true;
      }
    }
  } catch (const Error&) {
    return false;
  }
  return graph && version;
}

bool looks_like_text(std::string_view start) {
  return std::none_of(start.begin(), start.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
}

FileKind kind_of_text(std::string_view content, std::string_view path) {
  const std::string_view text = trim(content.substr(0, 4096));
  if (text.starts_with("program ")) return FileKind::ProgramText;
  if (text.starts_with('{') || text.starts_with('[')) {
    if (paddle::is_program(content)) return FileKind::PaddlePir;
    if (content.find("\"modelTopology\"") != std::string_view::npos) return FileKind::TensorFlow;
    return text.substr(0, 256).find("\"oar program\"") != std::string_view::npos
               ? FileKind::OarProgram
               : FileKind::Json;
  }
  return path.ends_with(".prototxt") || path.ends_with(".pbtxt") ||
                 text.find("layer {") != std::string_view::npos ||
                 text.find("layers {") != std::string_view::npos
             ? FileKind::CaffeNet
             : FileKind::Unknown;
}

namespace fs = std::filesystem;

// Of the files of models that have several, the one with the program.
constexpr const char* kModelEnds[] = {".oar", ".json", ".pdmodel", ".onnx",  ".tflite", ".prototxt",
                                      ".pb",  ".pt2",  ".pt",      ".keras", ".h5",     ".hdf5"};

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

const char* described(FileKind kind) { return known(kind).text; }
const char* to_string(FileKind kind) { return known(kind).word; }
bool is_model(FileKind kind) { return known(kind).use == Known::Model; }
bool holds_tensors(FileKind kind) { return known(kind).use == Known::Tensors; }

FileKind guess_kind(std::string_view content, std::string_view path) {
  for (const Magic& magic : kMagics)
    if (content.size() >= magic.at && content.substr(magic.at).starts_with(magic.bytes))
      return magic.kind;
  if (content.starts_with("PK\x03\x04")) return kind_of_zip(content);
  if (is_hdf5(content)) return kind_of_hdf5(content);
  if (content.starts_with('\x80') && content.size() > 2 && content[1] >= 2 && content[1] <= 5)
    return FileKind::Pickle;
  if (is_safetensors(content)) return FileKind::Safetensors;
  if (path.ends_with(".caffemodel")) return FileKind::CaffeWeights;
  if (!content.empty() && looks_like_text(content.substr(0, 512)))
    return kind_of_text(content, path);
  if (paddle::is_program(content)) return FileKind::PaddleLegacy;
  if (is_onnx(content)) return FileKind::Onnx;
  return path.ends_with(".pb") ? FileKind::TensorFlow : FileKind::Unknown;
}

FileKind guess_kind(const std::string& path) {
  return guess_kind(MappedFile(path).content(), path);
}

std::string model_file(const std::string& path) {
  if (is_file(path)) return path;
  std::vector<std::string> tried{path};
  for (const char* end : kModelEnds) {
    tried.push_back(path + end);
    if (is_file(tried.back())) return tried.back();
  }
  std::error_code ignored;
  user_check(fs::is_directory(path, ignored), ErrorKind::NotFound,
             "there is no file \"{}\".\nhint: Pass the path of a model; these were looked for: {}.",
             path, join(tried, ", "));
  // TensorFlow writes more .pb files beside it.
  if (std::string saved = (fs::path(path) / "saved_model.pb").string(); is_file(saved))
    return saved;
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) {
    const std::string file = entry.path().string();
    const bool likely = std::any_of(std::begin(kModelEnds), std::end(kModelEnds),
                                    [&](const char* end) { return file.ends_with(end); });
    if (likely && is_file(entry.path()) && is_model(guess_kind(file))) found.push_back(file);
  }
  std::sort(found.begin(), found.end());
  user_check(found.size() == 1, ErrorKind::NotFound,
             "the folder \"{}\" has {}.\nhint: Pass the path of the model itself.", path,
             found.empty() ? std::string("no model that Oar reads")
                           : "several models: " + join(found, ", "));
  return found[0];
}

}  // namespace oar::interop
