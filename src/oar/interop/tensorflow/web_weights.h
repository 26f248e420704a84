// The weights of a model of TensorFlow.js, as its `model.json` lists them.
#pragma once

#include "oar/interop/json_value.h"
#include "oar/interop/tensorflow/graph_def.h"
#include "oar/interop/tensorflow/import.h"

namespace oar::tensorflow {

// In files one after the other, whole or in eight or sixteen bits.
Weights read_web_weights(const JsonValue& manifest, const ReadFile& read);

// Reads files in a folder. A path that leaves the folder, also through a link, is refused.
ReadFile files_in(const std::string& folder);

}  // namespace oar::tensorflow
