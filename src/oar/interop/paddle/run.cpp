// Models that run: programs for the inputs that come.
#include <filesystem>
#include <mutex>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/compiler/executor.h"
#include "oar/interop/paddle/import.h"
#include "oar/interop/paddle/importer.h"

namespace oar::paddle {
namespace {

constexpr size_t kMostPrograms = 64;

}  // namespace

struct Model::Parts {
  ModelFile file;
  std::vector<Signature> inputs;
  std::vector<std::string> outputs;
  std::mutex mutex;
  std::vector<std::shared_ptr<const Executor>> executors;  // the most recently imported last

  void check(const std::vector<Tensor>& given) const {
    user_check(given.size() == inputs.size(), ErrorKind::InvalidArgument,
               "the model takes {} inputs and is given {}.", inputs.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const Signature& wanted = inputs[i];
      user_check(given[i].defined(), ErrorKind::InvalidArgument, "the input '{}' is missing.",
                 wanted.name);
      user_check(given[i].dtype() == wanted.dtype, ErrorKind::InvalidArgument,
                 "the input '{}' has dtype {}, but the model takes {}.\nhint: Cast it first.",
                 wanted.name, name_of(given[i].dtype()), name_of(wanted.dtype));
      bool fits = static_cast<size_t>(given[i].rank()) == wanted.shape.size();
      for (size_t axis = 0; fits && axis < wanted.shape.size(); ++axis)
        fits = wanted.shape[axis] < 0 || given[i].dims()[axis] == Dim(wanted.shape[axis]);
      user_check(fits, ErrorKind::InvalidArgument,
                 "the input '{}' is {}, but the model takes the shape [{}] (-1: any size).",
                 wanted.name, given[i].describe(), join(wanted.shape, ", "));
    }
  }

  // With open sizes, or, if an op needs to know them, for these sizes alone.
  std::shared_ptr<const Executor> import(const std::vector<Tensor>& given) const {
    try {
      auto made = std::make_shared<const Executor>(import_program(file, given, false));
      if (made->misfit(given).empty()) return made;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Interrupted) throw;
    }
    return std::make_shared<const Executor>(import_program(file, given, true));
  }

  std::shared_ptr<const Executor> executor(const std::vector<Tensor>& given) {
    check(given);
    const std::lock_guard lock(mutex);
    for (auto one = executors.rbegin(); one != executors.rend(); ++one)
      if ((*one)->misfit(given).empty()) return *one;
    std::shared_ptr<const Executor> made = import(given);
    const std::string misfit = made->misfit(given);
    user_check(misfit.empty(), ErrorKind::InvalidArgument, "{}", misfit);
    if (executors.size() == kMostPrograms) executors.erase(executors.begin());
    executors.push_back(made);
    return made;
  }
};

Model::Model(std::string_view program, std::string_view parameters)
    : parts_(std::make_shared<Parts>()) {
  parts_->file = parse_model(program, parameters);
  for (const Port& port : parts_->file.inputs)
    parts_->inputs.push_back({port.name, port.dtype, port.shape});
  for (const Port& port : parts_->file.outputs) parts_->outputs.push_back(port.name);
}

Model Model::load_files(const std::string& program_path, const std::string& parameters_path) {
  const bool has_parameters = std::filesystem::exists(parameters_path);
  return {read_file(program_path), has_parameters ? read_file(parameters_path) : ""};
}

Model Model::load(const std::string& prefix) {
  for (const char* end : {".json", ".pdmodel"})
    if (std::filesystem::is_regular_file(prefix + end))
      return load_files(prefix + end, prefix + ".pdiparams");
  fail(ErrorKind::NotFound, "there is neither '{}.json' nor '{}.pdmodel'.", prefix, prefix);
}

const std::vector<Signature>& Model::inputs() const { return parts_->inputs; }
const std::vector<std::string>& Model::outputs() const { return parts_->outputs; }

NamedTensors Model::parameters() const {
  NamedTensors named;
  for (const Parameter& p : parts_->file.parameters)
    named[p.name] = parts_->file.weights.at(p.value);
  return named;
}

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs) const {
  return parts_->executor(inputs)->run(inputs);
}

const Program& Model::program(const std::vector<Tensor>& inputs) const {
  return parts_->executor(inputs)->program();
}

Program Model::open_program() const { return import_program(parts_->file, {}, false); }

bool is_program(std::string_view file) { return is_pir_program(file) || is_legacy_program(file); }

}  // namespace oar::paddle
