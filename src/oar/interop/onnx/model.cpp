#include "oar/interop/onnx/model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/protobuf.h"
#include "oar/tensor/byte_count.h"

namespace oar::onnx {
namespace {

constexpr int kDeepest = 64;                                  // graphs inside graphs
constexpr int64_t kNewestFormat = 14, kNewestOperators = 28;  // of ONNX 1.23

struct Number {
  int64_t number;
  DType dtype;
};
constexpr Number kDTypes[] = {
    {1, DType::Float32},     {2, DType::UInt8},     {3, DType::Int8},
    {5, DType::Int16},       {6, DType::Int32},     {7, DType::Int64},
    {9, DType::Bool},        {10, DType::Float16},  {11, DType::Float64},
    {12, DType::UInt32},     {13, DType::UInt64},   {14, DType::Complex64},
    {15, DType::Complex128}, {16, DType::BFloat16}, {17, DType::Float8E4M3FN},
    {19, DType::Float8E5M2}, {21, DType::UInt4},    {22, DType::Int4},
    {kUInt16, DType::Int32},  // which Oar does not have
};
constexpr const char* kOthers[] = {"undefined", "", "", "", "uint16", "", "", "", "string"};

// The content of a TensorProto before it becomes a tensor: one of several fields has it.
struct Stored {
  std::string name;
  std::vector<int64_t> sizes;
  int64_t type = 0;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> narrow, integers, words;  // int32_data, int64_data, uint64_data
  std::string_view raw;
  bool has_raw = false, external = false;
  std::map<std::string, std::string> where;  // of external data
};

std::pair<std::string, std::string> parse_entry(std::string_view message) {
  std::pair<std::string, std::string> entry;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) entry.first = r.text();
    if (r.field() == 2) entry.second = r.text();
  }
  return entry;
}

Stored parse_stored(std::string_view message) {
  Stored s;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        r.append(s.sizes);
        break;
      case 2:
        s.type = r.integer();
        break;
      case 4:
        r.append(s.floats);
        break;
      case 5:
        r.append(s.narrow);
        break;
      case 7:
        r.append(s.integers);
        break;
      case 8:
        s.name = r.text();
        break;
      case 9:
        s.raw = r.bytes();
        s.has_raw = true;
        break;
      case 10:
        r.append(s.doubles);
        break;
      case 11:
        r.append(s.words);
        break;
      case 13:
        s.where.insert(parse_entry(r.bytes()));
        break;
      case 14:
        s.external = r.integer() == 1;
        break;
      default:
        break;
    }
  }
  return s;
}

int64_t number_in(const std::map<std::string, std::string>& where, const char* key,
                  int64_t otherwise) {
  const auto found = where.find(key);
  if (found == where.end()) return otherwise;
  int64_t value = 0;
  for (const char c : found->second) {
    user_check(c >= '0' && c <= '9' && value < (int64_t{1} << 59), ErrorKind::InvalidArgument,
               "the {} of external data is '{}', which is no number.", key, found->second);
    value = value * 10 + (c - '0');
  }
  return value;
}

// The bytes of external data. A path that leaves the folder, also through a link, is refused.
std::string external_bytes(const Stored& s, const std::string& folder, size_t wanted) {
  namespace fs = std::filesystem;
  const auto found = s.where.find("location");
  user_check(found != s.where.end(), ErrorKind::InvalidArgument,
             "the tensor '{}' is in another file, which is not named.", s.name);
  std::error_code error;
  const fs::path root = fs::weakly_canonical(folder, error),
                 path = fs::weakly_canonical(root / found->second, error);
  const auto [end, rest] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  user_check(!error && end == root.end(), ErrorKind::InvalidArgument,
             "the tensor '{}' is in the file '{}', outside of the model's folder.", s.name,
             found->second);
  const std::string file = read_file(path.string());
  const int64_t offset = number_in(s.where, "offset", 0);
  const int64_t length = number_in(s.where, "length", static_cast<int64_t>(wanted));
  user_check(static_cast<size_t>(length) == wanted && static_cast<size_t>(offset) <= file.size() &&
                 wanted <= file.size() - static_cast<size_t>(offset),
             ErrorKind::InvalidArgument,
             "the tensor '{}' needs {} bytes at {} of '{}', which has {}.", s.name, wanted, offset,
             found->second, file.size());
  return file.substr(static_cast<size_t>(offset), wanted);
}

