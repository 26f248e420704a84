// Object code of kernels on disk, for later processes. An entry is used only if its checksum is right and nobody else can have written
// it. Whatever goes wrong here, there is no entry, and the kernel is compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace fusion {

class KernelCache {
 public:
  // In a folder that is made if it is not there. Entries that were not used for the longest time go when they are more than
  // `most_bytes` together.
  KernelCache(std::string folder, int64_t most_bytes);

  // Empty, or why nothing is read and written here.
  const std::string& refused() const { return refused_; }
  const std::string& folder() const { return folder_; }

  // `key` is all that the code depends on.
  std::optional<std::string> find(const std::string& key);
  void keep(const std::string& key, std::string_view object);

  struct Size {
    int64_t entries = 0, bytes = 0;
  };
  Size size() const;

 private:
  std::string path_of(const std::string& key) const;
  void make_room(int64_t bytes);

  std::string folder_;
  int64_t most_bytes_;
  std::string refused_;
  int64_t bytes_ = -1;  // as far as this process knows; -1: not counted yet
};

}  // namespace fusion
}  // namespace oar
