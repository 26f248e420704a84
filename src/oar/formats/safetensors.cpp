#include "oar/formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/device/device.h"
#include "oar/formats/json_reader.h"
#include "oar/formats/mapped_tensors.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kSizeBytes = sizeof(uint64_t);
constexpr size_t kMaxHeader = size_t{100} << 20;  // the reference implementation's limit
constexpr std::string_view kMetadataKey = "__metadata__";

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
      index.entries.push_back(read_entry(json, name, /*has_checksum=*/false));
  });
  json.end();
  const size_t room = rest - header_size;
  check_entries(index.entries, room, /*dense=*/true);
  for (auto& entry : index.entries) {
    entry.begin += kSizeBytes + header_size;
    entry.end += kSizeBytes + header_size;
  }
  return index;
}

NamedTensors load_safetensors(const std::string& path, Metadata* metadata) {
  const auto mapping = std::make_shared<MappedFile>(path);
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
                     header.size() > 1 ? "," : "", json_quoted(name), name_in_files(tensor.dtype()),
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
