// Constants of a GraphDef.
#include <algorithm>
#include <cstring>

#include "oar/base/error.h"
#include "oar/interop/protobuf.h"
#include "oar/interop/tensorflow/graph_def.h"
#include "oar/tensor/byte_count.h"

namespace oar::tensorflow {
namespace {

struct TypeName {
  int32_t type;
  const char* name;
  std::optional<DType> dtype;
};
constexpr TypeName kTypes[] = {
    {1, "DT_FLOAT", DType::Float32},
    {2, "DT_DOUBLE", DType::Float64},
    {3, "DT_INT32", DType::Int32},
    {4, "DT_UINT8", DType::UInt8},
    {5, "DT_INT16", DType::Int16},
    {6, "DT_INT8", DType::Int8},
    {kString, "DT_STRING", {}},
    {8, "DT_COMPLEX64", DType::Complex64},
    {9, "DT_INT64", DType::Int64},
    {10, "DT_BOOL", DType::Bool},
    {14, "DT_BFLOAT16", DType::BFloat16},
    {17, "DT_UINT16", {}},
    {18, "DT_COMPLEX128", DType::Complex128},
    {19, "DT_HALF", DType::Float16},
    {kResource, "DT_RESOURCE", {}},
    {kVariant, "DT_VARIANT", {}},
    {22, "DT_UINT32", {}},
    {23, "DT_UINT64", {}},
    {11, "DT_QINT8", {}},
    {12, "DT_QUINT8", {}},
    {13, "DT_QINT32", {}},
};

// The numbers of a tensor that are no bytes: the last one repeats.
struct Stored {
  int64_t type = 0;
  OpenShape shape = std::vector<int64_t>{};
  std::string_view content;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> integers;  // of every integer type, and the bits of half precision
  std::vector<std::string> texts;
};

Stored parse_stored(std::string_view message) {
  Stored s;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        s.type = r.integer();
        break;
      case 2:
        s.shape = parse_shape(r.bytes());
        break;
      case 4:
        s.content = r.bytes();
        break;
      case 5:
        r.append(s.floats);
        break;
      case 6:
        r.append(s.doubles);
        break;
      case 8:
        s.texts.push_back(r.text());
        break;
      case 7:
      case 10:
      case 11:
      case 13:
        r.append(s.integers);
        break;
      default:
        break;
    }
  return s;
}

// Few values can say a tensor of any size.
constexpr int64_t kMostRepeated = int64_t{1} << 24;

template <class To, class From>
Tensor repeated(const std::vector<From>& values, const std::vector<int64_t>& shape, DType dtype) {
  const int64_t count = elements_of(shape, "a constant");
  const auto given = static_cast<int64_t>(values.size());
  user_check(given <= count, ErrorKind::InvalidArgument,
             "the file is damaged: a constant has more values than elements.");
  user_check(count == given || count <= kMostRepeated, ErrorKind::Unsupported,
             "a constant has {} elements of the same value, more than the {} that Oar reads.",
             count, kMostRepeated);
  const Tensor made = Tensor::empty(Shape(Ints(shape)), dtype);
  auto* to = static_cast<To*>(made->data);
  std::transform(values.begin(), values.end(), to, [](From v) { return static_cast<To>(v); });
  std::fill(to + given, to + count, given == 0 ? To{} : static_cast<To>(values.back()));
  return made;
}

Tensor repeated_as(const Stored& s, const std::vector<int64_t>& shape, DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return repeated<float>(s.floats, shape, dtype);
    case DType::Float64:
      return repeated<double>(s.doubles, shape, dtype);
    case DType::Int64:
      return repeated<int64_t>(s.integers, shape, dtype);
    case DType::Int32:
      return repeated<int32_t>(s.integers, shape, dtype);
    case DType::Int16:
    case DType::Float16:
    case DType::BFloat16:  // these two as their bits
      return repeated<int16_t>(s.integers, shape, dtype);
    case DType::Int8:
    case DType::UInt8:
      return repeated<int8_t>(s.integers, shape, dtype);
    case DType::Bool: {
      std::vector<int64_t> truths = s.integers;
      for (int64_t& v : truths) v = v != 0;
      return repeated<int8_t>(truths, shape, dtype);
    }
    default:
      fail(ErrorKind::Unsupported, "a constant of dtype {} cannot be read.", name_of(dtype));
  }
}

}  // namespace

