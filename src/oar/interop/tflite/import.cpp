#include "oar/interop/tflite/import.h"

#include <algorithm>
#include <cmath>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/constants.h"
#include "oar/interop/tflite/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tflite {
namespace {

using interop::Value;

void check_ops(const ModelFile& file) {
  std::vector<std::string> unknown;
  for (const Op& op : file.ops)
    if (!find_converter(op.code)) unknown.push_back(op.name);
  interop::refuse_unknown(unknown, "operators");
}

// ---- quantised tensors -------------------------------------------------------------------------

std::pair<double, double> limits_of(DType dtype) {
  if (dtype == DType::Int8) return {-128, 127};
  if (dtype == DType::UInt8) return {0, 255};
  if (dtype == DType::Int16) return {-32768, 32767};
  return {-2147483648.0, 2147483647.0};
}

struct Scale {
  double scale, zero;
};
Scale scale_of(const TensorInfo& info) {
  const Quantisation& q = info.quantisation;
  user_check(q.scales.size() == 1 && q.scales[0] > 0 && std::isfinite(q.scales[0]),
             ErrorKind::Unsupported,
             "the tensor '{}' has several scales, or none that is positive.", info.name);
  return {static_cast<double>(q.scales[0]), static_cast<double>(q.zeros[0])};
}

Tensor stored(const Tensor& real, const TensorInfo& info) {
  const auto [scale, zero] = scale_of(info);
  const auto [low, high] = limits_of(info.dtype());
  return clip(floor(real * (1 / scale) + (zero + 0.5)), Scalar(low), Scalar(high));
}
Tensor real_of(const Tensor& stored, const TensorInfo& info) {
  const auto [scale, zero] = scale_of(info);
  return (cast(stored, DType::Float32) - zero) * scale;
}
// The real numbers that a tensor can hold which are next to these.
Tensor rounded(const Tensor& real, const TensorInfo& info) {
  return real_of(stored(real, info), info);
}

// ---- graph -------------------------------------------------------------------------------------

class Importer {
 public:
  explicit Importer(const ModelFile& file) : file_(file), values_(file.tensors.size()) {}

  Program run(const Tensors& like) {
    for (size_t i = 0; i < file_.inputs.size(); ++i) add_input(file_.inputs[i], like[i]);
    for (const Op& op : file_.ops) add_op(op);
    std::vector<Value> outputs;
    for (const int32_t place : file_.outputs) outputs.push_back(output(place));
    values_.clear();  // only the program may keep what the nodes computed
    return graph_.finish(outputs);
  }

 private:
  void add_input(int32_t place, const Tensor& like) {
    const TensorInfo& info = info_of(place);
    Value value = graph_.input(info.name, like);
    if (info.quantised())
      value = graph_.call("the input", {value},
                          [&] { return Tensors{real_of(value.tensor, info)}; })[0];
    values_[static_cast<size_t>(place)] = value;
  }

  const TensorInfo& info_of(int32_t place) const {
    user_check(place >= 0, ErrorKind::InvalidArgument, "the file is damaged: a tensor is missing.");
    return file_.tensors[static_cast<size_t>(place)];
  }

  Value value(int32_t place, const std::string& reader) {
    if (place < 0) return {};
    Value& found = values_[static_cast<size_t>(place)];
    if (found.tensor.defined()) return found;
    const TensorInfo& info = info_of(place);
    const bool empty = std::find(info.shape.begin(), info.shape.end(), 0) != info.shape.end();
    user_check(!info.data.empty() || empty, ErrorKind::InvalidArgument,
               "{} reads '{}', which nothing before it computes.", reader, info.name);
    found = graph_.constant(info.name, constant_of(info));
    return found;
  }

  void add_op(const Op& op) {
    const Converter& converter = *find_converter(op.code);
    std::vector<Value> inputs;
    for (const int32_t place : op.inputs) inputs.push_back(value(place, op.str()));
    const Call call(file_, op, inputs);
    const bool sizes_only = converter.kind == Converter::Sizes;
    if (sizes_only) inputs.clear();  // then its result is known
    const std::string what = format(
        "{}{}", op.str(), op.outputs.empty() ? "" : format(" '{}'", info_of(op.outputs[0]).name));
    std::vector<Value> results = graph_.call(what, inputs, [&] {
      Tensors made = converter.convert(call);
      for (size_t i = 0; i < std::min(made.size(), op.outputs.size()); ++i)
        if (needs_rounding(op, converter, op.outputs[i]))
          made[i] = rounded(made[i], info_of(op.outputs[i]));
      return made;
    });
    user_check(results.size() >= op.outputs.size(), ErrorKind::Unsupported,
               "{} has {} outputs, of which Oar computes {}.", what, op.outputs.size(),
               results.size());
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      if (op.outputs[i] < 0) continue;
      if (results[i].known) results[i].tensor = interop::in_c_order(results[i].tensor);
      values_[static_cast<size_t>(op.outputs[i])] = results[i];
    }
  }

