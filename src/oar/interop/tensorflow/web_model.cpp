// Models of TensorFlow.js: `model.json` and files with weights. Those of layers are models of Keras.
#include <cmath>
#include <cstring>

#include "oar/base/error.h"
#include "oar/interop/constants.h"
#include "oar/interop/json_value.h"
#include "oar/interop/keras/import.h"
#include "oar/interop/tensorflow/signature.h"
#include "oar/interop/tensorflow/web_weights.h"
#include "oar/ops/gen/all.h"
#include "oar/runtime/region_runs.h"
#include "oar/tensor/byte_count.h"

namespace oar::tensorflow {
namespace {

DType dtype_named(const std::string& name, const std::string& what) {
  if (name == "float32") return DType::Float32;
  if (name == "float16") return DType::Float16;
  if (name == "int32") return DType::Int32;
  if (name == "uint8") return DType::UInt8;
  if (name == "uint16") return DType::Int16;  // its bits
  if (name == "bool") return DType::Bool;
  if (name == "complex64") return DType::Complex64;
  fail(ErrorKind::Unsupported, "{} is of dtype '{}', which cannot be imported.", what, name);
}

// The rest of a group's bytes.
class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}

  std::string_view take(uint64_t size, const std::string& what) {
    user_check(size <= rest_.size(), ErrorKind::InvalidArgument,
               "{} needs {} bytes, but the files of weights have only {} more.", what, size,
               rest_.size());
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

 private:
  std::string_view rest_;
};

template <class Stored>
Tensor real_numbers(std::string_view bytes, const std::vector<int64_t>& shape, double scale,
                    double least, bool whole) {
  const Tensor made = Tensor::empty(Shape(Ints(shape)), whole ? DType::Int32 : DType::Float32);
  for (size_t i = 0; i < bytes.size() / sizeof(Stored); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    const double real = static_cast<double>(stored) * scale + least;
    if (whole)
      static_cast<int32_t*>(made->data)[i] =
          std::abs(real) < 2147483647.0 ? static_cast<int32_t>(std::lround(real)) : 0;
    else
      static_cast<float*>(made->data)[i] = static_cast<float>(real);
  }
  return made;
}

std::vector<std::string> texts_of(Bytes& bytes, int64_t count, const std::string& what) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.take(sizeof(size), what).data(), sizeof(size));
    texts.emplace_back(bytes.take(size, what));
  }
  return texts;
}

Constant weight_of(const JsonValue& entry, Bytes& bytes, const std::string& what) {
  std::vector<int64_t> shape;
  for (const JsonValue& size : entry.at("shape").list()) shape.push_back(size.integer());
  const int64_t count = elements_of(shape, what);
  const std::string& dtype = entry.at("dtype").text();
  if (dtype == "string") return {.texts = texts_of(bytes, count, what)};
  const JsonValue* packed = entry.find("quantization");
  const std::string& stored = packed ? packed->at("dtype").text() : dtype;
  const DType as = dtype_named(stored, what);
  const std::string_view taken =
      bytes.take((Count(count) * static_cast<int64_t>(size_of(as))).size(), what);
  const bool whole = dtype == "int32";
  if (packed && (stored == "uint8" || stored == "uint16")) {
    const double scale = packed->at("scale").number(), least = packed->at("min").number();
    return {.tensor = stored == "uint8"
                          ? real_numbers<uint8_t>(taken, shape, scale, least, whole)
                          : real_numbers<uint16_t>(taken, shape, scale, least, whole)};
  }
  const Tensor made = tensor_of_bytes(taken, shape, as, what);
  const FreshLayers fresh;
  return {.tensor = as == DType::Float16 ? cast(made, DType::Float32) : made};
}

const JsonValue* member(const JsonValue* object, std::string_view name) {
  return object && object->is_object() ? object->find(name) : nullptr;
}

void read_ends(const JsonValue* ends, std::map<std::string, Described>& into) {
  if (!ends) return;
  for (const auto& [name, info] : ends->object()) {
    const JsonValue* shape = member(&info, "tensorShape");
    const JsonValue* tensor = member(&info, "name");
    into[name] = {tensor ? tensor->text() : name, shape ? shape_from_json(*shape) : std::nullopt};
  }
}

// Newer files have it beside the graph, older ones among their notes.
Signature signature_in(const JsonValue& file) {
  const JsonValue* found = file.find("signature");
  if (!found) found = member(file.find("userDefinedMetadata"), "signature");
  Signature signature;
  read_ends(member(found, "inputs"), signature.inputs);
  read_ends(member(found, "outputs"), signature.outputs);
  return signature;
}

}  // namespace

Weights read_web_weights(const JsonValue& manifest, const ReadFile& read) {
  Weights weights;
  for (const JsonValue& group : manifest.list()) {
    std::string content;
    for (const JsonValue& path : group.at("paths").list()) content += read(path.text());
    Bytes bytes(content);
    for (const JsonValue& entry : group.at("weights").list()) {
      const std::string& name = entry.at("name").text();
      weights[name] = std::make_shared<const Constant>(
          weight_of(entry, bytes, format("the weight '{}'", name)));
    }
  }
  return weights;
}

interop::GraphModel read_web_model(std::string_view json, const ReadFile& read,
                                   const Wanted& wanted) {
  const JsonValue file = JsonValue::parse(json);
  const JsonValue* topology = file.find("modelTopology");
  user_check(topology && topology->is_object(), ErrorKind::InvalidArgument,
             "the file has no graph: it is no model of TensorFlow.js.");
  if (!topology->find("node")) {
    user_check(wanted.signature.empty() && wanted.inputs.empty() && wanted.outputs.empty(),
               ErrorKind::InvalidArgument,
               "the model is one of layers: it has neither signatures nor names of tensors.");
    return keras::read_layers_model(json, read);
  }
  auto network = std::make_shared<Network>();
  network->graph = graph_from_json(*topology, read_web_weights(file.at("weightsManifest"), read));
  choose_ends(*network, signature_in(file), wanted);
  return model_of(std::move(network));
}

}  // namespace oar::tensorflow
