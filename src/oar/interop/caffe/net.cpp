#include "oar/interop/caffe/net.h"

#include <algorithm>
#include <cstring>

#include "oar/base/error.h"
#include "oar/interop/protobuf.h"
#include "oar/tensor/byte_count.h"

namespace oar::caffe {
namespace {

// ---- layers ------------------------------------------------------------------------------------

// How files of the first version (fields `layers`) spell types.
struct OldType {
  std::string_view old, type;
};
constexpr OldType kOldTypes[] = {
    {"ABSVAL", "AbsVal"},
    {"ARGMAX", "ArgMax"},
    {"BNLL", "BNLL"},
    {"CONCAT", "Concat"},
    {"ELTWISE", "Eltwise"},
    {"CONVOLUTION", "Convolution"},
    {"DECONVOLUTION", "Deconvolution"},
    {"DROPOUT", "Dropout"},
    {"EXP", "Exp"},
    {"FLATTEN", "Flatten"},
    {"INNER_PRODUCT", "InnerProduct"},
    {"LRN", "LRN"},
    {"MVN", "MVN"},
    {"POOLING", "Pooling"},
    {"POWER", "Power"},
    {"RELU", "ReLU"},
    {"SIGMOID", "Sigmoid"},
    {"SILENCE", "Silence"},
    {"SLICE", "Slice"},
    {"SOFTMAX", "Softmax"},
    {"SPLIT", "Split"},
    {"TANH", "TanH"},
    {"THRESHOLD", "Threshold"},
};

std::string spelled(const std::string& type) {
  for (const OldType& old : kOldTypes)
    if (type == old.old) return std::string(old.type);
  return type;
}

bool runs_in_test(const TextMessage& layer) {
  const auto rules = layer.all("include");
  const auto is_test = [](const TextMessage* rule) {
    return rule->text("phase", "TEST") == "TEST";
  };
  if (!rules.empty() && std::none_of(rules.begin(), rules.end(), is_test)) return false;
  for (const TextMessage* rule : layer.all("exclude"))
    if (rule->text("phase", "") == "TEST") return false;
  return true;
}

void add_input(Net& net, const std::string& name, std::vector<int64_t> shape) {
  user_check(
      !shape.empty() && std::all_of(shape.begin(), shape.end(),
                                    [](int64_t size) { return size > 0 && size < (1 << 24); }),
      ErrorKind::InvalidArgument, "the input '{}' has no shape that is possible.", name);
  net.inputs.push_back({name, DType::Float32, std::move(shape)});
}

// `input: "data"` with four `input_dim`, or an `input_shape` each.
void add_inputs_of_net(Net& net, const TextMessage& file) {
  const std::vector<std::string> names = file.texts("input");
  const std::vector<int64_t> sizes = file.integers("input_dim");
  const auto shapes = file.all("input_shape");
  user_check(shapes.size() == names.size() || sizes.size() == 4 * names.size(),
             ErrorKind::InvalidArgument, "the net has {} inputs, but not as many shapes.",
             names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const auto first = sizes.begin() + static_cast<std::ptrdiff_t>(4 * i);
    add_input(net, names[i],
              shapes.empty() ? std::vector<int64_t>(first, first + 4) : shapes[i]->integers("dim"));
  }
}

void add_input_layer(Net& net, const Layer& layer) {
  const auto shapes = layer.fields.message("input_param").all("shape");
  user_check(!shapes.empty(), ErrorKind::InvalidArgument,
             "the layer {} does not say what shape it has.", layer.str());
  for (size_t i = 0; i < layer.tops.size(); ++i)
    add_input(net, layer.tops[i], shapes[std::min(i, shapes.size() - 1)]->integers("dim"));
}

// What no layer takes, in the order of the file. A layer may write to what it reads.
std::vector<std::string> loose_tops(const Net& net) {
  std::vector<std::string> loose;
  for (const Layer& layer : net.layers) {
    for (const std::string& bottom : layer.bottoms) std::erase(loose, bottom);
    for (const std::string& top : layer.tops) {
      std::erase(loose, top);
      loose.push_back(top);
    }
  }
  return loose;
}

// ---- weights -----------------------------------------------------------------------------------

struct Blob {
  std::vector<int64_t> old_shape = {0, 0, 0, 0}, shape;
  std::vector<float> data;
  std::vector<double> doubles;
  bool has_old = false, has_shape = false;
};

Blob parse_blob(std::string_view message) {
  Blob blob;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
      case 2:
      case 3:
      case 4:
        blob.old_shape[static_cast<size_t>(r.field() - 1)] = r.integer();
        blob.has_old = true;
        break;
      case 5:
        r.append(blob.data);
        break;
      case 7:
        blob.has_shape = true;
        for (ProtoReader shape(r.bytes()); shape.next();)
          if (shape.field() == 1) shape.append(blob.shape);
        break;
      case 8:
        r.append(blob.doubles);
        break;
      default:
        break;
    }
  }
  return blob;
}