DType dtype_of(int64_t type, std::string_view what) {
  if (type > 100) type -= 100;  // a reference to one
  for (const TypeName& t : kTypes) {
    if (t.type != type) continue;
    user_check(t.dtype, ErrorKind::Unsupported, "{} is of type {}, which cannot be imported.", what,
               t.name);
    return *t.dtype;
  }
  fail(ErrorKind::Unsupported, "{} is of the type {}, which Oar does not know.", what, type);
}

int32_t type_named(std::string_view name) {
  for (const TypeName& t : kTypes)
    if (t.name == name) return t.type;
  return 0;
}

int64_t elements_of(const std::vector<int64_t>& shape, std::string_view what) {
  Count count = 1;
  for (const int64_t size : shape) {
    user_check(size >= 0, ErrorKind::InvalidArgument, "{} has an open size.", what);
    count = count * size;
  }
  return static_cast<int64_t>(count.size());
}

Tensor tensor_of_bytes(std::string_view bytes, const std::vector<int64_t>& shape, DType dtype,
                       std::string_view what) {
  const int64_t count = elements_of(shape, what);
  const size_t wanted = (Count(count) * static_cast<int64_t>(size_of(dtype))).size();
  user_check(wanted == bytes.size(), ErrorKind::InvalidArgument,
             "{} of shape {} and dtype {} has {} bytes of data instead of {}.", what,
             Shape(Ints(shape)).str(), name_of(dtype), bytes.size(), wanted);
  const Tensor made = Tensor::empty(Shape(Ints(shape)), dtype);
  if (!bytes.empty()) std::memcpy(made->data, bytes.data(), bytes.size());
  if (dtype == DType::Bool)  // any other byte would be no bool
    for (size_t i = 0; i < bytes.size(); ++i) static_cast<uint8_t*>(made->data)[i] = bytes[i] != 0;
  return made;
}

static Constant read(std::string_view message) {
  Stored s = parse_stored(message);
  user_check(s.shape, ErrorKind::InvalidArgument, "the file is damaged: a constant has no shape.");
  if (s.type == kString) {
    const int64_t count = elements_of(*s.shape, "a constant");
    user_check(count <= kMostRepeated, ErrorKind::Unsupported, "a constant has {} texts.", count);
    s.texts.resize(static_cast<size_t>(count), s.texts.empty() ? "" : s.texts.back());
    return {.texts = std::move(s.texts)};
  }
  const DType dtype = dtype_of(s.type, "a constant");
  if (!s.content.empty())
    return {.tensor = tensor_of_bytes(s.content, *s.shape, dtype, "a constant")};
  return {.tensor = repeated_as(s, *s.shape, dtype)};
}

Constant parse_tensor(std::string_view message) {
  try {
    return read(message);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Unsupported) throw;
    return {.problem = error.text()};
  }
}

OpenShape parse_shape(std::string_view message) {
  std::vector<int64_t> shape;
  for (ProtoReader r(message); r.next();) {
    if (r.field() == 3 && r.integer() != 0) return std::nullopt;
    if (r.field() != 2) continue;
    int64_t size = 0;
    for (ProtoReader dim(r.bytes()); dim.next();)
      if (dim.field() == 1) size = dim.integer();
    user_check(size >= -1 && shape.size() < 32, ErrorKind::InvalidArgument,
               "the file is damaged: a shape has the size {}, or too many axes.", size);
    shape.push_back(size);
  }
  return shape;
}

}  // namespace oar::tensorflow