  bool needs_rounding(const Op& op, const Converter& converter, int32_t place) const {
    if (place < 0 || !info_of(place).quantised()) return false;
    if (converter.kind != Converter::Moves) return true;
    return std::any_of(op.inputs.begin(), op.inputs.end(), [&](int32_t input) {
      return input >= 0 && info_of(input).quantised() &&
             info_of(input).quantisation != info_of(place).quantisation;
    });
  }

  Value output(int32_t place) {
    const TensorInfo& info = info_of(place);
    Value real = value(place, "an output");
    if (!info.quantised()) return real;
    return graph_.call("an output", {real},
                       [&] { return Tensors{cast(stored(real.tensor, info), info.dtype())}; })[0];
  }

  const ModelFile& file_;
  interop::GraphCapture graph_;
  std::vector<Value> values_;
};

}  // namespace

// ---- calls -------------------------------------------------------------------------------------

const Tensor& Call::tensor(size_t i) const {
  if (!has(i)) refuse(format("its input {} is missing", i));
  return inputs_[i].tensor;
}

Tensors Call::tensors() const {
  Tensors all;
  for (size_t i = 0; i < inputs_.size(); ++i) all.push_back(tensor(i));
  return all;
}

const Tensor& Call::constant(size_t i) const {
  if (has(i) && !inputs_[i].known)
    refuse(format("its input {} is computed by the model; it must be a constant or a size", i));
  return tensor(i);
}

std::vector<int64_t> Call::integers(size_t i) const { return interop::integers_in(constant(i)); }
std::vector<double> Call::numbers(size_t i) const { return interop::numbers_in(constant(i)); }

int64_t Call::integer(size_t i) const {
  const std::vector<int64_t> list = integers(i);
  if (list.size() != 1) refuse(format("its input {} is no single number", i));
  return list[0];
}

int64_t Call::axis(int64_t given, size_t i) const {
  const int64_t rank = tensor(i).rank(), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) refuse(format("it has no axis {}", given));
  return axis;
}

const TensorInfo& Call::result(size_t i) const {
  if (i >= op.outputs.size() || op.outputs[i] < 0) refuse("an output is missing");
  return file_.tensors[static_cast<size_t>(op.outputs[i])];
}

Tensor Call::activated(const Tensor& x, int function) const {
  switch (function) {
    case 0:
      return x;
    case 1:
      return relu(x);
    case 2:
      return hardtanh(x);
    case 3:
      return relu6(x);
    case 4:
      return tanh(x);
    default:
      refuse(format("it ends with the function {}", function));
  }
}

void Call::refuse(std::string_view why) const {
  const bool named = !op.outputs.empty() && op.outputs[0] >= 0;
  fail(ErrorKind::Unsupported, "{}{} cannot be imported: {}.", op.str(),
       named ? format(" '{}'", file_.tensors[static_cast<size_t>(op.outputs[0])].name) : "", why);
}

const Converter* find_converter(int32_t code) {
  for (const auto& table : {elementwise_converters(), network_converters(), shape_converters()})
    for (const Converter& converter : table)
      if (converter.code == code) return &converter;
  return nullptr;
}

// ---- models ------------------------------------------------------------------------------------

interop::GraphModel read_model(std::string content) {
  auto file = std::make_shared<const ModelFile>(std::move(content));
  check_ops(*file);
  std::vector<interop::Port> inputs;
  std::vector<std::string> outputs;
  const auto info_of = [&](int32_t place) -> const TensorInfo& {
    user_check(place >= 0, ErrorKind::InvalidArgument, "the file is damaged: a tensor is missing.");
    return file->tensors[static_cast<size_t>(place)];
  };
  for (const int32_t place : file->inputs) {
    const TensorInfo& info = info_of(place);
    inputs.push_back({info.name, info.dtype(), info.shape});
  }
  for (const int32_t place : file->outputs) outputs.push_back(info_of(place).name);
  return {std::move(inputs), std::move(outputs),
          [file](const Tensors& like) { return Importer(*file).run(like); }};
}

interop::GraphModel load_model(const std::string& path) { return read_model(read_file(path)); }

}  // namespace oar::tflite
