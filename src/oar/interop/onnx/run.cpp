// Models that run.
#include <algorithm>
#include <filesystem>
#include <mutex>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/json_value.h"
#include "oar/interop/onnx/parsed.h"

namespace oar::onnx {
namespace {

constexpr int64_t kLargestShape = 64;  // elements of an input that could be a shape or axes

interop::Port described(const Port& port, const std::string& name) {
  interop::Port made{name, {}, {}, {}};
  if (port.kind == Port::Optional) return described(*port.element, port.name);
  if (port.kind != Port::Tensor) return made;
  made.dtype = port.dtype;
  if (port.has_shape) made.shape.emplace();
  for (const Port::Size& size : port.shape) {
    made.shape->push_back(size.value);
    made.open_sizes.push_back(size.symbol);
  }
  return made;
}

struct Ports {
  std::vector<interop::Port> inputs;
  std::vector<std::string> outputs;
};
Ports ports_of(const Graph& graph) {
  Ports ports;
  for (const Port& port : graph.inputs)
    if (!graph.initializers.contains(port.name)) ports.inputs.push_back(described(port, port.name));
  for (const Port& port : graph.outputs) ports.outputs.push_back(port.name);
  return ports;
}

// Inputs that could be a shape, axes or a choice between branches.
std::map<size_t, Tensor> small_inputs(const std::vector<Tensor>& given) {
  std::map<size_t, Tensor> found;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].numel().value() <= kLargestShape && given[i].rank() <= 1) found[i] = given[i];
  return found;
}

using Structures = std::map<std::string, Given>;

interop::Imported imported(const ModelFile& file, const Expected& expected) {
  Imported made = import_parsed(file, expected);
  interop::Imported imported(std::move(made.program));
  imported.results = std::move(made.results);
  return imported;
}

// With open sizes if that is possible. Else a shape may depend on the content of an input, or a branch does not fit the inputs, and
// content or sizes say that it is not taken.
interop::Imported import_like(const ModelFile& file, const std::vector<interop::Port>& inputs,
                              const Structures& structures, const std::vector<Tensor>& given) {
  Expected expected;
  expected.structures = structures;
  for (size_t i = 0; i < inputs.size(); ++i) expected.examples[inputs[i].name] = given[i];
  std::map<size_t, Tensor> constant = small_inputs(given);
  try {
    return imported(file, expected);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted) throw;
    for (const auto& [place, tensor] : constant) expected.constant[inputs[place].name] = tensor;
  }
  interop::Imported made = [&] {
    try {
      return imported(file, expected);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::Interrupted) throw;
      expected.fixed_sizes = true;
      return imported(file, expected);
    }
  }();
  made.constant = std::move(constant);
  return made;
}

using SharedFile = std::shared_ptr<const ModelFile>;

interop::GraphModel model_of(const SharedFile& file, std::vector<interop::Port> inputs,
                             const Structures& structures) {
  const auto import = [file, inputs, structures](const std::vector<Tensor>& given) {
    return import_like(*file, inputs, structures, given);
  };
  const auto steps = [file, inputs, structures](const std::vector<Tensor>& given) {
    Expected expected;
    expected.structures = structures;
    for (size_t i = 0; i < inputs.size(); ++i) expected.constant[inputs[i].name] = given[i];
    return run_steps(*file, expected);
  };
  return {std::move(inputs), ports_of(file->graph).outputs, import, steps};
}

// ---- inputs that are more than tensors -----------------------------------------------------------

bool is_more_than_tensor(const Port& port) { return port.kind != Port::Tensor; }

class Structure {
 public:
  std::vector<interop::Port> inputs;
  Structures structures;

  void add(const Port& port, const JsonValue& given) {
    structures[port.name] = read(port, port.name, given);
  }

 private:
  Given read(const Port& port, const std::string& name, const JsonValue& value) {
    if (port.kind == Port::Optional && value.is_null()) return {Given::None, {}};
    if (port.kind == Port::Optional) return read(*port.element, name, value);
    if (port.kind == Port::Sequence && value.is_list()) {
      Given made{Given::Sequence, {}};
      for (size_t i = 0; i < value.list().size(); ++i)
        made.items.push_back(read(*port.element, format("{}.{}", name, i), value.list()[i]));
      return made;
    }
    user_check(port.kind == Port::Tensor && value.is_object() && value.find("tensor"),
               ErrorKind::InvalidArgument, "the input '{}' is {} in the file.\nhint: Pass {}.",
               name, port.kind == Port::Sequence ? "a sequence" : "a tensor",
               port.kind == Port::Sequence ? "a list of tensors" : "a tensor");
    inputs.push_back(described(port, name));
    return {};
  }
};

Structure structure_of(const Graph& graph, const JsonValue& arguments) {
  const JsonValue::List& places = arguments.at("args").list();
  const JsonValue& named = arguments.at("kwargs");
  Structure made;
  size_t taken = 0;
  for (const Port& port : graph.inputs) {
    if (graph.initializers.contains(port.name)) continue;
    const JsonValue* value = taken < places.size() ? &places[taken] : named.find(port.name);
    user_check(value, ErrorKind::InvalidArgument, "the input '{}' is missing.", port.name);
    made.add(port, *value);
    ++taken;
  }
  const size_t all = places.size() + named.object().size();
  user_check(all == taken, ErrorKind::InvalidArgument, "the model takes {} inputs and is given {}.",
             taken, all);
  return made;
}

// The models of the structures that came.
class Arranged {
 public:
  explicit Arranged(SharedFile file) : file_(std::move(file)) {}

  interop::GraphModel operator()(std::string_view arguments) {
    const std::lock_guard lock(mutex_);
    const std::string key(arguments);
    if (const auto found = made_.find(key); found != made_.end()) return found->second;
    Structure structure = structure_of(file_->graph, JsonValue::parse(arguments));
    if (made_.size() == kMost) made_.clear();
    return made_.emplace(key, model_of(file_, std::move(structure.inputs), structure.structures))
        .first->second;
  }

 private:
  static constexpr size_t kMost = 64;
  const SharedFile file_;
  std::mutex mutex_;
  std::map<std::string, interop::GraphModel> made_;
};

interop::GraphModel model_of(const SharedFile& file) {
  interop::GraphModel model = model_of(file, ports_of(file->graph).inputs, {});
  const auto& ports = file->graph.inputs;
  if (std::any_of(ports.begin(), ports.end(), is_more_than_tensor)) {
    const auto arranged = std::make_shared<Arranged>(file);
    model.take_more_than_tensors([arranged](std::string_view text) { return (*arranged)(text); });
  }
  return model;
}

}  // namespace

Model::Model(std::string_view file, const std::string& folder)
    : GraphModel(model_of(std::make_shared<const ModelFile>(parse_model(file, folder)))) {}

Model Model::load(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return {read_file(path), folder.empty() ? "." : folder};
}

}  // namespace oar::onnx
