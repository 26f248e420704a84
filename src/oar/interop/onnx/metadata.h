// Texts that an ONNX file holds beside its graph (`metadata_props`): dictionaries, names of classes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace onnx {

std::map<std::string, std::string> read_metadata(std::string_view file);

}  // namespace onnx
}  // namespace oar