template <class To, class From>
void fill(const Tensor& t, const std::vector<From>& values) {
  std::transform(values.begin(), values.end(), t.data<To>(),
                 [](From v) { return static_cast<To>(v); });
}

// Fields other than raw data hold small types as wider numbers; 16-bit floats are the bits of one.
void fill_from_fields(const Tensor& t, const Stored& s) {
  const auto complex_as = [&](const auto& values) {
    std::memcpy(t->data, values.data(), values.size() * sizeof(values[0]));
  };
  switch (t.dtype()) {
    case DType::Float32:
      return fill<float>(t, s.floats);
    case DType::Float64:
      return fill<double>(t, s.doubles);
    case DType::Complex64:
      return complex_as(s.floats);
    case DType::Complex128:
      return complex_as(s.doubles);
    case DType::Int64:
      return fill<int64_t>(t, s.integers);
    case DType::UInt64:
      return fill<uint64_t>(t, s.words);
    case DType::UInt32:
      return fill<uint32_t>(t, s.words);
    case DType::Int32:
      return fill<int32_t>(t, s.narrow);
    case DType::Int16:
      return fill<int16_t>(t, s.narrow);
    case DType::Float16:
    case DType::BFloat16:
      return fill<uint16_t>(t, s.narrow);
    default:
      return fill<uint8_t>(t, s.narrow);  // bool, 8 bits; two packed numbers of 4 bits
  }
}

size_t fields_of(DType dtype, const Stored& s) {
  switch (dtype) {
    case DType::Float32:
      return s.floats.size();
    case DType::Complex64:
      return s.floats.size() / 2;
    case DType::Float64:
      return s.doubles.size();
    case DType::Complex128:
      return s.doubles.size() / 2;
    case DType::Int64:
      return s.integers.size();
    case DType::UInt32:
    case DType::UInt64:
      return s.words.size();
    default:
      return s.narrow.size();
  }
}

Tensor tensor_of(const Stored& s, const std::string& folder);

// Elements of 16 bits as wider ones.
Tensor uint16_of(const Stored& s, const std::string& folder) {
  Stored narrow = s;
  narrow.type = 5;  // int16: the same bytes
  const Tensor bits = tensor_of(narrow, folder), wide = Tensor::empty(bits.shape(), DType::Int32);
  const auto* from = static_cast<const uint16_t*>(bits->data);
  std::copy(from, from + bits.numel().value(), wide.data<int32_t>());
  return wide;
}

// A float of a sign, an exponent and some bits of a mantissa. There is no infinity, and what would be the negative zero is NaN.
float fnuz_value(uint8_t bits, int mantissa_bits, int bias) {
  if (bits == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const int exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1 << mantissa_bits) - 1);
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const double size = std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
  return static_cast<float>((bits & 0x80) != 0 ? -size : size);
}
Tensor fnuz_of(const Stored& s, const std::string& folder) {
  Stored bytes = s;
  bytes.type = 2;  // uint8: the same bytes
  const Tensor bits = tensor_of(bytes, folder), wide = Tensor::empty(bits.shape(), DType::Float32);
  const auto* from = static_cast<const uint8_t*>(bits->data);
  const bool long_mantissa = s.type == kFloat8E4M3FNUZ;
  std::transform(from, from + bits.numel().value(), wide.data<float>(), [&](uint8_t one) {
    return long_mantissa ? fnuz_value(one, 3, 8) : fnuz_value(one, 2, 16);
  });
  return wide;
}
bool is_fnuz(int64_t number) { return number == kFloat8E4M3FNUZ || number == kFloat8E5M2FNUZ; }

