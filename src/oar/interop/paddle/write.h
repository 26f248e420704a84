// Writes programs as inference models of Paddle 3: PIR as JSON, and the file of parameters.
//
//   const paddle::Files files = paddle::write_model(program);
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace paddle {

struct Files {
  std::string program, parameters;
};

// Ops without a counterpart are an error that lists them all.
Files write_model(const Program& program);

}  // namespace paddle
}  // namespace oar
