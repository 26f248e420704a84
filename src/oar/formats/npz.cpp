#include "oar/formats/npz.h"

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/formats/checksum.h"
#include "oar/formats/npy.h"
#include "oar/formats/zip.h"

namespace oar {

NamedTensors parse_npz(std::string_view file) {
  NamedTensors arrays;
  const ZipFile zip(file);
  for (const ZipFile::Entry& entry : zip.entries()) {
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = parse_npy(zip.content(entry));
  }
  return arrays;
}

NamedTensors load_npz(const std::string& path) {
  const std::string content = read_file(path);
  try {
    return parse_npz(content);
  } catch (const Error& error) {
    fail(error.kind(), "\"{}\" cannot be loaded: {}\nhint: {}", path, error.text(), error.hint());
  }
}

// ---- writing -----------------------------------------------------------------------------------

namespace {

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// What a file's header and the list at the end share: version, flags (names are UTF-8), method, time, checksum, sizes.
void append_entry(std::string& out, const std::string& name, const std::string& content) {
  constexpr uint16_t kFirstDay =
      (1 << 5) | 1;  // 1 January 1980: the same content gives the same bytes
  append_number<uint16_t>(out, 20);
  append_number<uint16_t>(out, 1 << 11);
  append_number<uint16_t>(out, 0);
  append_number<uint16_t>(out, 0);
  append_number<uint16_t>(out, kFirstDay);
  append_number<uint32_t>(out, crc32(content));
  append_number(out, static_cast<uint32_t>(content.size()));
  append_number(out, static_cast<uint32_t>(content.size()));
  append_number(out, static_cast<uint16_t>(name.size()));
  append_number<uint16_t>(out, 0);
}

}  // namespace

void save_npz(const std::string& path, const NamedTensors& arrays) {
  AtomicFile file(path);
  std::string list;
  uint64_t at = 0;
  for (const auto& [array, tensor] : arrays) {
    const std::string name = array + ".npy", content = npy_bytes(tensor);
    std::string header = "PK\x03\x04";
    append_entry(header, name, content);
    header += name;
    user_check(name.size() < 0xffff && at + header.size() + content.size() < 0xffff0000,
               ErrorKind::Unsupported,
               "\"{}\" would have more than 4 GB.\nhint: Write several files, or safetensors.",
               path);
    list += std::string("PK\x01\x02") + std::string("\x14\0", 2);
    append_entry(list, name, content);
    list.append(10, '\0');  // comment, disk, attributes
    append_number(list, static_cast<uint32_t>(at));
    list += name;
    file.write(header.data(), header.size());
    file.write(content.data(), content.size());
    at += header.size() + content.size();
  }
  std::string end = std::string("PK\x05\x06") + std::string(4, '\0');
  append_number(end, static_cast<uint16_t>(arrays.size()));
  append_number(end, static_cast<uint16_t>(arrays.size()));
  append_number(end, static_cast<uint32_t>(list.size()));
  append_number(end, static_cast<uint32_t>(at));
  append_number<uint16_t>(end, 0);
  file.write(list.data(), list.size());
  file.write(end.data(), end.size());
  file.commit();
}

}  // namespace oar
