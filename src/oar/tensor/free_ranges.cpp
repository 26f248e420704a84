#include "oar/tensor/free_ranges.h"

#include <iterator>

namespace oar {

void FreeRanges::add(Address begin, size_t bytes) {
  const auto next = by_address_.lower_bound(begin);
  if (next != by_address_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      erase(before);
    }
  }
  if (next != by_address_.end() && begin + bytes == next->first) {
    bytes += next->second;
    erase(next);
  }
  insert(begin, bytes);
}

FreeRanges::Address FreeRanges::take(size_t bytes) {
  const auto found = by_size_.lower_bound({bytes, 0});
  if (found == by_size_.end()) return 0;
  const auto [length, begin] = *found;
  erase(by_address_.find(begin));
  if (length > bytes) insert(begin + bytes, length - bytes);
  return begin;
}

std::pair<FreeRanges::Address, size_t> FreeRanges::take_longest() {
  if (by_size_.empty()) return {0, 0};
  const auto [length, begin] = *by_size_.rbegin();
  erase(by_address_.find(begin));
  return {begin, length};
}

void FreeRanges::insert(Address begin, size_t bytes) {
  by_address_.emplace(begin, bytes);
  by_size_.emplace(bytes, begin);
  bytes_ += bytes;
}

void FreeRanges::erase(std::map<Address, size_t>::iterator range) {
  by_size_.erase({range->second, range->first});
  bytes_ -= range->second;
  by_address_.erase(range);
}

}  // namespace oar
