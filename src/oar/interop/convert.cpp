#include "oar/interop/convert.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/formats/gguf.h"
#include "oar/formats/npy.h"
#include "oar/formats/npz.h"
#include "oar/formats/pickle.h"
#include "oar/formats/zip.h"
#include "oar/interop/onnx/export.h"
#include "oar/interop/paddle/write.h"
#include "oar/interop/pytorch/state_dict.h"
#include "oar/ops/gen/copy.h"

namespace oar::interop {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModelEnds[] = {".onnx", ".json", ".pdmodel"};
constexpr const char* kWeightEnds[] = {".safetensors", ".npz", ".pdparams"};

template <size_t N>
bool is_one_of(const std::string& end, const char* const (&ends)[N]) {
  return std::find(std::begin(ends), std::end(ends), end) != std::end(ends);
}

// ---- weights -------------------------------------------------------------------------------------

void collect(const StateTree& tree, const std::string& path, NamedTensors& to) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (tree.is_tensor()) to.emplace(path.empty() ? "tensor" : path, tree.tensor());
  if (tree.is_dict())
    for (const auto& [key, value] : tree.dict()) collect(value, below(key), to);
  if (tree.is_list())
    for (size_t i = 0; i < tree.list().size(); ++i)
      collect(tree.list()[i], below(std::to_string(i)), to);
}

NamedTensors tensors_of_gguf(const std::string& path) {
  const MappedFile file(path);
  NamedTensors tensors;
  for (const GgufTensor& t : parse_gguf(file.content()).tensors)
    tensors.emplace(t.name, read_gguf_tensor(t));
  return tensors;
}

// NumPy has no bfloat16 and no 8-bit floats.
NamedTensors for_numpy(const NamedTensors& tensors) {
  NamedTensors made;
  for (const auto& [name, tensor] : tensors) {
    const bool narrow = is_floating(tensor.dtype()) && tensor.dtype() != DType::Float16 &&
                        tensor.dtype() != DType::Float32 && tensor.dtype() != DType::Float64;
    made.emplace(name, narrow ? cast(tensor, DType::Float32) : tensor);
  }
  return made;
}

void write_weights(const std::string& path, const std::string& end, const NamedTensors& tensors) {
  NamedTensors plain;
  for (const auto& [name, tensor] : tensors)
    plain.emplace(name, tensor.is_contiguous() ? tensor : assign(tensor));
  if (end == ".safetensors") return save_safetensors(path, plain);
  if (end == ".npz") return save_npz(path, for_numpy(plain));
  save_pickle(path, pickled_state(plain));
}

// ---- models --------------------------------------------------------------------------------------

std::string label_of(const Program& program, ValueId id) { return program.label(id).substr(1); }

NamedTensors states_of(const Program& program) {
  NamedTensors states;
  for (const State& state : program.states) {
    const auto [found, is_new] = states.emplace(label_of(program, state.value), state.tensor);
    user_check(is_new || found->second.impl() == state.tensor.impl(), ErrorKind::InvalidArgument,
               "the model has two weights that are called '{}'.", found->first);
  }
  return states;
}

void write_paddle(const Program& program, const std::string& path) {
  const paddle::Files files = paddle::write_model(program, paddle::format_of(path));
  AtomicFile parameters(fs::path(path).replace_extension(".pdiparams").string()), text(path);
  parameters.write(files.parameters.data(), files.parameters.size());
  text.write(files.program.data(), files.program.size());
  parameters.commit();
  text.commit();
}

void write_model(const Program& program, const GraphModel& model, const std::string& path,
                 const std::string& end, int64_t opset) {
  if (end != ".onnx") return write_paddle(program, path);
  std::vector<std::string> inputs;
  for (const ValueId id : program.inputs) inputs.push_back(label_of(program, id));
  onnx::export_program(program, path,
                       {.opset = opset, .inputs = inputs, .outputs = model.outputs()});
}

// ---- example inputs ------------------------------------------------------------------------------

constexpr int64_t kLikelyBatch = 2, kLikelySize = 320;  // of open sizes

std::vector<int64_t> example_shape(const Port& port, const std::vector<int64_t>* given,
                                   std::map<std::string, int64_t>& sizes) {
  user_check(port.shape || given, ErrorKind::InvalidArgument,
             "the file does not say how many axes the input '{}' has.\nhint: Pass --input-shape "
             "{}=1,3,224,224 (or input_shapes), with its sizes.",
             port.name, port.name);
  if (!port.shape) return *given;
  const std::vector<int64_t>& shape = *port.shape;
  bool fits = !given || given->size() == shape.size();
  for (size_t axis = 0; given && fits && axis < shape.size(); ++axis)
    fits = (*given)[axis] >= 0 && (shape[axis] < 0 || shape[axis] == (*given)[axis]);
  user_check(
      fits, ErrorKind::InvalidArgument,
      "the shape [{}] does not fit the input {}.\nhint: Pass a size for each axis, and those of "
      "the file where it has them.",
      given ? join(*given, ", ") : "", port.str());
  std::vector<int64_t> made;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (given) sizes[port.size_name(axis)] = (*given)[axis];
    const int64_t likely = axis == 0 ? kLikelyBatch : kLikelySize;
    made.push_back(given             ? (*given)[axis]
                   : shape[axis] < 0 ? sizes.try_emplace(port.size_name(axis), likely).first->second
                                     : shape[axis]);
  }
  return made;
}

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  return largest;
}

}  // namespace

