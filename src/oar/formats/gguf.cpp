#include "oar/formats/gguf.h"

#include <cstring>

#include "oar/base/error.h"
#include "oar/base/half_bits.h"
#include "oar/formats/json_reader.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

constexpr int64_t kMostGgufValues = int64_t{1} << 24;

// ---- blocks ------------------------------------------------------------------------------------

float half_at(const uint8_t* at) { return half_value(static_cast<uint16_t>(at[0] | (at[1] << 8))); }

// Four bits of 32 numbers: the lower ones of 16 bytes, then the upper ones; `high` has a fifth bit of each.
void unpack_nibbles(const uint8_t* bytes, uint32_t high, float scale, float shift, float* out) {
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t low = (bytes[i] & 15U) | (((high >> i) & 1U) << 4);
    const uint32_t upper = (bytes[i] >> 4U) | (((high >> (i + 16)) & 1U) << 4);
    out[i] = static_cast<float>(low) * scale + shift;
    out[i + 16] = static_cast<float>(upper) * scale + shift;
  }
}

uint32_t word_at(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, 4);
  return word;
}

void unpack_q4_0(const uint8_t* b, float* out) {
  const float d = half_at(b);
  unpack_nibbles(b + 2, 0, d, -8 * d, out);
}
void unpack_q4_1(const uint8_t* b, float* out) {
  unpack_nibbles(b + 4, 0, half_at(b), half_at(b + 2), out);
}
void unpack_q5_0(const uint8_t* b, float* out) {
  const float d = half_at(b);
  unpack_nibbles(b + 6, word_at(b + 2), d, -16 * d, out);
}
void unpack_q5_1(const uint8_t* b, float* out) {
  unpack_nibbles(b + 8, word_at(b + 4), half_at(b), half_at(b + 2), out);
}
void unpack_q8_0(const uint8_t* b, float* out) {
  const float d = half_at(b);
  for (size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(static_cast<int8_t>(b[2 + i])) * d;
}

// Scales and shifts of eight runs of 32 numbers, six bits each, in twelve bytes.
struct RunScales {
  float scale, shift;
};
RunScales run_scales(const uint8_t* q, size_t run, float d, float least) {
  uint32_t scale, shift;
  if (run < 4) {
    scale = q[run] & 63U;
    shift = q[run + 4] & 63U;
  } else {
    scale = (q[run + 4] & 15U) | ((q[run - 4] >> 6U) << 4U);
    shift = (q[run + 4] >> 4U) | ((q[run] >> 6U) << 4U);
  }
  return {d * static_cast<float>(scale), least * static_cast<float>(shift)};
}

// `high`: 32 bytes with a fifth bit of each of the eight runs, or null.
void unpack_k(const uint8_t* b, const uint8_t* high, const uint8_t* low, float* out) {
  const float d = half_at(b), least = half_at(b + 2);
  for (size_t run = 0; run < 8; ++run) {
    const RunScales s = run_scales(b + 4, run, d, least);
    for (size_t i = 0; i < 32; ++i) {
      const uint32_t byte = low[run / 2 * 32 + i];
      const uint32_t fifth = high ? ((high[i] >> run) & 1U) << 4 : 0;
      const uint32_t number = (run % 2 == 0 ? byte & 15U : byte >> 4U) | fifth;
      out[32 * run + i] = s.scale * static_cast<float>(number) - s.shift;
    }
  }
}
void unpack_q4_k(const uint8_t* b, float* out) { unpack_k(b, nullptr, b + 16, out); }
void unpack_q5_k(const uint8_t* b, float* out) { unpack_k(b, b + 16, b + 48, out); }

// Four bits in 128 bytes, two bits in 64, a scale for each 16 numbers, and one for all.
void unpack_q6_k(const uint8_t* b, float* out) {
  const float d = half_at(b + 208);
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128, quarter = i % 128 / 32, place = i % 32;
    const uint32_t byte = b[64 * half + 32 * (quarter % 2) + place];
    const uint32_t low = quarter < 2 ? byte & 15U : byte >> 4U;
    const uint32_t high = (b[128 + 32 * half + place] >> (2 * quarter)) & 3U;
    const auto scale = static_cast<int8_t>(b[192 + i / 16]);
    out[i] = d * static_cast<float>(scale) *
             static_cast<float>(static_cast<int32_t>(low | (high << 4)) - 32);
  }
}

// ---- types -------------------------------------------------------------------------------------

