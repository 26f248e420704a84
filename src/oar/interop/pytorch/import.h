// Models in files of PyTorch as programs: what torch.export.save or torch.jit.save wrote.
//
//   const pytorch::Model model = pytorch::load_model("model.pt2");
//   const std::vector<Tensor> out = model.graph.run({image});
#pragma once

#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/formats/zip.h"
#include "oar/interop/graph_model.h"

namespace OAR_API oar {
namespace pytorch {

struct Model {
  interop::GraphModel graph;
  NamedTensors weights;  // parameters and buffers, by their names in the module
};

enum class ArchiveKind : uint8_t { Export, Script, Other };
ArchiveKind kind_of_archive(const ZipFile& zip);

Model read_model(std::string_view file);
Model load_model(const std::string& path);

}  // namespace pytorch
}  // namespace oar
