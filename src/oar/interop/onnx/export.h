// Programs as ONNX models.
//
//   onnx::export_program(program, "model.onnx");
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace onnx {

struct ExportOptions {
  int64_t opset = 17;
  std::vector<std::string> inputs, outputs;  // empty: the names in the program, "output_0", …
  // Weights beyond this many bytes go to a file of their own, `<path>.data`: a message holds 2 GB.
  int64_t most_inside = int64_t{1} << 30;
};
constexpr int64_t kOldestExport = 17, kNewestExport = 23;

// Open sizes stay open. An op without a counterpart is an error that lists all of them.
void export_program(const Program& program, const std::string& path,
                    const ExportOptions& options = {});

}  // namespace onnx
}  // namespace oar
