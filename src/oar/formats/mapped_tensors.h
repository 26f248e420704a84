// Tensors inside a file that is mapped into memory, and their entries in its header: what safetensors and `.oar` files share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/json_reader.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// A whole file in memory, copy on write.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  char* data() const { return data_; }
  std::string_view content() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// A tensor's line in a header.
struct TensorEntry {
  std::string name;
  std::string stored;          // the dtype as the file calls it
  std::optional<DType> dtype;  // nothing if Oar does not have it (U16)
  int64_t bits;                // of one element
  Shape shape;
  size_t begin, end;    // bytes of the data, then of the file
  int64_t crc32c = -1;  // of the bytes; -1 if the entry has none, as in safetensors
};

// The dtype as files call it.
std::string_view name_in_files(DType dtype);

// {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, and what else the entry may hold.
TensorEntry read_entry(JsonReader& json, const std::string& name, bool has_checksum);
// Two numbers: where bytes begin and end. False if there are fewer.
bool read_offsets(JsonReader& json, size_t& begin, size_t& end);

// Sorts the entries by their offsets. Every tensor must be inside `room` bytes and have the size of its place, and none may overlap
// another. In `dense` data they leave no gaps.
void check_entries(std::vector<TensorEntry>& entries, size_t room, bool dense);

Tensor tensor_in(const std::shared_ptr<MappedFile>& file, const TensorEntry& entry);

}  // namespace oar
