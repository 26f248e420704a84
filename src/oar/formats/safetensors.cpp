#include "oar/formats/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/scope_guard.h"
#include "oar/device/device.h"
#include "oar/formats/json_reader.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kSizeBytes = sizeof(uint64_t);
constexpr size_t kMaxHeader = size_t{100} << 20;  // the reference implementation's limit
constexpr int kMaxRank = 64;
constexpr std::string_view kMetadataKey = "__metadata__";

// The dtypes of the format; Oar has no unsigned one of 16 bits.
struct FileType {
  std::string_view name;
  int64_t bits;  // of one element
  std::optional<DType> dtype;
};
constexpr FileType kFileTypes[] = {
    {"BOOL", 8, DType::Bool},
    {"U8", 8, DType::UInt8},
    {"I8", 8, DType::Int8},
    {"U16", 16, std::nullopt},
    {"I16", 16, DType::Int16},
    {"U32", 32, DType::UInt32},
    {"I32", 32, DType::Int32},
    {"U64", 64, DType::UInt64},
    {"I64", 64, DType::Int64},
    {"F16", 16, DType::Float16},
    {"BF16", 16, DType::BFloat16},
    {"F32", 32, DType::Float32},
    {"F64", 64, DType::Float64},
    {"C64", 64, DType::Complex64},
    {"C128", 128, DType::Complex128},
    {"F8_E4M3", 8, DType::Float8E4M3FN},
    {"F8_E5M2", 8, DType::Float8E5M2},
    {"I4", 4, DType::Int4},
    {"U4", 4, DType::UInt4},
    {"F4", 4, DType::Float4E2M1FN},
};

std::string_view file_name_of(DType dtype) {
  for (const FileType& type : kFileTypes)
    if (type.dtype == dtype) return type.name;
  fail(ErrorKind::Unsupported, "safetensors cannot hold {}.", name_of(dtype));
}

const FileType& type_in_file(const std::string& name, const std::string& tensor) {
  for (const FileType& type : kFileTypes)
    if (type.name == name) return type;
  fail(ErrorKind::InvalidArgument, "tensor '{}' has an unknown dtype '{}'.", tensor, name);
}

// ---- Reading -----------------------------------------------------------------------------------

SafetensorsIndex::Entry read_entry(JsonReader& json, const std::string& name) {
  SafetensorsIndex::Entry entry{.name = name};
  bool has_dtype = false, has_shape = false;
  std::vector<int64_t> offsets;
  json.object([&](const std::string& key) {
    if (key == "dtype") {
      const FileType& type = type_in_file(json.string(), entry.name);
      entry.stored = type.name;
      entry.dtype = type.dtype;
      entry.bits = type.bits;
      has_dtype = true;
    } else if (key == "shape") {
      has_shape = true;
      json.array([&] {
        entry.shape.push_back(json.unsigned_integer());
        user_check(entry.shape.rank() <= kMaxRank, ErrorKind::InvalidArgument,
                   "tensor '{}' has more than {} axes.", entry.name, kMaxRank);
      });
    } else if (key == "data_offsets") {
      json.array([&] {
        offsets.push_back(json.unsigned_integer());
        if (offsets.size() > 2) json.error("two offsets");
      });
    } else {
      json.skip();
    }
  });
  user_check(has_dtype && has_shape && offsets.size() == 2, ErrorKind::InvalidArgument,
             "tensor '{}' lacks its dtype, shape or data_offsets.", entry.name);
  entry.begin = static_cast<size_t>(offsets[0]);
  entry.end = static_cast<size_t>(offsets[1]);
  return entry;
}

void check_entry(const SafetensorsIndex::Entry& entry, size_t room) {
  // Sizes of 0 count as 1 here: strides are products of sizes too, and must not overflow either.
  int64_t elements = 1, bits = 0;
  bool fits = true, empty = false;
  for (const Dim d : entry.shape) {
    empty = empty || d == Dim(0);
    fits = fits && !__builtin_mul_overflow(elements, std::max<int64_t>(d.word(), 1), &elements);
  }
  fits = fits && !__builtin_mul_overflow(elements, entry.bits, &bits);
  user_check(fits, ErrorKind::InvalidArgument, "tensor '{}' of shape {} is larger than any memory.",
             entry.name, entry.shape.str());
  const int64_t bytes = empty ? 0 : bits / 8 + (bits % 8 != 0);  // packed elements fill whole bytes
  user_check(
      entry.begin <= entry.end && entry.end <= room &&
          entry.end - entry.begin == static_cast<size_t>(bytes),
      ErrorKind::InvalidArgument,
      "tensor '{}' ({}{}) needs {} bytes, but is at {} to {} of {} bytes of data.\nhint: The "
      "file is truncated or damaged; fetch it again.",
      entry.name, entry.stored, entry.shape.str(), bytes, entry.begin, entry.end, room);
}