Tensor tensor_of(const Blob& blob, const std::string& layer) {
  const std::vector<int64_t>& sizes = blob.has_shape ? blob.shape : blob.old_shape;
  const size_t count = blob.data.empty() ? blob.doubles.size() : blob.data.size();
  Shape shape;
  Count wanted = 1;
  user_check(sizes.size() <= 32, ErrorKind::InvalidArgument,
             "a weight of the layer '{}' has {} axes.", layer, sizes.size());
  for (const int64_t size : sizes) {
    user_check(size >= 0, ErrorKind::InvalidArgument,
               "a weight of the layer '{}' has a negative size.", layer);
    shape.push_back(size);
    wanted = wanted * size;
  }
  if (!blob.has_shape && !blob.has_old) {
    shape = Shape{static_cast<int64_t>(count)};
    wanted = static_cast<int64_t>(count);
  }
  user_check(wanted.size() == count, ErrorKind::InvalidArgument,
             "a weight of the layer '{}' has {} numbers, but its shape {} needs {}.", layer, count,
             shape.str(), wanted.value());
  if (blob.data.empty()) return Tensor::from_vector(blob.doubles, shape, DType::Float32);
  const Tensor made = Tensor::empty(shape, DType::Float32);
  std::memcpy(made->data, blob.data.data(), count * sizeof(float));
  return made;
}

// A layer of the newer (name 1, blobs 7) or the older (name 4, blobs 6) version.
void add_weights(Weights& weights, std::string_view message, int name_field, int blob_field) {
  std::string name;
  std::vector<std::string_view> blobs;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == name_field) name = r.text();
    if (r.field() == blob_field) blobs.push_back(r.bytes());
  }
  if (blobs.empty()) return;
  std::vector<Tensor>& list = weights[name];
  list.clear();
  for (const std::string_view blob : blobs) list.push_back(tensor_of(parse_blob(blob), name));
}

}  // namespace

std::string Layer::str() const { return format("{} '{}'", type, name); }

Net parse_net(std::string_view prototxt) {
  const TextMessage file = parse_text_message(prototxt);
  Net net;
  net.name = file.text("name", "");
  add_inputs_of_net(net, file);
  for (const TextMessage::Field& field : file.fields) {
    if (!field.is_message || (field.name != "layer" && field.name != "layers")) continue;
    if (!runs_in_test(field.message)) continue;
    const TextMessage& fields = field.message;
    Layer layer{fields.text("name", ""), spelled(fields.text("type", "")), fields.texts("bottom"),
                fields.texts("top"), fields};
    if (layer.type == "Input")
      add_input_layer(net, layer);
    else
      net.layers.push_back(std::move(layer));
  }
  user_check(!net.layers.empty(), ErrorKind::InvalidArgument,
             "the file has no layers.\nhint: Pass the .prototxt that describes the net for use "
             "(often called deploy.prototxt).");
  user_check(
      !net.inputs.empty(), ErrorKind::Unsupported,
      "the net has no inputs: it reads data itself, as nets for training do.\nhint: Pass the "
      ".prototxt for use (often called deploy.prototxt).");
  net.outputs = loose_tops(net);
  return net;
}

Weights parse_weights(std::string_view caffemodel) {
  Weights weights;
  for (ProtoReader r(caffemodel); r.next();) {
    if (r.field() == 100) add_weights(weights, r.bytes(), 1, 7);
    if (r.field() == 2) add_weights(weights, r.bytes(), 4, 6);
  }
  user_check(!weights.empty(), ErrorKind::InvalidArgument,
             "the file of weights holds no weights.\nhint: Pass a .caffemodel of 2014 or later.");
  return weights;
}

}  // namespace oar::caffe