Tensor tensor_of(const Stored& s, const std::string& folder) {
  if (s.type == kUInt16) return uint16_of(s, folder);
  if (is_fnuz(s.type)) return fnuz_of(s, folder);
  const DType dtype = dtype_of(s.type);
  Shape shape;
  for (const int64_t size : s.sizes) shape.push_back(size);
  const size_t bytes = static_cast<size_t>(int64_t{bytes_of(shape, dtype).value()});
  const size_t numbers = static_cast<size_t>(shape.numel().value());
  if (!s.external && s.has_raw)
    user_check(s.raw.size() == bytes, ErrorKind::InvalidArgument,
               "the tensor '{}' of shape {} has {} bytes instead of {}.", s.name,
               to_string(Dims(shape)), s.raw.size(), bytes);
  const bool packed = dtype == DType::Int4 || dtype == DType::UInt4;
  if (!s.external && !s.has_raw)
    user_check(fields_of(dtype, s) == (packed ? bytes : numbers), ErrorKind::InvalidArgument,
               "the tensor '{}' of shape {} has {} elements.", s.name, to_string(Dims(shape)),
               fields_of(dtype, s));
  const Tensor t = Tensor::empty(shape, dtype);
  if (bytes == 0) return t;
  if (s.external)
    std::memcpy(t->data, external_bytes(s, folder, bytes).data(), bytes);
  else if (s.has_raw)
    std::memcpy(t->data, s.raw.data(), bytes);
  else
    fill_from_fields(t, s);
  return t;
}

Port::Size parse_size(std::string_view message) {
  Port::Size size;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) size.value = r.integer();
    if (r.field() == 2) size.symbol = r.text();
  }
  user_check(size.value >= -1, ErrorKind::InvalidArgument, "an input has the size {}.", size.value);
  return size;
}

void parse_tensor_type(std::string_view message, Port& port) {
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) {
      port.number = r.integer();
      port.dtype = is_fnuz(port.number) ? DType::Float32 : dtype_of(port.number);
    }
    if (r.field() != 2) continue;
    port.has_shape = true;
    for (ProtoReader sizes(r.bytes()); sizes.next();)
      if (sizes.field() == 1) port.shape.push_back(parse_size(sizes.bytes()));
  }
}

void parse_type(std::string_view message, Port& port, int depth);

// Of a sequence or an optional.
std::shared_ptr<const Port> parse_element(std::string_view message, int depth) {
  Port element;
  element.kind = Port::Other;
  for (ProtoReader r(message); r.next();)
    if (r.field() == 1) parse_type(r.bytes(), element, depth + 1);
  return std::make_shared<const Port>(std::move(element));
}

void parse_type(std::string_view message, Port& port, int depth) {
  user_check(depth <= kDeepest, ErrorKind::InvalidArgument,
             "the type of '{}' is nested more than {} deep.", port.name, kDeepest);
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        port.kind = Port::Tensor;
        parse_tensor_type(r.bytes(), port);
        break;
      case 4:
        port.kind = Port::Sequence;
        port.element = parse_element(r.bytes(), depth);
        break;
      case 9:
        port.kind = Port::Optional;
        port.element = parse_element(r.bytes(), depth);
        break;
      default:
        break;
    }
  }
}

Port parse_port(std::string_view message) {
  Port port;
  port.kind = Port::Other;  // a map, a sparse tensor
  std::string_view type;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 1) port.name = r.text();
    if (r.field() == 2) type = r.bytes();
  }
  parse_type(type, port, 0);
  return port;
}

Graph parse_graph(std::string_view message, const std::string& folder, int depth);

Attribute parse_attribute(std::string_view message, const std::string& folder, int depth) {
  Attribute a;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        a.name = r.text();
        break;
      case 2:
        a.number = r.float32();
        break;
      case 3:
        a.integer = r.integer();
        break;
      case 4:
        a.text = r.text();
        break;
      case 5:
        a.tensor = parse_tensor(r.bytes(), folder);
        break;
      case 6:
      case 11:
        a.graphs.push_back(parse_graph(r.bytes(), folder, depth + 1));
        break;
      case 7:
        r.append(a.numbers);
        break;
      case 8:
        r.append(a.integers);
        break;
      case 9:
        a.texts.push_back(r.text());
        break;
      case 21:
        a.refers_to = r.text();
        break;
      default:
        break;
    }
  }
  return a;
}

Node parse_node(std::string_view message, const std::string& folder, int depth) {
  Node node;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        node.inputs.push_back(r.text());
        break;
      case 2:
        node.outputs.push_back(r.text());
        break;
      case 3:
        node.name = r.text();
        break;
      case 4:
        node.op = r.text();
        break;
      case 5:
        node.attributes.push_back(parse_attribute(r.bytes(), folder, depth));
        break;
      case 7:
        node.domain = r.text();
        break;
      default:
        break;
    }
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  return node;
}

