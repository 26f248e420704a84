// GGUF files: weights of language models, mostly quantised in blocks, with metadata.
//
// A file may be hostile: nothing is read beyond its end, and lists have no more elements than the file has bytes for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/pickle.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

struct GgufTensor {
  std::string name;
  uint32_t type = 0;           // as the file numbers it
  std::string type_name;       // "Q4_K"
  std::vector<int64_t> shape;  // the last axis is the one that lies together
  std::string_view data;       // of the file; empty if the type is not known
};

struct GgufFile {
  StateTree metadata;  // a dictionary, in the order of the file
  std::vector<GgufTensor> tensors;
};

// The bytes must outlive the result.
GgufFile parse_gguf(std::string_view file);
// Quantised blocks become float32; other dtypes stay.
Tensor read_gguf_tensor(const GgufTensor& tensor);

}  // namespace oar
