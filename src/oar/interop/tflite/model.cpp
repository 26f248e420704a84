#include "oar/interop/tflite/model.h"

#include <cstring>

#include "oar/base/error.h"
#include "oar/tensor/byte_count.h"

namespace oar::tflite {
namespace {

// By number.
constexpr std::string_view kOpNames[] = {
    "ADD",
    "AVERAGE_POOL_2D",
    "CONCATENATION",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE",
    "DEQUANTIZE",
    "EMBEDDING_LOOKUP",
    "FLOOR",
    "FULLY_CONNECTED",
    "HASHTABLE_LOOKUP",
    "L2_NORMALIZATION",
    "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION",
    "LOGISTIC",
    "LSH_PROJECTION",
    "LSTM",
    "MAX_POOL_2D",
    "MUL",
    "RELU",
    "RELU_N1_TO_1",
    "RELU6",
    "RESHAPE",
    "RESIZE_BILINEAR",
    "RNN",
    "SOFTMAX",
    "SPACE_TO_DEPTH",
    "SVDF",
    "TANH",
    "CONCAT_EMBEDDINGS",
    "SKIP_GRAM",
    "CALL",
    "CUSTOM",
    "EMBEDDING_LOOKUP_SPARSE",
    "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "GATHER",
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    "TRANSPOSE",
    "MEAN",
    "SUB",
    "DIV",
    "SQUEEZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "STRIDED_SLICE",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "EXP",
    "TOPK_V2",
    "SPLIT",
    "LOG_SOFTMAX",
    "DELEGATE",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "CAST",
    "PRELU",
    "MAXIMUM",
    "ARG_MAX",
    "MINIMUM",
    "LESS",
    "NEG",
    "PADV2",
    "GREATER",
    "GREATER_EQUAL",
    "LESS_EQUAL",
    "SELECT",
    "SLICE",
    "SIN",
    "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE",
    "TILE",
    "EXPAND_DIMS",
    "EQUAL",
    "NOT_EQUAL",
    "LOG",
    "SUM",
    "SQRT",
    "RSQRT",
    "SHAPE",
    "POW",
    "ARG_MIN",
    "FAKE_QUANT",
    "REDUCE_PROD",
    "REDUCE_MAX",
    "PACK",
    "LOGICAL_OR",
    "ONE_HOT",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "UNPACK",
    "REDUCE_MIN",
    "FLOOR_DIV",
    "REDUCE_ANY",
    "SQUARE",
    "ZEROS_LIKE",
    "FILL",
    "FLOOR_MOD",
    "RANGE",
    "RESIZE_NEAREST_NEIGHBOR",
    "LEAKY_RELU",
    "SQUARED_DIFFERENCE",
    "MIRROR_PAD",
    "ABS",
    "SPLIT_V",
    "UNIQUE",
    "CEIL",
    "REVERSE_V2",
    "ADD_N",
    "GATHER_ND",
    "COS",
    "WHERE",
    "RANK",
    "ELU",
    "REVERSE_SEQUENCE",
    "MATRIX_DIAG",
    "QUANTIZE",
    "MATRIX_SET_DIAG",
    "ROUND",
    "HARD_SWISH",
    "IF",
    "WHILE",
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
    "SCATTER_ND",
    "SELECT_V2",
    "DENSIFY",
    "SEGMENT_SUM",
    "BATCH_MATMUL",
    "PLACEHOLDER_FOR_GREATER_OP_CODES",
    "CUMSUM",
    "CALL_ONCE",
    "BROADCAST_TO",
    "RFFT2D",
    "CONV_3D",
    "IMAG",
    "REAL",
    "COMPLEX_ABS",
    "HASHTABLE",
    "HASHTABLE_FIND",
    "HASHTABLE_IMPORT",
    "HASHTABLE_SIZE",
    "REDUCE_ALL",
    "CONV_3D_TRANSPOSE",
    "VAR_HANDLE",
    "READ_VARIABLE",
    "ASSIGN_VARIABLE",
    "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL",
    "BUCKETIZE",
    "RANDOM_UNIFORM",
    "MULTINOMIAL",
    "GELU",
    "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1",
    "UNSORTED_SEGMENT_PROD",
    "UNSORTED_SEGMENT_MAX",
    "UNSORTED_SEGMENT_SUM",
    "ATAN2",
    "UNSORTED_SEGMENT_MIN",
    "SIGN",
    "BITCAST",
    "BITWISE_XOR",
    "RIGHT_SHIFT",
};
constexpr int32_t kCustom = 32;
constexpr std::string_view kTypeNames[] = {
    "float32", "float16",   "int32",  "uint8",   "int64",      "string", "bool",
    "int16",   "complex64", "int8",   "float64", "complex128", "uint64", "resource",
    "variant", "uint32",    "uint16", "int4",    "bfloat16"};

std::string op_name(int32_t code) {
  const bool known = code >= 0 && static_cast<size_t>(code) < std::size(kOpNames);
  return known ? std::string(kOpNames[code]) : format("operator {}", code);
}

struct OpCode {
  int32_t code = 0;
  std::string name;
};

// Codes above 127 are in a second field.
OpCode parse_code(const FlatTable& table) {
  const int32_t code = std::max<int32_t>(table.number<int8_t>(0, 0), table.number<int32_t>(3, 0));
  return {code,
          code == kCustom ? "custom " + std::string(table.bytes(1).substr(0, 100)) : op_name(code)};
}

Quantisation parse_quantisation(const FlatTable& table) {
  Quantisation q{table.numbers<float>(2), table.numbers<int64_t>(3),
                 static_cast<size_t>(table.number<int32_t>(6, 0))};
  if (q.scales.size() == 1) q.axis = 0;
  q.zeros.resize(q.scales.size(), 0);
  return q;
}

TensorInfo parse_tensor(const FlatTable& table, const std::vector<std::string_view>& buffers) {
  TensorInfo info;
  info.name = table.bytes(3).substr(0, 200);
  info.type = table.number<int8_t>(1, 0);
  const auto sizes = table.numbers<int32_t>(0), signature = table.numbers<int32_t>(7);
  const auto& shape = signature.size() == sizes.size() && !signature.empty() ? signature : sizes;
  user_check(shape.size() <= 16, ErrorKind::InvalidArgument, "the tensor '{}' has {} axes.",
             info.name, shape.size());
  info.shape.assign(shape.begin(), shape.end());
  for (int64_t& size : info.shape)
    user_check(size >= -1, ErrorKind::InvalidArgument, "the tensor '{}' has a negative size.",
               info.name);
  const auto buffer = table.number<uint32_t>(2, 0);
  user_check(buffer < buffers.size() || buffer == 0, ErrorKind::InvalidArgument,
             "the tensor '{}' has a buffer that is not there.", info.name);
  if (buffer < buffers.size()) info.data = buffers[buffer];
  info.quantisation = parse_quantisation(table.table(4));
  info.sparse = table.has(6);
  return info;
}

void check_places(const std::vector<int32_t>& list, size_t count) {
  for (const int32_t place : list)
    user_check(place >= -1 && place < static_cast<int64_t>(count), ErrorKind::InvalidArgument,
               "the file is damaged: it refers to the tensor {} of {}.", place, count);
}

// How many elements along and after an axis, to find an element's index along it.
struct Runs {
  int64_t size = 1, inner = 1;
};
Runs runs_of(const TensorInfo& info, const Shape& shape) {
  const Quantisation& q = info.quantisation;
  if (q.scales.size() == 1) return {};
  user_check(
      q.axis < shape.size() && shape[q.axis].value() == static_cast<int64_t>(q.scales.size()),
      ErrorKind::InvalidArgument, "the scales of the tensor '{}' do not fit its shape.", info.name);
  Runs runs{shape[q.axis].value(), 1};
  for (size_t i = q.axis + 1; i < shape.size(); ++i) runs.inner *= shape[i].value();
  return runs;
}

template <class T>
Tensor dequantised(const TensorInfo& info, const Shape& shape) {
  const Quantisation& q = info.quantisation;
  const Runs runs = runs_of(info, shape);
  const Tensor made = Tensor::empty(shape, DType::Float32);
  auto* out = static_cast<float*>(made->data);
  for (int64_t i = 0; i < made.numel().value(); ++i) {
    T stored;
    std::memcpy(&stored, info.data.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    const auto part = static_cast<size_t>(i / runs.inner % runs.size);
    out[i] = static_cast<float>(static_cast<double>(static_cast<int64_t>(stored) - q.zeros[part]) *
                                static_cast<double>(q.scales[part]));
  }
  return made;
}

}  // namespace

DType TensorInfo::dtype() const {
  switch (type) {
    case 0:
      return DType::Float32;
    case 1:
      return DType::Float16;
    case 2:
      return DType::Int32;
    case 3:
      return DType::UInt8;
    case 4:
      return DType::Int64;
    case 6:
      return DType::Bool;
    case 7:
      return DType::Int16;
    case 9:
      return DType::Int8;
    case 10:
      return DType::Float64;
    default: {
      const bool named = type >= 0 && static_cast<size_t>(type) < std::size(kTypeNames);
      fail(ErrorKind::Unsupported, "the tensor '{}' is of type {}, which cannot be imported.", name,
           named ? kTypeNames[type] : "unknown");
    }
  }
}

bool TensorInfo::quantised() const {
  return quantisation.given() && (type == 2 || type == 3 || type == 7 || type == 9);
}

std::string Op::str() const { return name; }

ModelFile::ModelFile(std::string content) : bytes(std::move(content)), file(bytes, "TFL3") {
  const FlatTable model = file.root();
  std::vector<OpCode> codes;
  for (const FlatTable& table : model.tables(1)) codes.push_back(parse_code(table));
  std::vector<std::string_view> buffers;
  for (const FlatTable& table : model.tables(4)) {
    buffers.push_back(table.bytes(0));
    if (const auto at = table.number<uint64_t>(1, 0), size = table.number<uint64_t>(2, 0); at > 1) {
      file.check(at, size);  // data of large files lies after the tables
      buffers.back() = file.bytes().substr(at, size);
    }
  }
  const std::vector<FlatTable> graphs = model.tables(2);
  user_check(!graphs.empty(), ErrorKind::InvalidArgument, "the model has no graph.");
  const FlatTable& graph = graphs[0];
  for (const FlatTable& table : graph.tables(0)) tensors.push_back(parse_tensor(table, buffers));
  inputs = graph.numbers<int32_t>(1);
  outputs = graph.numbers<int32_t>(2);
  check_places(inputs, tensors.size());
  check_places(outputs, tensors.size());
  for (const FlatTable& table : graph.tables(3)) {
    const auto index = table.number<uint32_t>(0, 0);
    user_check(index < codes.size(), ErrorKind::InvalidArgument,
               "the file is damaged: an operator has no code.");
    ops.push_back({codes[index].code, codes[index].name, table.numbers<int32_t>(1),
                   table.numbers<int32_t>(2), table.table(4)});
    check_places(ops.back().inputs, tensors.size());
    check_places(ops.back().outputs, tensors.size());
  }
}

Tensor constant_of(const TensorInfo& info) {
  user_check(!info.sparse, ErrorKind::Unsupported, "the tensor '{}' is sparse.", info.name);
  const DType dtype = info.dtype();
  Shape shape;
  Count count = 1;
  for (const int64_t size : info.shape) {
    user_check(size >= 0, ErrorKind::InvalidArgument, "the constant '{}' has an open size.",
               info.name);
    shape.push_back(size);
    count = count * size;
  }
  user_check((count * static_cast<int64_t>(size_of(dtype))).size() == info.data.size(),
             ErrorKind::InvalidArgument,
             "the constant '{}' of shape {} and dtype {} has {} bytes of data.", info.name,
             shape.str(), name_of(dtype), info.data.size());
  if (info.quantised()) {
    if (dtype == DType::Int8) return dequantised<int8_t>(info, shape);
    if (dtype == DType::UInt8) return dequantised<uint8_t>(info, shape);
    if (dtype == DType::Int16) return dequantised<int16_t>(info, shape);
    return dequantised<int32_t>(info, shape);
  }
  const Tensor made = Tensor::empty(shape, dtype);
  if (!info.data.empty()) std::memcpy(made->data, info.data.data(), info.data.size());
  if (dtype == DType::Bool)  // any other byte would be no bool
    for (size_t i = 0; i < info.data.size(); ++i)
      static_cast<uint8_t*>(made->data)[i] = info.data[i] != 0;
  return made;
}

}  // namespace oar::tflite
