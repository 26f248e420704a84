// Writes programs as inference models of Paddle.
//
//   const paddle::Files files = paddle::write_model(program, paddle::FileFormat::Pir);
#pragma once

#include <string>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace paddle {

struct Files {
  std::string program, parameters;
};

enum class FileFormat : uint8_t {
  Pir,     // model.json, for Paddle 3
  Legacy,  // model.pdmodel, for Paddle 2 and 3
};
// By the ending of a program's file; an error that names both if it is neither.
FileFormat format_of(const std::string& path);

// A call without a counterpart is written as the calls that it consists of; those that remain are an error that lists them all.
Files write_model(const Program& program, FileFormat format = FileFormat::Pir);

}  // namespace paddle
}  // namespace oar
