// Sorting of one line. An element becomes an unsigned key whose order is the wanted one (NaN on top,
// equal numbers equal keys); keys are sorted together with their places, by radix where a line is
// long. Equal keys keep their order, so results are the same everywhere.
#pragma once

#include <algorithm>
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
    if (stride == 1)
      for (int64_t i = 0; i < length_; ++i) keys_[i] = key_of(line[i], descending_);
    else
      for (int64_t i = 0; i < length_; ++i) keys_[i] = key_of(line[i * stride], descending_);
    if (count <= kFew && count * 4 <= length_) return pick(count);
    for (int64_t i = 0; i < length_; ++i) make_item(items_[i], keys_[i], i);
    if (count * 3 <= length_) {
      std::nth_element(items_.data(), items_.data() + count, items_.data() + length_);
      std::sort(items_.data(), items_.data() + count);
    } else if (length_ < 256) {
      std::sort(items_.data(), items_.data() + length_);
    } else {
      return radix_sort<sizeof(T)>(items_.data(), other_.data(), length_);
    }
    return items_.data();
  }

 private:
  static constexpr int64_t kFew = 32, kAtOnce = 16;

  // Keeps the best so far in order. Most keys are no better than the worst of them, so several are
  // looked at at once.
  const Item* pick(int64_t count) {
    Item* best = items_.data();
    for (int64_t i = 0; i < count; ++i) insert(i, i);
    int64_t i = count;
    for (; i + kAtOnce <= length_; i += kAtOnce) {
      const Key worst = keys_[place_in(best[count - 1])];
      const Key* keys = keys_.data() + i;
      int better = 0;
      for (int64_t k = 0; k < kAtOnce; ++k) better |= keys[k] < worst;
      if (better) challenge(i, i + kAtOnce, count);
    }
    challenge(i, length_, count);
    return best;
  }
  void challenge(int64_t begin, int64_t end, int64_t count) {
    for (int64_t i = begin; i < end; ++i)
      if (keys_[i] < keys_[place_in(items_[count - 1])]) insert(i, count - 1);
  }
  // Puts the item of place i, behind its equals, among the `count` in front, which move up.
  void insert(int64_t i, int64_t count) {
    Item item;
    make_item(item, keys_[i], i);
    int64_t at = count;
    for (; at > 0 && item < items_[at - 1]; --at) items_[at] = items_[at - 1];
    items_[at] = item;
  }

  int64_t length_;
  bool descending_;
  Scratch<Key> keys_;
  Scratch<Item> items_, other_;
};

}  // namespace oar::cpu
