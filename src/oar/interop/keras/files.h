// The files of Keras: which architecture and which weights they hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/json_value.h"
#include "oar/interop/keras/model.h"

namespace oar::keras {

struct FileParts {
  JsonValue architecture;
  Weights weights;
  int version = 3;  // of the Keras that wrote it
};

// A whole model of Keras 2, or of Keras 3 in its old format.
FileParts read_h5_parts(std::string_view file);
// A zip archive of Keras 3, or of Keras 2 from version 2.12 on.
FileParts read_archive_parts(std::string_view file);
// 2 of "2.3.1"; 2 if the text says nothing.
int major_version(std::string_view version);
// The weights of a file that has nothing else, of either format.
Weights read_h5_weights(std::string_view file);

}  // namespace oar::keras
