// Where a value of a program is on a mesh of devices: for each axis of the mesh, whether the devices along
// it hold a part of the value, all of it, or partial results. A value without a placement is on one device.
//
//   float32[B, 8] on grid(data: shard 0, model: replicate)
//   float32[B, 8] on grid(data: shard 0, model: partial sum)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

// How the devices' parts become the value.
enum class PartialBy : uint8_t { Sum, Max, Min, Mean, Prod };
const char* name_of(PartialBy by);  // "sum"
std::optional<PartialBy> partial_named(std::string_view word);

struct MeshAxisPlacement {
  enum Kind : uint8_t { Replicate, Shard, Partial };
  std::string mesh_axis;
  Kind kind = Replicate;
  int32_t axis = -1;              // Shard: the axis of the value that is cut
  PartialBy by = PartialBy::Sum;  // Partial
  bool operator==(const MeshAxisPlacement&) const = default;
};

struct Placement {
  std::string mesh;
  std::vector<MeshAxisPlacement> axes;  // of the mesh, each named once
  bool operator==(const Placement&) const = default;

  std::string str() const;  // "on grid(data: shard 0, model: replicate)"
  // What is wrong with it for a value of this rank; empty if nothing is.
  std::string problem(int rank) const;
};

}  // namespace oar
