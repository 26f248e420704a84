#include "oar/runtime/model.h"

#include <algorithm>
#include <set>

#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/formats/json_reader.h"
#include "oar/formats/oar_file.h"
#include "oar/ir/parse.h"
#include "oar/ir/region.h"
#include "oar/runtime/runner.h"

namespace oar {
namespace {

constexpr std::string_view kFormat = "oar program";
constexpr int64_t kVersion = 1;

// The first line of a program's file. `names` has the names of inputs and states by their labels in the text.
struct Header {
  std::string format;
  int64_t version = 0;
  std::vector<std::string> feed, fetch;
  std::map<std::string, std::string> names;

  const std::string& name_of(const std::string& label) const {
    const auto found = names.find(label);
    return found == names.end() ? label : found->second;
  }
};

Header parse_header(std::string_view line) {
  Header header;
  JsonReader json(line);
  const auto strings = [&](std::vector<std::string>& list) {
    json.array([&] { list.push_back(json.string()); });
  };
  json.object([&](const std::string& key) {
    if (key == "format")
      header.format = json.string();
    else if (key == "version")
      header.version = json.unsigned_integer();
    else if (key == "feed")
      strings(header.feed);
    else if (key == "fetch")
      strings(header.fetch);
    else if (key == "names")
      json.object([&](const std::string& label) { header.names[label] = json.string(); });
    else
      json.skip();
  });
  json.end();
  user_check(header.format == kFormat, ErrorKind::InvalidArgument,
             "the file is no program of Oar.\nhint: Write it with save_inference_model.");
  user_check(header.version == kVersion, ErrorKind::InvalidArgument,
             "the program has version {}; this Oar reads version {}.", header.version, kVersion);
  return header;
}

// Names of ops that this library has nothing to compute with.
void collect_missing(const Program& program, std::set<std::string>& missing) {
  for (const Instruction& call : program.body.instructions) {
    const OpDef& def = rules_of(*call.op).def();
    if (!def.view && !def.decompose && call.op->kernels(Device{}.type).empty())
      missing.insert(call.op->name());
    for_each_program(call.attributes.args(),
                     [&](const Closure& c) { collect_missing(program_of(c), missing); });
  }
}

void check_kernels(const Program& program) {
  std::set<std::string> missing;
  collect_missing(program, missing);
  const std::vector<std::string> names(missing.begin(), missing.end());
  user_check(
      missing.empty(), ErrorKind::Unsupported,
      "the program calls ops that this library has no kernels for: {}.\nhint: Save it again with "
      "save_inference_model, which replaces composite ops; gradients and losses run in the full library only.",
      join(names, ", "));
}

}  // namespace

struct Model::Parts {
  Runner runner;
  std::vector<Port> inputs, outputs;
  std::vector<size_t> place;  // of each input among the program's
  std::map<std::string, Tensor> written;

  explicit Parts(Program program) : runner(std::move(program)) {}
};

std::string Model::Port::str() const {
  return format("{}: {}{}", name, name_of(dtype), to_string(Dims(shape)));
}

Model Model::parse(std::string_view text, const std::map<std::string, Tensor>& weights) {
  const size_t line = std::min(text.find('\n'), text.size());
  const Header header = parse_header(text.substr(0, line));
  ParseOptions options;
  options.tensor = [&](const std::string& label, const ValueType& type) {
    const std::string& name = header.name_of(label);
    const auto found = weights.find(name);
    user_check(found != weights.end(), ErrorKind::InvalidArgument,
               "the weights lack {}, which the program reads.", name);
    const Tensor& t = found->second;
    user_check(t.dtype() == type.dtype && t.shape() == type.shape, ErrorKind::InvalidArgument,
               "the program reads {} as {}, but the weights hold {}.", name, type.str(),
               t.describe());
    return t;
  };
  Program program = parse_program(text.substr(std::min(line + 1, text.size())), options);
  check_kernels(program);

  std::vector<Port> inputs, outputs;
  std::vector<size_t> place;
  const auto port = [&](const std::string& name, ValueId id) {
    return Port{name, program.type_of(id).dtype, program.type_of(id).shape};
  };
  for (const std::string& name : header.feed) {
    const auto is_named = [&](ValueId id) {
      return header.name_of(program.values[static_cast<size_t>(id)].name) == name;
    };
    const auto found = std::find_if(program.inputs.begin(), program.inputs.end(), is_named);
    user_check(found != program.inputs.end(), ErrorKind::InvalidArgument,
               "the first line names the input {}, which the program does not have.", name);
    place.push_back(static_cast<size_t>(found - program.inputs.begin()));
    inputs.push_back(port(name, *found));
  }
  std::vector<size_t> sorted = place;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  user_check(distinct && place.size() == program.inputs.size() &&
                 header.fetch.size() == program.outputs.size(),
             ErrorKind::InvalidArgument,
             "the first line names {} inputs and {} outputs, but the program has {} and {}.",
             inputs.size(), header.fetch.size(), program.inputs.size(), program.outputs.size());
  for (size_t i = 0; i < program.outputs.size(); ++i)
    outputs.push_back(port(header.fetch[i], program.outputs[i]));

  std::map<std::string, Tensor> written;
  for (const State& state : program.states)
    if (state.written != kNoValue)
      written[header.name_of(program.values[static_cast<size_t>(state.value)].name)] = state.tensor;
  auto parts = std::make_shared<Parts>(std::move(program));
  parts->written = std::move(written);
  parts->inputs = std::move(inputs);
  parts->outputs = std::move(outputs);
  parts->place = std::move(place);
  Model model;
  model.parts_ = std::move(parts);
  return model;
}

Model Model::load_files(const std::string& program_path, const std::string& weights_path) {
  const std::string program = read_file(program_path);
  return parse(program, load_safetensors(weights_path));
}

Model Model::load(const std::string& path, const std::string& method, bool verify) {
  if (!path.ends_with(".oar")) return load_files(path + ".pdmodel", path + ".pdiparams");
  const OarFile file = load_oar(path, verify);
  const auto found = file.methods.find(method);
  if (found == file.methods.end()) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : file.methods) names.push_back(name);
    fail(ErrorKind::InvalidArgument, "\"{}\" has no method '{}'; it has {}.", path, method,
         join(names, ", "));
  }
  return parse(found->second.program, file.tensors);
}

const std::vector<Model::Port>& Model::inputs() const { return parts_->inputs; }
const std::vector<Model::Port>& Model::outputs() const { return parts_->outputs; }
const std::map<std::string, Tensor>& Model::written_states() const { return parts_->written; }
const Program& Model::program() const { return parts_->runner.program(); }

std::vector<Tensor> Model::run(const std::vector<Tensor>& inputs) const {
  user_check(inputs.size() == parts_->inputs.size(), ErrorKind::InvalidArgument,
             "the model takes {} inputs and is given {}.", parts_->inputs.size(), inputs.size());
  std::vector<Tensor> placed(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    user_check(inputs[i].defined(), ErrorKind::InvalidArgument, "the input {} is missing.",
               parts_->inputs[i].name);
    placed[parts_->place[i]] = inputs[i];
  }
  return parts_->runner.run_on(std::move(placed));
}

}  // namespace oar
