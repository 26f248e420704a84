#include <algorithm>
#include <filesystem>
#include <ostream>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/cli/machine.h"
#include "oar/cli/model_commands.h"
#include "oar/cli/tensor_text.h"
#include "oar/cli/terminal.h"
#include "oar/formats/gguf.h"
#include "oar/formats/json_reader.h"
#include "oar/formats/npy.h"
#include "oar/formats/npz.h"
#include "oar/formats/oar_file.h"
#include "oar/formats/pickle.h"
#include "oar/interop/keras/import.h"
#include "oar/tensor/byte_count.h"

namespace oar::cli {
namespace {

using interop::FileKind;

struct Row {
  std::string name, dtype;
  std::vector<std::string> shape;
  int64_t bytes = 0;
};

Row row_of(const std::string& name, const Tensor& tensor) {
  Row row{name, name_of(tensor.dtype()), {}, byte_count(tensor.numel().value(), tensor.dtype())};
  for (const Dim d : tensor.dims()) row.shape.push_back(d.str());
  return row;
}

// "layer.weight" for values that are nested.
void collect(const StateTree& tree, const std::string& path, std::vector<Row>& rows) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (tree.is_tensor()) rows.push_back(row_of(path, tree.tensor()));
  if (tree.is_dict())
    for (const auto& [key, value] : tree.dict()) collect(value, below(key), rows);
  if (tree.is_list())
    for (size_t i = 0; i < tree.list().size(); ++i)
      collect(tree.list()[i], below(std::to_string(i)), rows);
}

std::vector<Row> rows_of(const NamedTensors& tensors) {
  std::vector<Row> rows;
  for (const auto& [name, tensor] : tensors) rows.push_back(row_of(name, tensor));
  return rows;
}

std::vector<Row> tensors_in(const std::string& path, FileKind kind) {
  std::vector<Row> rows;
  switch (kind) {
    case FileKind::Safetensors:
      return rows_of(load_safetensors(path));
    case FileKind::Npz:
      return rows_of(load_npz(path));
    case FileKind::Npy:
      return {row_of("", load_npy(path))};
    case FileKind::Pickle:
      collect(load_pickle(path), "", rows);
      return rows;
    case FileKind::Gguf: {
      const MappedFile file(path);
      for (const GgufTensor& t : parse_gguf(file.content()).tensors) {
        Row row{t.name, t.type_name, {}, static_cast<int64_t>(t.data.size())};
        for (const int64_t size : t.shape) row.shape.push_back(std::to_string(size));
        rows.push_back(std::move(row));
      }
      return rows;
    }
    case FileKind::Hdf5: {
      const MappedFile file(path);
      for (const auto& [name, tensor] : keras::read_weights(file.content()))
        rows.push_back(row_of(name, tensor));
      return rows;
    }
    default:
      break;
  }
  fail(ErrorKind::Unsupported, "\"{}\" is {}, which the command does not look into.\nhint: {}",
       path, interop::described(kind),
       path.ends_with(".pdiparams") ? "Inspect the program beside it, .json or .pdmodel."
       : kind == FileKind::TorchZip
           ? "In Python, oar.load reads it; oar convert writes it as .safetensors."
           : "docs/command.md lists the formats.");
}

int print_rows(std::ostream& out, bool color, const FileQuery& query, FileKind kind,
               const std::vector<Row>& rows) {
  int64_t bytes = 0;
  for (const Row& row : rows) bytes += row.bytes;
  if (query.json) {
    std::vector<std::string> objects;
    for (const Row& row : rows)
      objects.push_back(format("{{\"name\": {}, \"dtype\": {}, \"shape\": [{}], \"bytes\": {}}}",
                               json_quoted(row.name), json_quoted(row.dtype), join(row.shape, ", "),
                               row.bytes));
    out << format("{{\"file\": {}, \"format\": \"{}\", \"bytes\": {}, \"tensors\": [{}]}}\n",
                  json_quoted(query.path), to_string(kind), bytes, join(objects, ", "));
    return 0;
  }
  out << format("{}: {}, {} tensor{}, {}\n\n", query.path, interop::described(kind), rows.size(),
                rows.size() == 1 ? "" : "s", bytes_text(bytes));
  Table table({"tensor", "type", "size"});
  for (const Row& row : rows)
    table.add(
        {row.name, format("{}[{}]", row.dtype, join(row.shape, ", ")), bytes_text(row.bytes)});
  table.print(out, color);
  return 0;
}

// What only an .oar file says: its methods and metadata.
struct OarNotes {
  std::vector<std::string> methods, trained;
  Metadata metadata;
  size_t tensors = 0;
  int64_t bytes = 0;
};

OarNotes notes_of(const std::string& path) {
  const OarFile file = load_oar(path);
  OarNotes notes{{}, {}, file.metadata, file.tensors.size(), 0};
  for (const auto& [name, method] : file.methods) {
    notes.methods.push_back(name);
    if (!method.training.empty()) notes.trained.push_back(name);
  }
  for (const auto& [name, tensor] : file.tensors) notes.bytes += row_of(name, tensor).bytes;
  return notes;
}

std::string json_port(const interop::Port& port) {
  std::vector<std::string> sizes;
  for (size_t axis = 0; port.shape && axis < port.shape->size(); ++axis) {
    const int64_t size = (*port.shape)[axis];
    sizes.push_back(size < 0 ? json_quoted(port.size_name(axis)) : std::to_string(size));
  }
  return format("{{\"name\": {}, \"dtype\": {}, \"shape\": {}}}", json_quoted(port.name),
                port.dtype ? json_quoted(name_of(*port.dtype)) : "null",
                port.shape ? "[" + join(sizes, ", ") + "]" : "null");
}

std::string json_texts(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(json_quoted(text));
  return "[" + join(quoted, ", ") + "]";
}

int print_model_json(std::ostream& out, const interop::GraphModel& model) {
  std::vector<std::string> inputs;
  for (const interop::Port& port : model.inputs()) inputs.push_back(json_port(port));
  out << format("{{\"file\": {}, \"format\": \"{}\", \"inputs\": [{}], \"outputs\": {}",
                json_quoted(model.path()), to_string(model.kind()), join(inputs, ", "),
                json_texts(model.outputs()));
  if (model.kind() == FileKind::Oar) {
    const OarNotes notes = notes_of(model.path());
    std::vector<std::string> metadata;
    for (const auto& [key, value] : notes.metadata)
      metadata.push_back(json_quoted(key) + ": " + json_quoted(value));
    out << format(
        ", \"methods\": {}, \"train_further\": {}, \"metadata\": {{{}}}, \"tensors\": {}, \"bytes\": {}",
        json_texts(notes.methods), json_texts(notes.trained), join(metadata, ", "), notes.tensors,
        notes.bytes);
  }
  out << "}\n";
  return 0;
}

int print_model(std::ostream& out, bool color, const interop::GraphModel& model) {
  out << format("{}: {}, {}\n\n", model.path(), interop::described(model.kind()),
                bytes_text(static_cast<int64_t>(std::filesystem::file_size(model.path()))));
  Table table({"", ""});
  for (const interop::Port& port : model.inputs()) table.add({"input", port.str()});
  for (const std::string& name : model.outputs()) table.add({"output", name});
  if (model.kind() == FileKind::Oar) {
    const OarNotes notes = notes_of(model.path());
    table.add({"methods", join(notes.methods, ", ")});
    if (!notes.trained.empty()) table.add({"to train", join(notes.trained, ", ")});
    table.add({"tensors", format("{}, {}", notes.tensors, bytes_text(notes.bytes))});
    for (const auto& [key, value] : notes.metadata)
      table.add({"metadata", format("{}: {}", key, value)});
  }
  table.print(out, color);
  return 0;
}

}  // namespace

int describe_file(std::ostream& out, bool color, const FileQuery& query) {
  const std::string path = interop::model_file(query.path);
  const FileKind kind = interop::guess_kind(path);
  if (!interop::is_model(kind) && kind != FileKind::CaffeWeights)
    return print_rows(out, color, query, kind,
                      interop::naming_file(path, [&] { return tensors_in(path, kind); }));
  const interop::GraphModel model = interop::load_model(path, {query.method, query.weights, false});
  return query.json ? print_model_json(out, model) : print_model(out, color, model);
}

}  // namespace oar::cli
