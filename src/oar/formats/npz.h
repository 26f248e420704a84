// NumPy's .npz files: zip files of .npy files. A file may be hostile: nothing is read beyond its end, and what is unpacked
// has the size that the file states.
#pragma once

#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"

namespace OAR_API oar {

// Arrays by name, without ".npy": what numpy.savez and numpy.savez_compressed wrote.
NamedTensors load_npz(const std::string& path);
NamedTensors parse_npz(std::string_view file);

// Replaces the file as a whole. Arrays are stored as they are, as numpy.savez does; all of them together may have 4 GB.
void save_npz(const std::string& path, const NamedTensors& arrays);

}  // namespace oar
