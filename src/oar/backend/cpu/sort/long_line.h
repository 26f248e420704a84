// Sorting of one long line on all threads. Items are first divided into parts by the highest bits of their keys; each part is
// then sorted alone, where it fits a cache. A part has its items in their order, so equal keys keep it.
#pragma once

#include "oar/backend/cpu/sort/items.h"

namespace oar::cpu {

inline constexpr int64_t kLongLine = 1 << 15;

// Sorts a part whose keys differ in the lowest `bits` only. Returns the array with the result.
template <class Item>
Item* sort_part(Item* items, Item* other, int64_t n, int bits) {
  if (n < 2 || bits == 0) return items;
  if (n < 128) {
    std::sort(items, items + n);
    return items;
  }
  if (bits <= 8) return radix_sort<1, 8>(items, other, n);
  if (bits <= 11) return radix_sort<1, 11>(items, other, n);
  if (bits <= 16) return radix_sort<2, 8>(items, other, n);
  if (bits <= 22) return radix_sort<2, 11>(items, other, n);
  if constexpr (std::is_same_v<Item, uint64_t>)
    return radix_sort<4, 8>(items, other, n);
  else
    return radix_sort<8, 8>(items, other, n);
}

// The parts of n items, the chunks of them that threads divide, and where each chunk's share of a part goes.
class LinePlan {
 public:
  LinePlan(int64_t n, int key_bits)
      : n_(n),
        bits_(std::min(key_bits,
                       std::clamp(static_cast<int>(std::bit_width(uint64_t(n))) - 11, 1, 10))),
        shift_(key_bits - bits_),
        chunks_(in_parallel() ? 1 : num_threads()),
        starts_(chunks_ << bits_) {}

  int rest_bits() const { return shift_; }

  // Moves item i, whose key is key_at(i), to its part.
  template <class Item, class KeyAt>
  void divide(Item* to, KeyAt key_at) const {
    const int shift = shift_;
    parallel_chunks(chunks_, [&](int64_t chunk) {
      uint32_t* counts = starts(chunk);
      std::fill_n(counts, parts(), 0);
      for (int64_t i = begin(chunk), end = begin(chunk + 1); i < end; ++i)
        ++counts[key_at(i) >> shift];
    });
    uint32_t sum = 0;
    for (int64_t part = 0; part < parts(); ++part)
      for (int64_t chunk = 0; chunk < chunks_; ++chunk)
        sum += std::exchange(starts(chunk)[part], sum);
    parallel_chunks(chunks_, [&](int64_t chunk) {
      uint32_t* at = starts(chunk);
      for (int64_t i = begin(chunk), end = begin(chunk + 1); i < end; ++i) {
        const uint64_t key = key_at(i);
        make_item(to[at[key >> shift]++], key, i);
      }
    });
  }

  // Calls body(begin, end) for each part of the divided items that has any.
  template <class Body>
  void for_each_part(Body body) const {
    // The last chunk's positions are now the ends of the parts.
    const uint32_t* ends = starts(chunks_ - 1);
    const int64_t groups = 8 * chunks_;
    parallel_chunks(groups, [&](int64_t group) {
      const auto first_from = [&](int64_t position) {
        return std::upper_bound(ends, ends + parts(), static_cast<uint32_t>(position)) - ends;
      };
      const int64_t last = group + 1 == groups ? parts() : first_from(n_ * (group + 1) / groups);
      for (int64_t part = first_from(n_ * group / groups); part < last; ++part) {
        const int64_t begin = part ? ends[part - 1] : 0;
        if (begin < ends[part]) body(begin, ends[part]);
      }
    });
  }

 private:
  int64_t parts() const { return int64_t{1} << bits_; }
  uint32_t* starts(int64_t chunk) const { return starts_.data() + (chunk << bits_); }
  int64_t begin(int64_t chunk) const { return n_ * chunk / chunks_; }

  int64_t n_;
  int bits_, shift_;
  int64_t chunks_;
  Scratch<uint32_t> starts_;
};

// Sorts n items with the keys key_at(0), ..., of which only the lowest `bits` are set. write(k, items, count) gets
// the items from position k on; threads call it for different positions.
template <class Item, class KeyAt, class Write>
void sort_long_line(int64_t n, int bits, KeyAt key_at, Write write) {
  const Scratch<Item> items(n), other(n);
  const LinePlan plan(n, bits);
  plan.divide(items.data(), key_at);
  plan.for_each_part([&](int64_t begin, int64_t end) {
    write(begin,
          sort_part(items.data() + begin, other.data() + begin, end - begin, plan.rest_bits()),
          end - begin);
  });
}

}  // namespace oar::cpu
