#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <set>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/parallel.h"
#include "oar/base/string_util.h"
#include "oar/cli/model_commands.h"
#include "oar/cli/tensor_text.h"
#include "oar/formats/json_reader.h"
#include "oar/formats/npy.h"
#include "oar/formats/npz.h"
#include "oar/ops/gen/copy.h"

namespace oar::cli {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  if (path.empty()) return lines;
  const std::string text = read_file(path);
  for (const std::string_view line : split(trim(text), '\n')) lines.emplace_back(trim(line));
  return lines;
}

// A name that is a file's name everywhere, and stays in its folder.
std::string file_name(const std::string& name) {
  std::string made = name;
  for (char& c : made)
    if (c == '/' || c == '\\' || c == ':' || static_cast<unsigned char>(c) < ' ') c = '_';
  return made.empty() || made[0] == '.' ? "_" + made : made;
}

// NumPy has no bfloat16 and no 8-bit floats; others are written as they are.
Tensor for_numpy(const Tensor& tensor) {
  const bool narrow = is_floating(tensor.dtype()) && tensor.dtype() != DType::Float16 &&
                      tensor.dtype() != DType::Float32 && tensor.dtype() != DType::Float64;
  const Tensor kept = narrow ? cast(tensor, DType::Float32) : tensor;
  return kept.is_contiguous() ? kept : assign(kept);
}

void write_outputs(const std::string& path, const std::vector<NamedTensor>& outputs) {
  if (path.ends_with(".npy")) {
    user_check(
        outputs.size() == 1, ErrorKind::InvalidArgument,
        "the model has {} outputs, and an .npy file holds one.\nhint: Pass an .npz file or a folder to --output.",
        outputs.size());
    return save_npy(path, for_numpy(outputs[0].tensor));
  }
  NamedTensors named;
  for (const NamedTensor& output : outputs)
    user_check(named.emplace(file_name(output.name), for_numpy(output.tensor)).second,
               ErrorKind::InvalidArgument, "two outputs would be written as '{}'.",
               file_name(output.name));
  if (path.ends_with(".npz")) return save_npz(path, named);
  const std::string ending = fs::path(path).extension().string();
  user_check(
      ending.empty() || fs::is_directory(path), ErrorKind::InvalidArgument,
      "the output \"{}\" has the ending '{}'.\nhint: Outputs are written as .npy or .npz, or into a folder.",
      path, ending);
  std::error_code error;
  fs::create_directories(path, error);
  user_check(!error, ErrorKind::InvalidArgument, "the folder \"{}\" cannot be made: {}.", path,
             error.message());
  for (const auto& [name, tensor] : named)
    save_npy((fs::path(path) / (name + ".npy")).string(), tensor);
}

}  // namespace

int run_model(std::ostream& out, bool color, const RunQuery& query) {
  if (query.model.threads > 0) set_num_threads(query.model.threads);
  const std::vector<std::string> labels = lines_of(query.labels);
  const interop::GraphModel model = interop::load_model(
      query.model.path, {query.model.method, query.model.weights, query.model.verify});
  const std::vector<Tensor> inputs = model_inputs(model.inputs(), query.inputs);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> results = model.run(inputs);
  const double milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::vector<NamedTensor> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back(
        {model.outputs()[i], results[i].is_contiguous() ? results[i] : assign(results[i])});
  if (!query.output.empty()) write_outputs(query.output, outputs);
  if (query.json) {
    out << format("{{\"model\": {}, \"format\": \"{}\", \"outputs\": {}, \"milliseconds\": {}}}\n",
                  json_quoted(model.path()), to_string(model.kind()), json_tensors(outputs, labels),
                  json_number(milliseconds));
  } else {
    print_tensors(out, color, outputs, labels);
    if (!query.output.empty()) out << "Written to " << query.output << '\n';
  }
  // A model that gives nothing but NaN ran, and something is wrong with it.
  return std::any_of(outputs.begin(), outputs.end(), [](const NamedTensor& output) {
    if (!is_floating(output.tensor.dtype()) || output.tensor.numel() == Dim(0)) return false;
    return statistics_of(output.tensor).finite == 0;
  });
}

}  // namespace oar::cli
