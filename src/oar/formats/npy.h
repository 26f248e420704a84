// NumPy's .npy files: one array each. A file may be hostile: nothing is read beyond its end.
#pragma once

#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_RUNTIME_API oar {

// Little-endian bools, integers and floats in C order.
Tensor load_npy(const std::string& path);
Tensor parse_npy(std::string_view file);

// The bytes of such a file. The tensor must be contiguous.
std::string npy_bytes(const Tensor& tensor);
// Replaces the file as a whole.
void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace oar
