#include "oar/formats/npz.h"

#include "oar/base/error.h"
#include "oar/base/file.h"
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

}  // namespace oar
