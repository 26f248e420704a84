// The names of traits, to show them and to look them up from Python.
#pragma once

#include <span>
#include <string_view>

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {

struct TraitName {
  Trait trait;
  std::string_view name;
};

// Every trait with its name, in the order of the bits.
std::span<const TraitName> trait_names();

}  // namespace oar
