#include "oar/base/format.h"
#include "oar/cli/commands.h"
#include "oar/cli/run_python.h"

namespace oar::cli {

int convert(const ConvertQuery& query) {
  std::vector<std::string> command{"-m", "oar.interop"};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  for (const std::string& shape : query.shapes) add("--input-shape", shape);
  add("--weights", query.weights);
  add("--method", query.method);
  if (query.opset > 0) add("--opset", std::to_string(query.opset));
  if (query.tolerance != 0) add("--tolerance", format("{}", query.tolerance));
  if (query.compare) command.emplace_back("--compare");
  if (query.json) command.emplace_back("--json");
  command.insert(command.end(), {"--", query.source, query.target});
  return run_python("convert: what writes models is part of the Python package", command);
}

}  // namespace oar::cli