void check_cover(std::vector<SafetensorsIndex::Entry>& entries, size_t room) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  size_t position = 0;
  for (const auto& entry : entries) {
    user_check(entry.begin == position, ErrorKind::InvalidArgument, "tensor '{}' {}.", entry.name,
               entry.begin < position ? "overlaps the one before it" : "leaves a gap before it");
    position = entry.end;
  }
  user_check(position == room, ErrorKind::InvalidArgument,
             "the tensors cover {} bytes, but there are {} bytes of data.", position, room);
}

// A whole file in memory, copy on write.
class Mapping {
 public:
  explicit Mapping(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd == -1) fail_on("open", path);
    const ScopeGuard close_it([&] { ::close(fd); });
    struct stat info{};
    if (::fstat(fd, &info) == -1) fail_on("read", path);
    user_check(S_ISREG(info.st_mode), ErrorKind::InvalidArgument, "\"{}\" is not a file.", path);
    size_ = static_cast<size_t>(info.st_size);
    if (size_ == 0) return;
    void* data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
    if (data == MAP_FAILED) fail_on("map", path);
    data_ = static_cast<char*>(data);
  }
  ~Mapping() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* data() const { return data_; }
  std::string_view content() const { return {data_, size_}; }

 private:
  [[noreturn]] static void fail_on(const char* what, const std::string& path) {
    const int code = errno;
    fail(code == ENOENT ? ErrorKind::NotFound : ErrorKind::Runtime, "Cannot {} \"{}\": {}.", what,
         path, std::generic_category().message(code));
  }
  char* data_ = nullptr;
  size_t size_ = 0;
};

// Each tensor has its own storage, so that a write does not change the version of the others.
StoragePtr storage_in(const std::shared_ptr<Mapping>& mapping, size_t begin, size_t bytes) {
  auto* owner = new std::shared_ptr<Mapping>(mapping);
  const auto let_go = [](void* context, void*, size_t) {
    delete static_cast<std::shared_ptr<Mapping>*>(context);
  };
  return Storage::adopt(mapping->data() + begin, bytes, Device{}, let_go, owner);
}

Tensor tensor_in(const std::shared_ptr<Mapping>& mapping, const SafetensorsIndex::Entry& entry) {
  user_check(
      entry.dtype.has_value(), ErrorKind::Unsupported,
      "tensor '{}' has dtype '{}', which Oar does not have.\nhint: Convert it where the file "
      "was written; U16, U32 and U64 fit into I32 and I64 in most cases.",
      entry.name, entry.stored);
  const char* data = mapping->data() + entry.begin;
  const size_t bytes = entry.end - entry.begin;
  if (entry.dtype == DType::Bool)
    user_check(std::all_of(data, data + bytes, [](char c) { return c == 0 || c == 1; }),
               ErrorKind::InvalidArgument, "tensor '{}' is BOOL but has bytes other than 0 and 1.",
               entry.name);
  // The format does not promise alignment. Complex numbers are aligned as their parts.
  const auto alignment = static_cast<size_t>(byte_count(1, real_type_of(*entry.dtype)));
  if (bytes == 0 || reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    Tensor copy = Tensor::empty(entry.shape, *entry.dtype);
    if (bytes > 0) std::memcpy(copy->data, data, bytes);
    return copy;
  }
  const StoragePtr storage = storage_in(mapping, entry.begin, bytes);
  return Tensor::view_of(storage, entry.shape, contiguous_strides(entry.shape), storage->data(),
                         *entry.dtype);
}

// ---- Writing -----------------------------------------------------------------------------------

// The same values, contiguous and on the CPU.
Tensor ready_to_write(const std::string& name, const Tensor& t) {
  user_check(t.defined() && t.is_dense(), ErrorKind::InvalidArgument,
             "'{}' has no values to write: it is {}.\nhint: Save dense tensors, outside capture, "
             "jvp and vmap.",
             name, t.defined() ? "not dense" : "undefined");
  Tensor compact = t.is_contiguous() ? t : assign(t);
  if (compact.device().is_cpu()) return compact;
  Tensor host = Tensor::empty(compact.dims(), compact.dtype());
  devices::copy(Device{}, host->data, compact.device(), compact->data,
                static_cast<size_t>(byte_count(compact->numel, compact.dtype())));
  return host;
}

