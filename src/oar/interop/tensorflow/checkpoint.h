// The variables of a checkpoint: `prefix.index`, a table of names, and `prefix.data-00000-of-00001`, their content.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::tensorflow {

// The entries of a table file (the format of LevelDB), by key.
std::map<std::string, std::string> parse_table(std::string_view file);

class Checkpoint {
 public:
  // `read` returns the content of the file with this ending, e.g. ".data-00000-of-00001".
  using Read = std::function<std::string(const std::string& ending)>;
  explicit Checkpoint(Read read);

  bool has(const std::string& name) const { return entries_.contains(name); }
  Tensor tensor(const std::string& name);

 private:
  const std::string& shard(int64_t number);

  Read read_;
  std::map<std::string, std::string> entries_;
  int64_t shards_ = 1;
  std::map<int64_t, std::string> content_;
};

}  // namespace oar::tensorflow
