// The safetensors format: named tensors in a file that holds nothing else.
//
//   u64 header size | header (JSON) | data          little-endian
//
// The header maps a name to dtype, shape and offsets in the data; "__metadata__" maps text to text.
// Tensors are contiguous and cover the data without gap or overlap. Python's oar.load and oar.save,
// and every other program that knows the format, can exchange these files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/mapped_tensors.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

using NamedTensors = std::map<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

// Maps the file into memory: a tensor is read when it is used, and writing to one copies the page
// written to, never changes the file. The file must not be shortened while the tensors live
// (replacing it, as save_safetensors does, is fine).
NamedTensors load_safetensors(const std::string& path, Metadata* metadata = nullptr);

// Replaces the file as a whole: after a crash it is the old one or the new one.
void save_safetensors(const std::string& path, const NamedTensors& tensors,
                      const Metadata& metadata = {});

// The content of a file, checked against the file's size: nothing can be outside.
struct SafetensorsIndex {
  using Entry = TensorEntry;
  std::vector<Entry> entries;  // in the order of their offsets
  Metadata metadata;
};
SafetensorsIndex parse_safetensors(std::string_view file);

}  // namespace oar
