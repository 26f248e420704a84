// Free memory as ranges of addresses: takes the smallest that suffices, merges neighbours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "oar/base/api.h"

namespace OAR_API oar {

class FreeRanges {
 public:
  using Address = uintptr_t;

  void add(Address begin, size_t bytes);
  // The start of that many bytes, which are no longer free; 0 if no range is long enough.
  Address take(size_t bytes);
  // The longest range, which is no longer free; of no bytes if there is none.
  std::pair<Address, size_t> take_longest();

  size_t bytes() const { return bytes_; }
  const std::map<Address, size_t>& ranges() const { return by_address_; }

 private:
  void insert(Address begin, size_t bytes);
  void erase(std::map<Address, size_t>::iterator range);

  std::map<Address, size_t> by_address_;
  std::set<std::pair<size_t, Address>> by_size_;
  size_t bytes_ = 0;
};

}  // namespace oar