Graph parse_graph(std::string_view message, const std::string& folder, int depth) {
  user_check(depth <= kDeepest, ErrorKind::InvalidArgument, "graphs are nested more than {} deep.",
             kDeepest);
  Graph graph;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        graph.nodes.push_back(parse_node(r.bytes(), folder, depth));
        break;
      case 2:
        graph.name = r.text();
        break;
      case 5: {
        const Stored stored = parse_stored(r.bytes());
        graph.initializers[stored.name] = tensor_of(stored, folder);
        break;
      }
      case 11:
        graph.inputs.push_back(parse_port(r.bytes()));
        break;
      case 12:
        graph.outputs.push_back(parse_port(r.bytes()));
        break;
      default:
        break;
    }
  }
  return graph;
}

void parse_opset(std::string_view message, std::map<std::string, int64_t>& opsets) {
  std::string domain;
  int64_t version = 0;
  for (ProtoReader set(message); set.next();) {
    if (set.field() == 1) domain = set.text();
    if (set.field() == 2) version = set.integer();
  }
  opsets[domain == "ai.onnx" ? "" : domain] = version;
}

Function parse_function(std::string_view message, const std::string& folder) {
  Function f;
  for (ProtoReader r(message); r.next();) {
    switch (r.field()) {
      case 1:
        f.name = r.text();
        break;
      case 4:
        f.inputs.push_back(r.text());
        break;
      case 5:
        f.outputs.push_back(r.text());
        break;
      case 7:
        f.nodes.push_back(parse_node(r.bytes(), folder, 0));
        break;
      case 9:
        parse_opset(r.bytes(), f.opsets);
        break;
      case 10:
        f.domain = r.text();
        break;
      case 11:
        f.defaults.push_back(parse_attribute(r.bytes(), folder, 0));
        break;
      default:
        break;
    }
  }
  return f;
}

}  // namespace

const Function* ModelFile::find_function(std::string_view domain, std::string_view op) const {
  for (const Function& f : functions)
    if (f.name == op && f.domain == domain) return &f;
  return nullptr;
}

const Attribute* Node::find(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const Attribute& a) { return a.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

std::string Node::str() const {
  const std::string& own = name.empty() && !outputs.empty() ? outputs[0] : name;
  return format("{}{}{} '{}'", domain, domain.empty() ? "" : "::", op, own);
}

DType dtype_of(int64_t number) {
  for (const Number& n : kDTypes)
    if (n.number == number) return n.dtype;
  const bool named = number >= 0 && number < static_cast<int64_t>(std::size(kOthers));
  fail(ErrorKind::Unsupported, "the model has a tensor of dtype {} ({}), which Oar does not have.",
       number, named ? kOthers[number] : "unknown");
}

int64_t number_of(DType dtype) {
  for (const Number& n : kDTypes)
    if (n.dtype == dtype) return n.number;
  fail(ErrorKind::Unsupported, "ONNX has no tensors of dtype {}.", name_of(dtype));
}

Tensor parse_tensor(std::string_view message, const std::string& folder) {
  return tensor_of(parse_stored(message), folder);
}

ModelFile parse_model(std::string_view file, const std::string& folder) {
  ModelFile model;
  bool has_graph = false;
  for (ProtoReader r(file); r.next();) {
    switch (r.field()) {
      case 1:
        model.ir_version = r.integer();
        break;
      case 2:
        model.producer = r.text();
        break;
      case 7:
        model.graph = parse_graph(r.bytes(), folder, 0);
        has_graph = true;
        break;
      case 8:
        parse_opset(r.bytes(), model.opsets);
        break;
      case 25:
        model.functions.push_back(parse_function(r.bytes(), folder));
        break;
      default:
        break;
    }
  }
  user_check(has_graph, ErrorKind::InvalidArgument, "the file is no ONNX model: it has no graph.");
  const auto operators = model.opsets.find("");
  const int64_t opset = operators == model.opsets.end() ? 0 : operators->second;
  user_check(
      model.ir_version <= kNewestFormat && opset <= kNewestOperators, ErrorKind::Unsupported,
      "the model has version {} of ONNX's format and version {} of its operators; this Oar reads "
      "those up to {} and {}.\nhint: Export it for an older version of the operators.",
      model.ir_version, opset, kNewestFormat, kNewestOperators);
  return model;
}

}  // namespace oar::onnx
