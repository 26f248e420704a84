// `oar_run`: runs a saved model with the runtime library alone.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/version.h"
#include "oar/formats/npy.h"
#include "oar/runtime/model.h"

namespace {

constexpr const char* kHelp = R"(usage: oar_run MODEL [options]

Runs a model that jit.save or save_inference_model wrote: MODEL is an .oar file, or the prefix of a .pdmodel and a .pdiparams file.

  --method NAME        a method of an .oar file other than forward
  --verify             compares the weights of an .oar file with their checksums first
  --input NAME=FILE    an input from a .npy file; NAME= may be left out if the model has one input
  --zeros              zeros for inputs without a file, with 1 for sizes that are open
  --output NAME=FILE   writes an output to a .npy file; NAME= may be left out if the model has one
  --repeat N           runs N times and prints the shortest time
  --info               prints the inputs and outputs, and runs nothing
  --version, --help
)";

// A mistake in the arguments.
struct Usage {
  std::string text;
};

struct Options {
  std::string path, method = "forward";
  std::map<std::string, std::string> inputs, outputs;  // files by name; "" is the only one
  bool zeros = false, info = false, verify = false;
  int repeat = 1;
};

Options parse(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == arguments.size()) throw Usage{word + " needs a value"};
      return arguments[++i];
    };
    const auto add_file = [&](std::map<std::string, std::string>& files) {
      const std::string& text = value();
      const size_t equals = text.find('=');
      if (equals == std::string::npos)
        files[""] = text;
      else
        files[text.substr(0, equals)] = text.substr(equals + 1);
    };
    if (word == "--input")
      add_file(options.inputs);
    else if (word == "--output")
      add_file(options.outputs);
    else if (word == "--zeros")
      options.zeros = true;
    else if (word == "--info")
      options.info = true;
    else if (word == "--method")
      options.method = value();
    else if (word == "--verify")
      options.verify = true;
    else if (word == "--repeat")
      options.repeat = std::atoi(value().c_str());
    else if (word.starts_with("-") || !options.path.empty())
      throw Usage{"'" + word + "' is not understood"};
    else
      options.path = word;
  }
  if (options.path.empty()) throw Usage{"the model's path is missing"};
  if (options.repeat < 1) throw Usage{"--repeat needs a number from 1 on"};
  return options;
}

using Ports = std::vector<oar::Model::Port>;

// The file for a port; none if no option names one.
std::optional<std::string> file_for(const std::map<std::string, std::string>& files,
                                    const Ports& ports, const std::string& name) {
  if (const auto found = files.find(name); found != files.end()) return found->second;
  const auto only = files.find("");
  if (only != files.end() && ports.size() == 1) return only->second;
  return std::nullopt;
}

// Every option must speak of a port.
void check_names(const std::map<std::string, std::string>& files, const Ports& ports,
                 const char* what) {
  for (const auto& [name, file] : files) {
    bool known = name.empty() && ports.size() == 1;
    std::string names;
    for (const auto& port : ports) {
      known |= port.name == name;
      names += (names.empty() ? "" : ", ") + port.name;
    }
    if (!known)
      throw Usage{std::string("the model has no ") + what + " '" + name + "'; it has " + names};
  }
}

oar::Tensor zeros(const oar::Model::Port& port) {
  oar::Shape shape;
  for (oar::Dim d : port.shape) shape.push_back(d.is_known() ? d : oar::Dim(1));
  oar::Tensor made = oar::Tensor::empty(shape, port.dtype);
  std::memset(made->data, 0, static_cast<size_t>(made->numel) * oar::size_of(port.dtype));
  return made;
}

void print(const oar::Model::Port& port, const oar::Tensor& t) {
  constexpr size_t kMost = 64;
  std::printf("%s: %s\n ", port.name.c_str(), t.describe().c_str());
  const std::vector<double> values = t.to_vector<double>();
  for (size_t i = 0; i < values.size() && i < kMost; ++i) std::printf(" %.6g", values[i]);
  std::printf("%s\n", values.size() > kMost ? " ..." : "");
}

int run(const Options& options) {
  const oar::Model model = oar::Model::load(options.path, options.method, options.verify);
  if (options.info) {
    for (const auto& port : model.inputs()) std::printf("input %s\n", port.str().c_str());
    for (const auto& port : model.outputs()) std::printf("output %s\n", port.str().c_str());
    return 0;
  }
  check_names(options.inputs, model.inputs(), "input");
  check_names(options.outputs, model.outputs(), "output");
  std::vector<oar::Tensor> inputs;
  for (const auto& port : model.inputs()) {
    const auto file = file_for(options.inputs, model.inputs(), port.name);
    if (!file && !options.zeros) throw Usage{"the input " + port.str() + " has no --input"};
    inputs.push_back(file ? oar::load_npy(*file) : zeros(port));
  }
  std::vector<oar::Tensor> outputs;
  double shortest = 0;
  for (int i = 0; i < options.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    outputs = model.run(inputs);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    shortest = i == 0 ? taken.count() : std::min(shortest, taken.count());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& port = model.outputs()[i];
    if (const auto file = file_for(options.outputs, model.outputs(), port.name))
      oar::save_npy(*file, outputs[i]);
    else
      print(port, outputs[i]);
  }
  if (options.repeat > 1) std::printf("shortest of %d runs: %.3f ms\n", options.repeat, shortest);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (const std::string& word : arguments) {
    if (word == "--help" || word == "-h") return std::fputs(kHelp, stdout) < 0;
    if (word == "--version") return std::printf("oar_run %s\n", oar::version()) < 0;
  }
  try {
    return run(parse(arguments));
  } catch (const Usage& usage) {
    std::fprintf(stderr, "oar_run: %s\nhint: oar_run --help\n", usage.text.c_str());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oar_run: %s\n", error.what());
    return 1;
  }
}
