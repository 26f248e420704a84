// From a file that is read already to a program.
#pragma once

#include "oar/interop/onnx/import.h"
#include "oar/interop/onnx/model.h"

namespace oar::onnx {

Imported import_parsed(const ModelFile& model, const Expected& expected);
// One run without a program, node after node. Its inputs are `given.constant`.
interop::Results run_steps(const ModelFile& model, const Expected& given);

}  // namespace oar::onnx
