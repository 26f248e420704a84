// Models that run.
#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/compiler/executor.h"
#include "oar/interop/paddle/import.h"
#include "oar/interop/paddle/importer.h"

namespace oar::paddle {
namespace {

std::vector<interop::Port> inputs_of(const ModelFile& file) {
  std::vector<interop::Port> inputs;
  for (const Port& port : file.inputs) inputs.push_back({port.name, port.dtype, port.shape});
  return inputs;
}

std::vector<std::string> outputs_of(const ModelFile& file) {
  std::vector<std::string> outputs;
  for (const Port& port : file.outputs) outputs.push_back(port.name);
  return outputs;
}

// Sizes that the file does not leave open are part of the model.
void check_sizes(const Port& port, const Tensor& given) {
  bool fits = true;
  for (size_t axis = 0; axis < port.shape.size(); ++axis)
    fits &= port.shape[axis] < 0 || given.dims()[axis] == Dim(port.shape[axis]);
  user_check(fits, ErrorKind::InvalidArgument,
             "the input '{}' is {}, but the model takes the shape [{}] (-1: any size).", port.name,
             given.describe(), join(port.shape, ", "));
}

// With open sizes, or, if an op needs to know them, for these sizes alone.
interop::Imported import_like(const ModelFile& file, const std::vector<Tensor>& given) {
  for (size_t i = 0; i < given.size(); ++i) check_sizes(file.inputs[i], given[i]);
  try {
    Program open = import_program(file, given, false);
    if (Executor(open).misfit(given).empty()) return open;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted) throw;
  }
  return import_program(file, given, true);
}

}  // namespace

Model::Model(std::shared_ptr<const ModelFile> file)
    : GraphModel(inputs_of(*file), outputs_of(*file),
                 [file](const std::vector<Tensor>& given) { return import_like(*file, given); }),
      file_(std::move(file)) {}

Model::Model(std::string_view program, std::string_view parameters)
    : Model(std::make_shared<const ModelFile>(parse_model(program, parameters))) {}

Model Model::load(const std::string& prefix) {
  for (const char* end : {".json", ".pdmodel"})
    if (std::filesystem::is_regular_file(prefix + end)) {
      const bool has_parameters = std::filesystem::exists(prefix + ".pdiparams");
      return {read_file(prefix + end), has_parameters ? read_file(prefix + ".pdiparams") : ""};
    }
  fail(ErrorKind::NotFound, "there is neither '{}.json' nor '{}.pdmodel'.", prefix, prefix);
}

NamedTensors Model::parameters() const {
  NamedTensors named;
  for (const Parameter& p : file_->parameters) named[p.name] = file_->weights.at(p.value);
  return named;
}

Program Model::open_program() const { return import_program(*file_, {}, false); }

bool is_program(std::string_view file) { return is_pir_program(file) || is_legacy_program(file); }

}  // namespace oar::paddle
