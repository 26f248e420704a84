#include "oar/interop/onnx/metadata.h"

#include "oar/interop/protobuf.h"

namespace oar::onnx {

std::map<std::string, std::string> read_metadata(std::string_view file) {
  constexpr int kMetadata = 14, kKey = 1, kValue = 2;
  std::map<std::string, std::string> found;
  for (ProtoReader model(file); model.next();) {
    if (model.field() != kMetadata) continue;
    std::string key, value;
    for (ProtoReader entry(model.bytes()); entry.next();) {
      if (entry.field() == kKey) key = entry.text();
      if (entry.field() == kValue) value = entry.text();
    }
    found[key] = value;
  }
  return found;
}

}  // namespace oar::onnx
