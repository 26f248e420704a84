// An archive of torch.export as plain structs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oar/formats/safetensors.h"
#include "oar/formats/zip.h"
#include "oar/interop/graph_model.h"
#include "oar/interop/json_value.h"

namespace oar::pytorch {

struct Weight {
  std::string value;  // its name in the graph
  std::string name;   // in the module
  Tensor tensor;
};

struct Mutation {
  std::string value, target;  // a value of the graph is written to this weight
};

struct ExportFile {
  JsonValue root;
  const JsonValue* graph = nullptr;  // a part of the root
  std::vector<Weight> weights;
  std::vector<interop::Port> inputs;
  std::vector<std::string> output_names;
  std::vector<const JsonValue*> outputs;  // arguments, as the file has them
  std::vector<Mutation> mutations;

  explicit ExportFile(JsonValue text) : root(std::move(text)) {}
};

bool is_export_archive(const ZipFile& zip);
std::unique_ptr<const ExportFile> read_export(const ZipFile& zip);

// The file's numbers of dtypes are not those of PyTorch's programs.
int64_t dtype_number(int64_t in_file);
// The member that a union has.
std::pair<std::string, const JsonValue*> member_of(const JsonValue& one);
// A name of an op as the tables have it: "aten.add.Tensor" becomes "add".
std::string table_name(std::string_view target);

}  // namespace oar::pytorch