NamedTensors load_weights(const std::string& path, FileKind kind) {
  NamedTensors tensors;
  switch (kind) {
    case FileKind::Safetensors:
      return load_safetensors(path);
    case FileKind::Npz:
      return load_npz(path);
    case FileKind::Npy:
      return {{"array", load_npy(path)}};
    case FileKind::Gguf:
      return tensors_of_gguf(path);
    case FileKind::TorchZip: {
      const MappedFile file(path);
      return pytorch::saved_tensors(ZipFile(file.content()));
    }
    default:
      collect(load_pickle(path), "", tensors);
      user_check(!tensors.empty(), ErrorKind::InvalidArgument, "\"{}\" holds no tensors.", path);
      return tensors;
  }
}

std::vector<Tensor> example_inputs(const GraphModel& model, const InputShapes& shapes,
                                   uint64_t seed) {
  std::vector<std::string> names;
  for (const Port& port : model.inputs()) names.push_back(port.name);
  for (const auto& [name, shape] : shapes)
    user_check(std::find(names.begin(), names.end(), name) != names.end(),
               ErrorKind::InvalidArgument, "the model has no input '{}'; it has {}.", name,
               join(names, ", "));
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::map<std::string, int64_t> sizes;
  std::vector<Tensor> made;
  for (const Port& port : model.inputs()) {
    const auto given = shapes.find(port.name);
    const std::vector<int64_t> shape =
        example_shape(port, given == shapes.end() ? nullptr : &given->second, sizes);
    Shape dims;
    for (const int64_t size : shape) dims.push_back(size);
    std::vector<double> numbers(static_cast<size_t>(dims.numel().value()));
    for (double& x : numbers)
      x = is_floating(port.likely_dtype()) ? normal(engine) : static_cast<double>(engine() & 1);
    made.push_back(
        cast(Tensor::from_vector(numbers, Dims(dims), DType::Float64), port.likely_dtype()));
  }
  return made;
}

Difference difference_of(const Tensor& one, const Tensor& other) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (!(one.shape() == other.shape())) return {0, kInfinite, kInfinite};
  const auto numbers = [](const Tensor& t) {
    const Tensor plain = t.is_contiguous() ? t : assign(t);
    return cast(plain, DType::Float64).to_vector<double>();
  };
  const std::vector<double> a = numbers(one), b = numbers(other);
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double apart = std::abs(a[i] - b[i]);
    worst = std::isnan(apart) ? kInfinite : std::max(worst, apart);
  }
  const double largest = largest_of(a);
  return {largest, worst, largest > 0 ? worst / largest : worst};
}

Conversion convert(const std::string& source, const std::string& target,
                   const ConvertOptions& options) {
  Conversion done;
  done.source = model_file(source);
  done.kind = guess_kind(done.source);
  done.target = target;
  const std::string end = fs::path(target).extension().string();
  const bool to_model = is_one_of(end, kModelEnds);
  user_check(
      to_model || is_one_of(end, kWeightEnds), ErrorKind::InvalidArgument,
      "the target \"{}\" has the ending '{}', which is no format that Oar writes.\nhint: Choose "
      "one of .oar, {} for a model, {} for weights.",
      target, end,
      join(std::vector<std::string>(std::begin(kModelEnds), std::end(kModelEnds)), ", "),
      join(std::vector<std::string>(std::begin(kWeightEnds), std::end(kWeightEnds)), ", "));
  std::error_code ignored;
  user_check(!fs::equivalent(done.source, target, ignored), ErrorKind::InvalidArgument,
             "source and target are the same file, \"{}\".", target);
  const bool from_tensors = holds_tensors(done.kind);
  user_check(
      !from_tensors || !to_model, ErrorKind::InvalidArgument,
      "\"{}\" is {} and has no model, so {} cannot be written.\nhint: Choose .safetensors, .npz or "
      ".pdparams.",
      done.source, described(done.kind), end);
  if (const fs::path folder = fs::path(target).parent_path(); !folder.empty())
    fs::create_directories(folder, ignored);
  std::vector<std::string> written{target};
  if (from_tensors) {
    const NamedTensors tensors =
        naming_file(done.source, [&] { return load_weights(done.source, done.kind); });
    write_weights(target, end, tensors);
    done.tensors = tensors.size();
  } else {
    const GraphModel model = load_model(source, options.load);
    done.kind = model.kind();
    done.source = model.path();
    const bool saved = done.kind == FileKind::Oar || done.kind == FileKind::OarProgram;
    const Program program =
        model.program(saved ? std::vector<Tensor>{} : example_inputs(model, options.shapes));
    const NamedTensors states = states_of(program);
    if (to_model)
      write_model(program, model, target, end, options.opset);
    else
      write_weights(target, end, states);
    done.calls = program.body.instructions.size();
    done.tensors = states.size();
    written.push_back(target + ".data");
    if (end == ".json" || end == ".pdmodel")
      written.push_back(fs::path(target).replace_extension(".pdiparams").string());
  }
  for (const std::string& file : written)
    if (fs::is_regular_file(file, ignored)) done.bytes += static_cast<int64_t>(fs::file_size(file));
  return done;
}

}  // namespace oar::interop
