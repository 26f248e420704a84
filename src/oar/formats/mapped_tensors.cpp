#include "oar/formats/mapped_tensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <tuple>

#include "oar/base/error.h"
#include "oar/base/scope_guard.h"

namespace oar {
namespace {

constexpr int kMaxRank = 64;

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

const FileType& type_in_file(const std::string& name, const std::string& tensor) {
  for (const FileType& type : kFileTypes)
    if (type.name == name) return type;
  fail(ErrorKind::InvalidArgument, "tensor '{}' has an unknown dtype '{}'.", tensor, name);
}

void check_entry(const TensorEntry& entry, size_t room) {
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

[[noreturn]] void fail_on(const char* what, const std::string& path) {
  const int code = errno;
  fail(code == ENOENT ? ErrorKind::NotFound : ErrorKind::Runtime, "Cannot {} \"{}\": {}.", what,
       path, std::generic_category().message(code));
}

// Each tensor has its own storage, so that a write does not change the version of the others.
StoragePtr storage_in(const std::shared_ptr<MappedFile>& file, size_t begin, size_t bytes) {
  auto* owner = new std::shared_ptr<MappedFile>(file);
  const auto let_go = [](void* context, void*, size_t) {
    delete static_cast<std::shared_ptr<MappedFile>*>(context);
  };
  return Storage::adopt(file->data() + begin, bytes, Device{}, let_go, owner);
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
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

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::string_view name_in_files(DType dtype) {
  for (const FileType& type : kFileTypes)
    if (type.dtype == dtype) return type.name;
  fail(ErrorKind::Unsupported, "safetensors cannot hold {}.", name_of(dtype));
}

bool read_offsets(JsonReader& json, size_t& begin, size_t& end) {
  int count = 0;
  json.array([&] {
    if (count == 2) json.error("two offsets");
    (count++ == 0 ? begin : end) = static_cast<size_t>(json.unsigned_integer());
  });
  return count == 2;
}

TensorEntry read_entry(JsonReader& json, const std::string& name, bool has_checksum) {
  TensorEntry entry{.name = name};
  bool has_dtype = false, has_shape = false, has_place = false;
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
      has_place = read_offsets(json, entry.begin, entry.end);
    } else if (has_checksum && key == "crc32c") {
      entry.crc32c = json.unsigned_integer();
    } else {
      json.skip();
    }
  });
  user_check(has_dtype && has_shape && has_place, ErrorKind::InvalidArgument,
             "tensor '{}' lacks its dtype, shape or data_offsets.", entry.name);
  return entry;
}

void check_entries(std::vector<TensorEntry>& entries, size_t room, bool dense) {
  for (const auto& entry : entries) check_entry(entry, room);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  size_t position = 0;
  for (const auto& entry : entries) {
    user_check(dense ? entry.begin == position : entry.begin >= position,
               ErrorKind::InvalidArgument, "tensor '{}' {}.", entry.name,
               entry.begin < position ? "overlaps the one before it" : "leaves a gap before it");
    position = entry.end;
  }
  user_check(!dense || position == room, ErrorKind::InvalidArgument,
             "the tensors cover {} bytes, but there are {} bytes of data.", position, room);
}

Tensor tensor_in(const std::shared_ptr<MappedFile>& file, const TensorEntry& entry) {
  user_check(
      entry.dtype.has_value(), ErrorKind::Unsupported,
      "tensor '{}' has dtype '{}', which Oar does not have.\nhint: Convert it where the file "
      "was written; U16, U32 and U64 fit into I32 and I64 in most cases.",
      entry.name, entry.stored);
  const char* data = file->data() + entry.begin;
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
  const StoragePtr storage = storage_in(file, entry.begin, bytes);
  return Tensor::view_of(storage, entry.shape, contiguous_strides(entry.shape), storage->data(),
                         *entry.dtype);
}

}  // namespace oar
