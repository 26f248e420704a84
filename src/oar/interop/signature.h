// What a model takes, as its file says it.
#pragma once

#include <optional>
#include <string>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace interop {

struct Signature {
  std::string name;
  DType dtype = DType::Float32;
  std::optional<Shape> shape;  // a size that is open is a symbol; nothing: any number of axes

  std::string str() const;  // "image: float32[batch, 3, 224, 224]"
};

// Sizes as importers have them, with -1 where one is open. It is called after the input and its axis.
Shape shape_with_open_sizes(const std::string& input, const std::vector<int64_t>& sizes);

}  // namespace interop
}  // namespace oar