struct GgufType {
  uint32_t number;
  const char* name;
  int64_t block, bytes;  // elements and bytes of a block; 0 where the reader cannot unpack it
  DType dtype = DType::Float32;
  void (*unpack)(const uint8_t*, float*) = nullptr;
};
constexpr GgufType kGgufTypes[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2, DType::Float16},
    {2, "Q4_0", 32, 18, DType::Float32, unpack_q4_0},
    {3, "Q4_1", 32, 20, DType::Float32, unpack_q4_1},
    {6, "Q5_0", 32, 22, DType::Float32, unpack_q5_0},
    {7, "Q5_1", 32, 24, DType::Float32, unpack_q5_1},
    {8, "Q8_0", 32, 34, DType::Float32, unpack_q8_0},
    {10, "Q2_K", 0, 0},
    {11, "Q3_K", 0, 0},
    {12, "Q4_K", 256, 144, DType::Float32, unpack_q4_k},
    {13, "Q5_K", 256, 176, DType::Float32, unpack_q5_k},
    {14, "Q6_K", 256, 210, DType::Float32, unpack_q6_k},
    {15, "Q8_K", 0, 0},
    {24, "I8", 1, 1, DType::Int8},
    {25, "I16", 1, 2, DType::Int16},
    {26, "I32", 1, 4, DType::Int32},
    {27, "I64", 1, 8, DType::Int64},
    {28, "F64", 1, 8, DType::Float64},
    {30, "BF16", 1, 2, DType::BFloat16},
};

const GgufType* find_type(uint32_t number) {
  for (const GgufType& type : kGgufTypes)
    if (type.number == number) return &type;
  return nullptr;
}

// ---- file --------------------------------------------------------------------------------------

class GgufReader {
 public:
  explicit GgufReader(std::string_view file) : file_(file) {}

  GgufFile whole() {
    user_check(file_.substr(0, 4) == "GGUF", ErrorKind::InvalidArgument,
               "the file is no GGUF file: it does not begin with 'GGUF'.");
    at_ = 4;
    const auto version = number<uint32_t>();
    user_check(
        version == 2 || version == 3, ErrorKind::Unsupported,
        "the file has version {} of GGUF; versions 2 and 3 of little-endian machines are read.",
        version);
    const uint64_t tensors = counted(8), entries = counted(8);
    GgufFile made;
    StateTree::Dict metadata;
    for (uint64_t i = 0; i < entries; ++i) {
      std::string key = text();
      metadata.emplace_back(std::move(key), value(number<uint32_t>(), 0));
    }
    made.metadata = StateTree(std::move(metadata));
    std::vector<uint64_t> offsets;
    for (uint64_t i = 0; i < tensors; ++i) made.tensors.push_back(tensor_info(offsets));
    place_data(made, offsets);
    return made;
  }

