// What is sorted. An element becomes an unsigned key in the requested order (NaN last, equal
// numbers equal keys), and a key with its index an item.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "oar/backend/cpu/loops/axis.h"

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
    // Selects instead of branches: signs are unpredictable, and selects vectorise.
    const auto number = static_cast<compute_t<T>>(value);
    Key bits;
    std::memcpy(&bits, &value, sizeof(bits));
    bits = number == 0 ? Key(0) : bits;  // -0 and 0 are equal
    const auto negative =
        static_cast<Key>(Key(0) - static_cast<Key>(bits / top));  // all ones, or 0
    bits = static_cast<Key>(bits ^ (negative | top));
    key = number != number ? static_cast<Key>(~Key(0)) : bits;
  }
  return descending ? static_cast<Key>(~key) : key;
}

// The number that has this key; nothing where several do (NaNs, and zeros of both signs).
template <class T>
std::optional<T> from_key(key_t<T> key, bool descending) {
  using Key = key_t<T>;
  constexpr Key top = Key(Key(1) << (8 * sizeof(Key) - 1));
  if (descending) key = static_cast<Key>(~key);
  if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(key);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(key ^ top);
  } else {
    if (key == top || key == static_cast<Key>(~Key(0))) return std::nullopt;
    const auto bits = static_cast<Key>(key & top ? key ^ top : ~key);
    return std::bit_cast<T>(bits);
  }
}

// A key and its index, ordered by both: in one word if they fit, else in two.
struct WidePair {
  uint64_t key;
  uint32_t place;
  bool operator<(const WidePair& o) const { return key != o.key ? key < o.key : place < o.place; }
};
template <class Key>
using item_t = std::conditional_t<sizeof(Key) == 8, WidePair, uint64_t>;

inline void make_item(WidePair& item, uint64_t key, int64_t place) {
  item = {key, static_cast<uint32_t>(place)};
}
inline void make_item(uint64_t& item, uint64_t key, int64_t place) {
  item = key << 32 | static_cast<uint64_t>(place);
}
inline uint32_t place_in(const WidePair& item) { return item.place; }
inline uint32_t place_in(uint64_t item) { return static_cast<uint32_t>(item); }
inline uint64_t key_in(const WidePair& item) { return item.key; }
inline uint64_t key_in(uint64_t item) { return item >> 32; }

// Items come with ascending indices, so a stable sort by key is enough. All digits are counted in
// one pass; a digit that is the same in all items needs no pass.
template <int kDigits, int kBits, class Item>
Item* radix_sort(Item* items, Item* other, int64_t n) {
  constexpr int kValues = 1 << kBits;
  const auto digit = [](const Item& item, int place) {
    return static_cast<unsigned>(key_in(item) >> (kBits * place)) % kValues;
  };
  uint32_t start[kDigits][kValues] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int place = 0; place < kDigits; ++place) ++start[place][digit(items[i], place)];
  for (int place = 0; place < kDigits; ++place) {
    uint32_t* at = start[place];
    if (at[digit(items[0], place)] == static_cast<uint64_t>(n)) continue;
    uint32_t sum = 0;
    for (int d = 0; d < kValues; ++d) sum += std::exchange(at[d], sum);
    for (int64_t i = 0; i < n; ++i) other[at[digit(items[i], place)]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

}  // namespace oar::cpu
