#include "oar/formats/npy.h"

#include <charconv>
#include <cstring>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  DType dtype;
  const char* text;
};
constexpr Descr kDescrs[] = {
    {DType::Bool, "|b1"},    {DType::UInt8, "|u1"},  {DType::Int8, "|i1"},
    {DType::Int16, "<i2"},   {DType::Int32, "<i4"},  {DType::Int64, "<i8"},
    {DType::UInt32, "<u4"},  {DType::UInt64, "<u8"}, {DType::Float16, "<f2"},
    {DType::Float32, "<f4"}, {DType::Float64, "<f8"}};

[[noreturn]] void damaged(const char* what) {
  fail(ErrorKind::InvalidArgument, "the file is no .npy file that can be read: {}.", what);
}

// The value of a key of the header, a Python dictionary: 'descr': '<f4', 'shape': (2, 3), …
std::string_view value_of(std::string_view header, std::string_view key, char end) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) damaged("its header lacks a key");
  std::string_view rest = header.substr(at + key.size());
  const size_t stop = rest.find(end);
  if (stop == std::string_view::npos) damaged("its header ends too early");
  return trim(rest.substr(0, stop));
}

DType dtype_of(std::string_view descr) {
  for (const Descr& d : kDescrs)
    if (descr == std::string("'") + d.text + "'") return d.dtype;
  fail(
      ErrorKind::InvalidArgument,
      "the array has elements of type {}.\nhint: Save a C-ordered array of bools, integers or floats.",
      descr);
}

Shape shape_of(std::string_view text) {
  Shape shape;
  if (text.empty() || text[0] != '(') damaged("its shape is no tuple");
  for (const std::string_view word : split(text.substr(1), ',')) {
    const std::string_view digits = trim(word);
    if (digits.empty()) continue;
    int64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (error != std::errc() || end != digits.data() + digits.size() || size < 0)
      damaged("its shape has a size that is no number");
    shape.push_back(size);
  }
  return shape;
}

}  // namespace

Tensor parse_npy(std::string_view file) {
  if (file.size() < 10 || file.substr(0, 6) != kMagic) damaged("it begins with other bytes");
  const bool wide = file[6] != 1;  // the length of the header has four bytes
  const size_t start = wide ? 12 : 10;
  if (file.size() < start) damaged("it ends too early");
  uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, wide ? 4 : 2);
  if (length > file.size() - start) damaged("its header ends too early");
  const std::string_view header = file.substr(start, length);
  const DType dtype = dtype_of(value_of(header, "'descr':", ','));
  if (value_of(header, "'fortran_order':", ',') != "False") damaged("it is not in C order");
  const Shape shape = shape_of(value_of(header, "'shape':", ')'));
  const std::string_view data = file.substr(start + length);
  bytes_of(shape, dtype);  // an error where it is beyond all memory
  if (byte_count(shape.numel().value(), dtype) != static_cast<int64_t>(data.size()))
    damaged("its data has another size than its shape");
  Tensor made = Tensor::empty(shape, dtype);
  if (!data.empty()) std::memcpy(made->data, data.data(), data.size());
  return made;
}

Tensor load_npy(const std::string& path) { return parse_npy(read_file(path)); }

std::string npy_bytes(const Tensor& tensor) {
  const char* descr = nullptr;
  for (const Descr& d : kDescrs)
    if (d.dtype == tensor.dtype()) descr = d.text;
  user_check(descr != nullptr, ErrorKind::InvalidType, "{} cannot be written as .npy.",
             tensor.describe());
  user_check(tensor.is_contiguous(), ErrorKind::InvalidArgument,
             "only contiguous tensors are written as .npy.");
  std::string sizes;
  for (Dim d : tensor.dims()) sizes += d.str() + ",";
  std::string header =
      format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, sizes);
  header.append(63 - (header.size() + 10) % 64, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string file(kMagic);
  file += {'\1', '\0', static_cast<char>(length & 255), static_cast<char>(length >> 8)};
  file += header;
  file.append(static_cast<const char*>(tensor->data),
              static_cast<size_t>(byte_count(tensor->numel, tensor.dtype())));
  return file;
}

void save_npy(const std::string& path, const Tensor& tensor) {
  write_file_atomic(path, npy_bytes(tensor));
}

}  // namespace oar