void check_text(const std::string& text, const char* what) {
  user_check(is_utf8(text), ErrorKind::InvalidArgument, "{} is not valid UTF-8.", what);
}

std::string metadata_text(const Metadata& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata) {
    check_text(key, "a key of the metadata");
    check_text(value, "a value of the metadata");
    text += format("{}{}:{}", text.empty() ? "" : ",", json_quoted(key), json_quoted(value));
  }
  return format("{}:{{{}}}", json_quoted(kMetadataKey), text);
}

}  // namespace

SafetensorsIndex parse_safetensors(std::string_view file) {
  user_check(
      file.size() >= kSizeBytes, ErrorKind::InvalidArgument,
      "the file has {} bytes, not even a header's size.\nhint: Is it a safetensors file, and "
      "complete?",
      file.size());
  uint64_t header_size = 0;
  std::memcpy(&header_size, file.data(), kSizeBytes);
  const size_t rest = file.size() - kSizeBytes;
  user_check(
      header_size <= rest && header_size <= kMaxHeader, ErrorKind::InvalidArgument,
      "the header claims {} bytes; {} follow, and {} are allowed.\nhint: Is it a safetensors "
      "file, and complete?",
      header_size, rest, kMaxHeader);
  SafetensorsIndex index;
  JsonReader json(file.substr(kSizeBytes, header_size));
  json.object([&](const std::string& name) {
    if (name == kMetadataKey)
      json.object([&](const std::string& key) { index.metadata[key] = json.string(); });
    else
      index.entries.push_back(read_entry(json, name));
  });
  json.end();
  const size_t room = rest - header_size;
  for (const auto& entry : index.entries) check_entry(entry, room);
  check_cover(index.entries, room);
  for (auto& entry : index.entries) {
    entry.begin += kSizeBytes + header_size;
    entry.end += kSizeBytes + header_size;
  }
  return index;
}

NamedTensors load_safetensors(const std::string& path, Metadata* metadata) {
  const auto mapping = std::make_shared<Mapping>(path);
  NamedTensors tensors;
  try {
    SafetensorsIndex index = parse_safetensors(mapping->content());
    for (const auto& entry : index.entries) tensors.emplace(entry.name, tensor_in(mapping, entry));
    if (metadata != nullptr) *metadata = std::move(index.metadata);
  } catch (const Error& error) {
    throw Error(error.kind(), format("Cannot load \"{}\": {}", path, error.text()), error.hint());
  }
  return tensors;
}

void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata) {
  std::vector<std::pair<std::string, Tensor>> order;
  for (const auto& [name, tensor] : tensors) {
    user_check(name != kMetadataKey, ErrorKind::InvalidArgument,
               "a tensor cannot be called '{}': the format reserves that name.", kMetadataKey);
    check_text(name, "a tensor's name");
    order.emplace_back(name, ready_to_write(name, tensor));
  }
  // The widest elements first, so that every tensor is aligned to its elements.
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return bits_of(a.second.dtype()) > bits_of(b.second.dtype());
  });

  std::string header = metadata.empty() ? "{" : "{" + metadata_text(metadata);
  size_t end = 0;
  for (const auto& [name, tensor] : order) {
    const size_t begin = end;
    end += static_cast<size_t>(byte_count(tensor->numel, tensor.dtype()));
    header += format("{}{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                     header.size() > 1 ? "," : "", json_quoted(name), file_name_of(tensor.dtype()),
                     tensor.shape().str(), begin, end);
  }
  header += '}';
  header.append((kSizeBytes - header.size() % kSizeBytes) % kSizeBytes, ' ');
  user_check(header.size() <= kMaxHeader, ErrorKind::InvalidArgument,
             "names and metadata take {} bytes; the format allows {}.", header.size(), kMaxHeader);

  AtomicFile file(path);
  const uint64_t header_size = header.size();
  file.write(&header_size, kSizeBytes);
  file.write(header.data(), header.size());
  for (const auto& [name, tensor] : order) {
    note_read(tensor);
    file.write(tensor->data, static_cast<size_t>(byte_count(tensor->numel, tensor.dtype())));
  }
  file.commit();
}

}  // namespace oar
