// Programs that were written for earlier versions of an op's schema.
//
// A text names the version that a call was written for (`resize@2(…)`; without a number it is 1). When a schema changes so that old
// texts no longer fit, its version rises, and the op's family registers how a call of the version before is read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

struct Upgrade {
  struct Pair {
    std::string name, value;
  };
  std::string op;
  int64_t from = 1;           // to from + 1
  std::vector<Pair> renamed;  // an argument's old name and the new one
  std::vector<Pair>
      added;  // an argument, and its value, as text, that does what the old version did
};

// At start, before programs are read. An argument that is new and whose default does what the old version did needs no mention.
void register_upgrade(Upgrade upgrade);

// The steps from a version of an op to the present one, in order. Fewer if one is missing.
std::vector<const Upgrade*> upgrades_of(std::string_view op, int64_t from, int64_t to);

// The present name of an argument, after the steps from `first` on.
std::string renamed_by(const std::vector<const Upgrade*>& steps, size_t first, std::string name);

}  // namespace oar
