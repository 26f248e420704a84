// From a file that is read already to a program.
#pragma once

#include "oar/interop/onnx/import.h"
#include "oar/interop/onnx/model.h"

namespace oar::onnx {

Imported import_parsed(const ModelFile& model, const Expected& expected);

}  // namespace oar::onnx
