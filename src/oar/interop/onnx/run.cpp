// Models that run: programs for the inputs that come.
#include <filesystem>
#include <mutex>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/compiler/executor.h"
#include "oar/interop/onnx/parsed.h"
#include "oar/ops/gen/compare.h"

namespace oar::onnx {
namespace {

constexpr size_t kMostPrograms = 64;
constexpr int64_t kLargestShape = 64;  // elements of an input that could be a shape or axes

bool equals(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && equal_all(a, b).item_int() != 0;
}

}  // namespace

struct Model::Parts {
  struct Entry {
    std::shared_ptr<const Executor> executor;
    NamedTensors constant;
    std::vector<size_t> places;  // of the program's inputs among the model's
  };

  ModelFile file;
  std::vector<std::string> inputs, outputs;
  std::mutex mutex;
  std::vector<Entry> entries;  // the most recently imported last

  // The tensors that the program of this entry takes; nothing if it is for others.
  std::optional<std::vector<Tensor>> fitting(const Entry& entry,
                                             const std::vector<Tensor>& given) const {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto found = entry.constant.find(inputs[i]);
      if (found != entry.constant.end() && !equals(found->second, given[i])) return std::nullopt;
    }
    std::vector<Tensor> taken;
    for (const size_t place : entry.places) taken.push_back(given[place]);
    if (!entry.executor->misfit(taken).empty()) return std::nullopt;
    return taken;
  }

  Entry import(const std::vector<Tensor>& given) const {
    Expected expected;
    for (size_t i = 0; i < inputs.size(); ++i) expected.examples[inputs[i]] = given[i];
    try {
      return entry_of(expected);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Unsupported) throw;
    }
    // A shape may depend on the content of an input.
    for (size_t i = 0; i < inputs.size(); ++i)
      if (given[i].numel().value() <= kLargestShape && given[i].rank() <= 1)
        expected.constant[inputs[i]] = given[i];
    return entry_of(expected);
  }

  Entry entry_of(const Expected& expected) const {
    Imported imported = import_parsed(file, expected);
    Entry entry{
        std::make_shared<const Executor>(std::move(imported.program)), expected.constant, {}};
    for (size_t i = 0; i < inputs.size(); ++i)
      if (!expected.constant.contains(inputs[i])) entry.places.push_back(i);
    return entry;
  }

  std::pair<std::shared_ptr<const Executor>, std::vector<Tensor>> executor(
      const std::vector<Tensor>& given) {
    user_check(given.size() == inputs.size(), ErrorKind::InvalidArgument,
               "the model takes {} inputs and is given {}.", inputs.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i)
      user_check(given[i].defined(), ErrorKind::InvalidArgument, "the input '{}' is missing.",
                 inputs[i]);
    const std::lock_guard lock(mutex);
    for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
      if (auto taken = fitting(*entry, given)) return {entry->executor, std::move(*taken)};
    Entry entry = import(given);
    std::vector<Tensor> taken;
    for (const size_t place : entry.places) taken.push_back(given[place]);
    const std::string misfit = entry.executor->misfit(taken);
    user_check(misfit.empty(), ErrorKind::InvalidArgument, "{}", misfit);
    if (entries.size() == kMostPrograms) entries.erase(entries.begin());
    entries.push_back(entry);
    return {entry.executor, std::move(taken)};
  }
};

Model::Model(std::string file, std::string folder) : parts_(std::make_shared<Parts>()) {
  parts_->file = parse_model(file, folder);
  const Graph& graph = parts_->file.graph;
  for (const Port& port : graph.inputs)
    if (!graph.initializers.contains(port.name)) parts_->inputs.push_back(port.name);
  for (const Port& port : graph.outputs) parts_->outputs.push_back(port.name);
}

Model Model::load(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return {read_file(path), folder.empty() ? "." : folder};
}

const std::vector<std::string>& Model::inputs() const { return parts_->inputs; }
const std::vector<std::string>& Model::outputs() const { return parts_->outputs; }

std::vector<interop::Signature> Model::signature() const {
  const Graph& graph = parts_->file.graph;
  std::vector<interop::Signature> made;
  for (const Port& port : graph.inputs) {
    if (graph.initializers.contains(port.name)) continue;
    interop::Signature input{port.name, port.dtype, std::nullopt};
    if (port.has_shape) input.shape.emplace();
    for (size_t axis = 0; port.has_shape && axis < port.shape.size(); ++axis) {
      const Port::Size& size = port.shape[axis];
      const std::string name = size.symbol.empty() ? format("{}_{}", port.name, axis) : size.symbol;
      input.shape->push_back(size.value >= 0 ? Dim(size.value) : Dim::symbol(name));
    }
    made.push_back(std::move(input));
  }
  return made;
}

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs) const {
  const auto [executor, taken] = parts_->executor(inputs);
  return executor->run(taken);
}

const Program& Model::program(const std::vector<Tensor>& inputs) const {
  return parts_->executor(inputs).first->program();
}

}  // namespace oar::onnx
