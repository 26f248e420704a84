// Sorting of one line. An element becomes an unsigned key whose order is the wanted one (NaN on top,
// equal numbers equal keys); keys are sorted together with their places, by radix where a line is
// long. Equal keys keep their order, so results are the same everywhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "oar/backend/cpu/axis.h"

namespace oar::cpu {

template <class T>
using key_t =
    std::conditional_t<sizeof(T) == 8, uint64_t,
                       std::conditional_t<sizeof(T) == 4, uint32_t,
                                          std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <class T>
key_t<T> key_of(T value, bool descending) {
  using Key = key_t<T>;
  constexpr Key top = Key(Key(1) << (8 * sizeof(Key) - 1));
  Key key;
  if constexpr (std::is_unsigned_v<T>) {  // bool too
    key = static_cast<Key>(value);
  } else if constexpr (std::is_integral_v<T>) {
    key = static_cast<Key>(static_cast<Key>(value) ^ top);
  } else {
    const auto number = static_cast<compute_t<T>>(value);
    if (number != number) {
      key = static_cast<Key>(~Key(0));
    } else {
      std::memcpy(&key, &value, sizeof(key));
      if (number == 0) key = 0;  // -0 and 0 are equal
      key = static_cast<Key>(key & top ? ~key : key | top);
    }
  }
  return descending ? static_cast<Key>(~key) : key;
}

// A key and its place, ordered by both: in one word where they fit, else in two.
template <class Key>
struct Pair {
  Key key;
  uint32_t place;
  bool operator<(const Pair& o) const { return key != o.key ? key < o.key : place < o.place; }
};
template <class Key>
struct PackedPair {
  uint64_t word;
  bool operator<(const PackedPair& o) const { return word < o.word; }
};
template <class T>
using item_t = std::conditional_t<sizeof(T) == 8, Pair<uint64_t>, PackedPair<key_t<T>>>;

template <class Key>
void make_item(Pair<Key>& item, Key key, int64_t place) {
  item = {key, static_cast<uint32_t>(place)};
}
template <class Key>
void make_item(PackedPair<Key>& item, Key key, int64_t place) {
  item.word = uint64_t{key} << 32 | static_cast<uint64_t>(place);
}
template <class Key>
int64_t place_in(const Pair<Key>& item) {
  return item.place;
}
template <class Key>
int64_t place_in(const PackedPair<Key>& item) {
  return static_cast<int64_t>(item.word & 0xffffffff);
}
template <class Key>
unsigned digit(const Pair<Key>& item, int byte) {
  return item.key >> (8 * byte) & 0xff;
}
template <class Key>
unsigned digit(const PackedPair<Key>& item, int byte) {
  return item.word >> (32 + 8 * byte) & 0xff;
}

// Items come with rising places, so a stable sort by key is all that is needed. The digits of all
// bytes are counted in one pass; a byte that is the same in all items needs no pass of its own.
template <int kBytes, class Item>
Item* radix_sort(Item* items, Item* other, int64_t n) {
  uint32_t start[kBytes][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int byte = 0; byte < kBytes; ++byte) ++start[byte][digit(items[i], byte)];
  for (int byte = 0; byte < kBytes; ++byte) {
    uint32_t* at = start[byte];
    if (at[digit(items[0], byte)] == static_cast<uint64_t>(n)) continue;
    uint32_t sum = 0;
    for (int d = 0; d < 256; ++d) sum += std::exchange(at[d], sum);
    for (int64_t i = 0; i < n; ++i) other[at[digit(items[i], byte)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

template <class T>
class LineSorter {
 public:
  using Item = item_t<T>;
  using Key = key_t<T>;
  LineSorter(int64_t length, bool descending)
      : length_(length), descending_(descending), keys_(length), items_(length), other_(length) {}

  // The first `count` items of the sorted line.
  const Item* first(const T* line, int64_t stride, int64_t count) {
    if (count == 0) return items_.data();
    fill_keys(line, stride, keys_.data(), length_, descending_);
    if (count <= kFew && count * 4 <= length_) return pick(keys_.data(), items_.data(), count);
    return sorted(count * 2 <= length_ ? candidates(keys_.data(), items_.data(), count)
                                       : all(keys_.data(), items_.data()));
  }

 private:
  static constexpr int64_t kFew = 32, kAtOnce = 16;

  // What loops use is handed to them: what a member points to is looked up again after every write.
  static void fill_keys(const T* line, int64_t stride, Key* keys, int64_t n, bool descending) {
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) keys[i] = key_of(line[i], descending);
    else
      for (int64_t i = 0; i < n; ++i) keys[i] = key_of(line[i * stride], descending);
  }
  int64_t all(const Key* keys, Item* items) const {
    const int64_t n = length_;
    for (int64_t i = 0; i < n; ++i) make_item(items[i], keys[i], i);
    return n;
  }
  // The items of a lower part of the keys' range that holds at least `count` of them, in their order;
  // answers how many. The range is cut into equal parts, whose keys are counted.
  int64_t candidates(const Key* keys, Item* items, int64_t count) const {
    const int64_t n = length_;
    const int bits = n < 1024 ? 7 : 10;
    Key low = keys[0], high = keys[0];
    for (int64_t i = 1; i < n; ++i) {
      low = std::min(low, keys[i]);
      high = std::max(high, keys[i]);
    }
    const int shift =
        std::max(0, static_cast<int>(std::bit_width(static_cast<Key>(high - low))) - bits);
    const auto part = [=](Key key) { return static_cast<uint32_t>((key - low) >> shift); };
    uint32_t counts[1 << 10];
    std::fill_n(counts, 1 << bits, 0);
    for (int64_t i = 0; i < n; ++i) ++counts[part(keys[i])];
    uint32_t last = 0;
    for (int64_t met = counts[0]; met < count; met += counts[last]) ++last;
    int64_t made = 0;
    for (int64_t i = 0; i < n; ++i) {  // written over unless it counts
      make_item(items[made], keys[i], i);
      made += part(keys[i]) <= last;
    }
    return made;
  }
  // Sorts the first n items, whose places rise.
  const Item* sorted(int64_t n) {
    if (n >= 256) return radix_sort<sizeof(T)>(items_.data(), other_.data(), n);
    std::sort(items_.data(), items_.data() + n);
    return items_.data();
  }

  // Keeps the best so far in order. Most keys are no better than the worst of them, so several are
  // looked at at once.
  const Item* pick(const Key* keys, Item* best, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) insert(keys[i], i, best, i);
    const int64_t n = length_;
    Key worst = keys[place_in(best[count - 1])];
    const auto challenge = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (keys[i] >= worst) continue;
        insert(keys[i], i, best, count - 1);
        worst = keys[place_in(best[count - 1])];
      }
    };
    int64_t i = count;
    for (; i + kAtOnce <= n; i += kAtOnce) {
      int better = 0;
      for (int64_t k = 0; k < kAtOnce; ++k) better |= keys[i + k] < worst;
      if (better) challenge(i, i + kAtOnce);
    }
    challenge(i, n);
    return best;
  }
  // Puts an item, behind its equals, among the `count` in front, which move up.
  static void insert(Key key, int64_t place, Item* best, int64_t count) {
    Item item;
    make_item(item, key, place);
    int64_t at = count;
    for (; at > 0 && item < best[at - 1]; --at) best[at] = best[at - 1];
    best[at] = item;
  }

  int64_t length_;
  bool descending_;
  Scratch<Key> keys_;
  Scratch<Item> items_, other_;
};

}  // namespace oar::cpu
