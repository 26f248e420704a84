// The signature of an op: its schema line and the values of the defaults.
#pragma once

#include <memory>

#include "oar/base/api.h"
#include "oar/ops/core/schema_line.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

struct Schema : SchemaLine {
  Schema() = default;
  // InvalidArgument with the place of the mistake; user-defined ops come through here.
  static Schema parse(std::string_view text);
  // Values of the defaults; none for parameters that must be given.
  const Frame& defaults() const { return *defaults_; }

 private:
  explicit Schema(SchemaLine line);
  std::shared_ptr<Frame> defaults_;
};

}  // namespace oar
