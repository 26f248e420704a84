#include "oar/cli/peer_run.h"

#include <unistd.h>

#include <filesystem>
#include <random>

#include "oar/base/error.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"
#include "oar/cli/python_check.h"
#include "oar/formats/npz.h"
#include "oar/ops/gen/copy.h"

namespace oar::cli {
namespace {

namespace fs = std::filesystem;
using interop::FileKind;

constexpr int kNotInstalled = 3;

// Runs the package's script without the package: two frameworks in one process can disturb each other.
constexpr const char* kScript = R"(
import importlib.util, runpy, sys
found = importlib.util.find_spec("oar")
if found is None:
    sys.exit(3)
runpy.run_path(found.submodule_search_locations[0] + "/interop/_peer.py", run_name="__main__")
)";

const char* framework_of(FileKind kind) {
  switch (kind) {
    case FileKind::Onnx:
      return "ONNX Runtime";
    case FileKind::Tflite:
      return "TFLite";
    case FileKind::PaddleLegacy:
    case FileKind::PaddlePir:
      return "PaddlePaddle";
    default:
      return "";
  }
}

std::string last_line(const std::string& text) {
  std::string last;
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) last = trim(line);
  return last;
}

fs::path fresh_folder() {
  std::random_device device;
  fs::path folder = fs::temp_directory_path() / format("oar-peer-{:08x}{:08x}", device(), device());
  fs::create_directory(folder);
  return folder;
}

}  // namespace

PeerRun run_in_peer(const interop::GraphModel& model, const std::vector<Tensor>& inputs) {
  PeerRun made;
  made.framework = framework_of(model.kind());
  if (made.framework.empty()) return made;
  const PythonCheck python = check_python();
  if (python.interpreter.empty() || python.state != PythonCheck::Works) {
    made.note = format(
        "{} runs in Python, which does not have the package oar, so it is not compared with it",
        made.framework);
    return made;
  }
  const fs::path folder = fresh_folder();
  const ScopeGuard remove([&] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  });
  NamedTensors arrays;
  std::vector<std::string> names;
  for (size_t i = 0; i < inputs.size(); ++i) {
    arrays[std::to_string(i)] = inputs[i].is_contiguous() ? inputs[i] : assign(inputs[i]);
    names.push_back(model.inputs()[i].name);
  }
  const std::string given = folder / "inputs.npz", results = folder / "outputs.npz";
  save_npz(given, arrays);
  std::string errors;
  std::vector<std::string> command{python.interpreter,
                                   "-c",
                                   kScript,
                                   to_string(model.kind()),
                                   fs::absolute(model.path()).string(),
                                   given,
                                   results};
  command.insert(command.end(), names.begin(), names.end());
  const int status = run_program(command, STDERR_FILENO, errors);
  if (status == kNotInstalled) {
    made.note = format("{} is not installed, so it is not compared with it", made.framework);
  } else if (status != 0) {
    made.note = format("{} does not run it: {}", made.framework, last_line(errors));
  } else {
    const NamedTensors outputs = load_npz(results);
    for (size_t i = 0; i < outputs.size(); ++i)
      made.outputs.push_back(outputs.at(std::to_string(i)));
  }
  return made;
}

}  // namespace oar::cli