 private:
  [[noreturn]] void damaged(const char* what) const {
    fail(ErrorKind::InvalidArgument,
         "the GGUF file is damaged at byte {} of {}: {}.\nhint: Copy or download it again.", at_,
         file_.size(), what);
  }
  std::string_view next(uint64_t count) {
    if (count > file_.size() - at_) damaged("it ends too early");
    const std::string_view taken = file_.substr(at_, count);
    at_ += count;
    return taken;
  }
  template <class T>
  T number() {
    T value;
    const std::string_view bytes = next(sizeof(T));
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  // A count of things that take this many bytes at least.
  uint64_t counted(uint64_t least) {
    const auto count = number<uint64_t>();
    if (count > (file_.size() - at_) / least) damaged("it has more entries than bytes");
    values_ += static_cast<int64_t>(count);
    if (values_ > kMostGgufValues) damaged("it has too many entries");
    return count;
  }
  std::string text() {
    const std::string_view bytes = next(number<uint64_t>());
    if (is_utf8(bytes)) return std::string(bytes);
    std::string made;  // tokens may be parts of letters
    for (const char c : bytes) {
      const auto b = static_cast<unsigned char>(c);
      if (b < 0x80)
        made += c;
      else
        made += format("\\x{:02x}", b);
    }
    return made;
  }

  StateTree value(uint32_t type, int depth) {
    switch (type) {
      case 0:
        return StateTree(int64_t{number<uint8_t>()});
      case 1:
        return StateTree(int64_t{number<int8_t>()});
      case 2:
        return StateTree(int64_t{number<uint16_t>()});
      case 3:
        return StateTree(int64_t{number<int16_t>()});
      case 4:
        return StateTree(int64_t{number<uint32_t>()});
      case 5:
        return StateTree(int64_t{number<int32_t>()});
      case 6:
        return StateTree(double{number<float>()});
      case 7:
        return StateTree(number<uint8_t>() != 0);
      case 8:
        return StateTree(text());
      case 9:
        return list(depth);
      case 10:
        return StateTree(number<uint64_t>());
      case 11:
        return StateTree(number<int64_t>());
      case 12:
        return StateTree(number<double>());
      default:
        damaged("a value has an unknown type");
    }
  }
  StateTree list(int depth) {
    if (depth > 4) damaged("lists are nested too deeply");
    const auto type = number<uint32_t>();
    const uint64_t count = counted(type == 8 ? 8 : type == 9 ? 12 : 1);
    StateTree::List list;
    for (uint64_t i = 0; i < count; ++i) list.push_back(value(type, depth + 1));
    return StateTree(std::move(list));
  }

  GgufTensor tensor_info(std::vector<uint64_t>& offsets) {
    GgufTensor tensor;
    tensor.name = text();
    const auto axes = number<uint32_t>();
    if (axes > 8) damaged("a tensor has too many axes");
    for (uint32_t i = 0; i < axes; ++i) {
      const auto size = number<uint64_t>();
      if (size > uint64_t{1} << 40) damaged("a tensor is too large");
      tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
    }
    tensor.type = number<uint32_t>();
    const GgufType* type = find_type(tensor.type);
    tensor.type_name = type ? type->name : format("type {}", tensor.type);
    offsets.push_back(number<uint64_t>());
    return tensor;
  }

  void place_data(GgufFile& made, const std::vector<uint64_t>& offsets) {
    int64_t alignment = 32;
    if (const StateTree* given = made.metadata.find("general.alignment"))
      alignment = given->integer();
    if (alignment < 1 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0)
      damaged("its alignment is no power of two");
    const auto begin = Count(static_cast<int64_t>(at_)).aligned(alignment).size();
    for (size_t i = 0; i < offsets.size(); ++i) {
      GgufTensor& tensor = made.tensors[i];
      const GgufType* type = find_type(tensor.type);
      if (!type || type->block == 0) continue;
      Count count = 1;
      for (const int64_t size : tensor.shape) count = count * size;
      const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
      if (row % type->block != 0) damaged("a row of a tensor is no multiple of its blocks");
      const Count bytes = Count(count.value() / type->block) * type->bytes;
      if (begin > file_.size() || offsets[i] > file_.size() - begin ||
          bytes.size() > file_.size() - begin - offsets[i])
        damaged("a tensor lies beyond its end");
      tensor.data = file_.substr(begin + offsets[i], bytes.size());
    }
  }

  std::string_view file_;
  size_t at_ = 0;
  int64_t values_ = 0;
};

}  // namespace

GgufFile parse_gguf(std::string_view file) { return GgufReader(file).whole(); }

Tensor read_gguf_tensor(const GgufTensor& tensor) {
  const GgufType* type = find_type(tensor.type);
  user_check(
      type && type->block > 0, ErrorKind::Unsupported,
      "the tensor '{}' is of type {}, which cannot be read.\nhint: Types that can are F32, F16, "
      "BF16, F64, I8 to I64, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K.",
      tensor.name, tensor.type_name);
  Shape shape;
  Count count = 1;
  for (const int64_t size : tensor.shape) {
    shape.push_back(size);
    count = count * size;
  }
  user_check(count.value() % type->block == 0 &&
                 (Count(count.value() / type->block) * type->bytes).size() == tensor.data.size(),
             ErrorKind::InvalidArgument, "the tensor '{}' of shape {} has {} bytes of data.",
             tensor.name, shape.str(), tensor.data.size());
  bytes_of(shape, type->dtype);  // an error where it is beyond all memory
  const Tensor made = Tensor::empty(shape, type->dtype);
  const auto* from = reinterpret_cast<const uint8_t*>(tensor.data.data());
  if (!type->unpack) {
    if (!tensor.data.empty()) std::memcpy(made->data, from, tensor.data.size());
    return made;
  }
  auto* to = static_cast<float*>(made->data);
  const int64_t blocks = static_cast<int64_t>(tensor.data.size()) / type->bytes;
  for (int64_t i = 0; i < blocks; ++i) type->unpack(from + i * type->bytes, to + i * type->block);
  return made;
}

}  // namespace oar
