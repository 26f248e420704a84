// Sorting of one line: its items are sorted by radix if the line is long. Equal keys keep their order, so results are
// the same everywhere.
#pragma once

#include "oar/backend/cpu/sort/long_line.h"

namespace oar::cpu {

// Short lines of words that differ, without a branch that depends on them: blocks by counting, for each
// word, those below it, and then merges.
class ShortSort {
 public:
  static constexpr int64_t kMost = 256;

  // Sorts the first n of `words`; both arrays have room for kMost. Returns the one with the result.
  static uint64_t* run(uint64_t* words, uint64_t* other, int64_t n) {
    int64_t padded = kBlock;
    while (padded < n) padded *= 2;
    for (int64_t i = n; i < padded; ++i) make_item(words[i], 0xffffffff, i);
    for (int64_t i = 0; i < padded; i += kBlock) sort_block(words + i, other + i);
    std::swap(words, other);
    for (int64_t half = kBlock; half < padded; half *= 2) {
      for (int64_t i = 0; i < padded; i += 2 * half) merge(words + i, half, other + i);
      std::swap(words, other);
    }
    return words;
  }

 private:
  static constexpr int64_t kBlock = 16;

  // Vectors compare signed numbers, so the highest bit changes its meaning.
  typedef int64_t Four __attribute__((vector_size(32), aligned(8), may_alias));
  static constexpr int64_t kTop = std::numeric_limits<int64_t>::min();
  static void sort_block(const uint64_t* from, uint64_t* to) {
    Four words[kBlock / 4], below[kBlock / 4];
#pragma GCC unroll 4
    for (int q = 0; q < kBlock / 4; ++q) {
      words[q] = *reinterpret_cast<const Four*>(from + 4 * q) ^ kTop;
      below[q] = Four{};
    }
    for (int64_t k = 0; k < kBlock; ++k) {
      const Four one = Four{} + (static_cast<int64_t>(from[k]) ^ kTop);
#pragma GCC unroll 4
      for (int q = 0; q < kBlock / 4; ++q) below[q] -= one < words[q];  // true is -1
    }
    for (int64_t i = 0; i < kBlock; ++i) to[below[i / 4][i % 4]] = from[i];
  }
  // Two halves from both ends at once: two chains of dependent steps instead of one.
  static void merge(const uint64_t* from, int64_t half, uint64_t* to) {
    const uint64_t *low = from, *high = from + half;
    const uint64_t *low_end = high - 1, *high_end = high + half - 1;
    uint64_t* to_end = to + 2 * half - 1;
    for (int64_t i = 0; i < half; ++i) {
      const uint64_t a = *low, b = *high, c = *low_end, d = *high_end;
      const bool first = a<b, last = c> d;
      *to++ = first ? a : b;
      low += first;
      high += !first;
      *to_end-- = last ? c : d;
      low_end -= last;
      high_end -= !last;
    }
  }
};

// Sorts the keys of a line, which are in keys().
template <class Key>
class KeyOrder {
 public:
  using Item = item_t<Key>;
  explicit KeyOrder(int64_t length)
      : length_(length),
        keys_(length),
        items_(std::max(length, ShortSort::kMost)),
        other_(std::max(length, ShortSort::kMost)) {}
  Key* keys() const { return keys_.data(); }

  // Writes the indices of the first `count` of the sorted line.
  void first(int64_t count, uint32_t* places) {
    const Item* sorted = first_items(count);
    for (int64_t k = 0; k < count; ++k) places[k] = place_in(sorted[k]);
  }
  // The index of the item that has `count` before it.
  uint32_t nth(int64_t count) {
    if (length_ < kShort)
      return place_in(select(items_.data(), all(keys_.data(), items_.data()), count));
    const Parts parts(keys_.data(), length_, count + 1);
    const int64_t made = parts.collect(keys_.data(), length_, items_.data(), parts.last);
    return place_in(select(items_.data(), made, count - parts.below));
  }

 private:
  static constexpr int64_t kFew = 32, kAtOnce = 16, kShort = 1024;

  // The keys' range in equal parts, of which the first ones up to `last` hold at least `count` keys.
  struct Parts {
    Key low;
    int shift;
    uint32_t last = 0;
    int64_t below = 0;  // keys before the last part

    Parts(const Key* keys, int64_t n, int64_t count) {
      const int bits = n < kShort ? 7 : 10;
      Key high = low = keys[0];
      for (int64_t i = 1; i < n; ++i) {
        low = std::min(low, keys[i]);
        high = std::max(high, keys[i]);
      }
      shift = std::max(0, static_cast<int>(std::bit_width(static_cast<Key>(high - low))) - bits);
      uint32_t counts[1 << 10];
      std::fill_n(counts, 1 << bits, 0);
      for (int64_t i = 0; i < n; ++i) ++counts[part(keys[i])];
      while (below + counts[last] < count) below += counts[last++];
    }
    uint32_t part(Key key) const {
      return static_cast<uint32_t>(static_cast<Key>(key - low) >> shift);
    }
    // The items of the parts from `from` to the last, in their order; returns how many.
    int64_t collect(const Key* keys, int64_t n, Item* items, uint32_t from) const {
      int64_t made = 0;
      for (int64_t i = 0; i < n; ++i) {  // written over unless it counts
        make_item(items[made], keys[i], i);
        made += part(keys[i]) - from <= last - from;
      }
      return made;
    }
  };

  // The item that has `count` before it among n that all differ. Each round keeps one side of a
  // middle one, which is not the least, so that the rest gets shorter; no branch depends on an item.
  static Item select(Item* items, int64_t n, int64_t count) {
    const auto below = [&](const Item& item) {
      int64_t found = 0;
      for (int64_t i = 0; i < n; ++i) found += items[i] < item;
      return found;
    };
    const auto keep = [&](auto&& kept) {
      int64_t made = 0;
      for (int64_t i = 0; i < n; ++i) {  // written over unless it counts
        const Item item = items[i];
        items[made] = item;
        made += kept(item);
      }
      n = made;
    };
    while (n > kAtOnce) {
      const Item a = items[n / 4], b = items[n / 2], c = items[n / 4 * 3];
      const Item pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
      const int64_t front = below(pivot);
      if (count < front) {
        keep([pivot](const Item& item) { return item < pivot; });
      } else {
        keep([pivot](const Item& item) { return !(item < pivot); });
        count -= front;
      }
    }
    int64_t at = 0;
    while (below(items[at]) != count) ++at;
    return items[at];
  }

  const Item* first_items(int64_t count) {
    if (count <= kFew && count * 4 <= length_) return pick(keys_.data(), items_.data(), count);
    if (count * 2 > length_) return sorted(all(keys_.data(), items_.data()));
    const Parts parts(keys_.data(), length_, count);
    return sorted(parts.collect(keys_.data(), length_, items_.data(), 0));
  }
  // Loops get local pointers: a member would be reloaded after every write.
  int64_t all(const Key* keys, Item* items) const {
    const int64_t n = length_;
    for (int64_t i = 0; i < n; ++i) make_item(items[i], keys[i], i);
    return n;
  }
  // Sorts the first n items, whose indices ascend.
  const Item* sorted(int64_t n) {
    if constexpr (std::is_same_v<Item, uint64_t>) {
      if (n <= ShortSort::kMost) return ShortSort::run(items_.data(), other_.data(), n);
    } else if (n < 256) {
      std::sort(items_.data(), items_.data() + n);
      return items_.data();
    }
    return radix_sort<sizeof(Key), 8>(items_.data(), other_.data(), n);
  }

  // Keeps the best so far in order. Most keys are no better than the worst of them, so several are
  // compared at once.
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
  // Inserts an item, after its equals, among the first `count`, which move up.
  static void insert(Key key, int64_t place, Item* best, int64_t count) {
    Item item;
    make_item(item, key, place);
    int64_t at = count;
    for (; at > 0 && item < best[at - 1]; --at) best[at] = best[at - 1];
    best[at] = item;
  }

  int64_t length_;
  Scratch<Key> keys_;
  Scratch<Item> items_, other_;
};

// Lines of one length. Keys of 64 bits are sorted as 32 bits if their range allows it.
template <class T>
class LineSorter {
 public:
  using Key = key_t<T>;
  LineSorter(int64_t length, bool descending) : length_(length), descending_(descending) {}

  // The indices of the first `count` elements of the sorted line.
  const uint32_t* first(const T* line, int64_t stride, int64_t count) {
    if (!places_) places_.emplace(length_);
    uint32_t* places = places_->data();
    if (is_long(count))
      sort_long(line, stride, count, [&](int64_t k, Key, uint32_t place) { places[k] = place; });
    else if (count > 0)
      with_keys(line, stride, [&](auto& order) { order.first(count, places); });
    return places;
  }
  // Writes the first `count` elements of the sorted line and their indices, at the same stride.
  void first(const T* line, int64_t stride, int64_t count, T* values, int64_t* indices) {
    const auto write = [&](int64_t k, T value, uint32_t place) {
      values[k * stride] = value;
      indices[k * stride] = place;
    };
    if (is_long(count))
      return sort_long(line, stride, count, [&](int64_t k, Key key, uint32_t place) {
        // A key is read in order, an element anywhere in the line.
        const std::optional<T> value = from_key<T>(key, descending_);
        write(k, value ? *value : line[place * stride], place);
      });
    const uint32_t* places = first(line, stride, count);
    for (int64_t k = 0; k < count; ++k) write(k, line[places[k] * stride], places[k]);
  }
  // The index of the element that has `count` before it in the sorted line.
  uint32_t nth(const T* line, int64_t stride, int64_t count) {
    uint32_t place = 0;
    with_keys(line, stride, [&](auto& order) { place = order.nth(count); });
    return place;
  }

 private:
  bool is_long(int64_t count) const { return length_ >= kLongLine && count * 2 > length_; }

  // Calls write(k, key, index) for the first `count` of the sorted line, on several threads.
  template <class Write>
  void sort_long(const T* line, int64_t stride, int64_t count, Write write) const {
    const bool descending = descending_;
    const auto key_at = [=](int64_t i) { return key_of(line[i * stride], descending); };
    const auto ends = range(key_at);
    const Key low = ends.first;
    const int bits = std::bit_width(static_cast<Key>(ends.second - low));
    const auto sort_as = [&]<class Item>(Item) {
      sort_long_line<Item>(
          length_, bits, [=](int64_t i) { return static_cast<Key>(key_at(i) - low); },
          [&](int64_t k, const Item* items, int64_t n) {
            for (int64_t end = std::min(k + n, count); k < end; ++k, ++items)
              write(k, static_cast<Key>(key_in(*items) + low), place_in(*items));
          });
    };
    if (bits <= 32)
      sort_as(uint64_t{});
    else
      sort_as(WidePair{});
  }
  template <class KeyAt>
  std::pair<Key, Key> range(KeyAt key_at) const {
    const int64_t chunks = length_ / kGrain;
    const Scratch<std::pair<Key, Key>> ranges(chunks);
    parallel_for(0, chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        Key low = key_at(chunk * kGrain), high = low;
        const int64_t last = chunk + 1 == chunks ? length_ : (chunk + 1) * kGrain;
        for (int64_t i = chunk * kGrain; i < last; ++i) {
          low = std::min(low, key_at(i));
          high = std::max(high, key_at(i));
        }
        ranges[chunk] = {low, high};
      }
    });
    std::pair<Key, Key> all = ranges[0];
    for (int64_t chunk = 1; chunk < chunks; ++chunk)
      all = {std::min(all.first, ranges[chunk].first), std::max(all.second, ranges[chunk].second)};
    return all;
  }

  template <class Body>
  void with_keys(const T* line, int64_t stride, Body&& body) {
    if (!order_) order_.emplace(length_);
    fill_keys(line, stride, order_->keys(), length_, descending_);
    if constexpr (sizeof(Key) == 8) {
      if (narrow(order_->keys())) return body(*narrow_);
    }
    body(*order_);
  }
  static void fill_keys(const T* line, int64_t stride, Key* keys, int64_t n, bool descending) {
    if (stride == 1)
      for (int64_t i = 0; i < n; ++i) keys[i] = key_of(line[i], descending);
    else
      for (int64_t i = 0; i < n; ++i) keys[i] = key_of(line[i * stride], descending);
  }
  bool narrow(const Key* keys) {
    Key low = keys[0], high = keys[0];
    for (int64_t i = 1; i < length_; ++i) {
      low = std::min(low, keys[i]);
      high = std::max(high, keys[i]);
    }
    if (high - low > 0xffffffff) return false;
    if (!narrow_) narrow_.emplace(length_);
    uint32_t* to = narrow_->keys();
    for (int64_t i = 0; i < length_; ++i) to[i] = static_cast<uint32_t>(keys[i] - low);
    return true;
  }

  int64_t length_;
  bool descending_;
  std::optional<KeyOrder<Key>> order_;
  std::optional<KeyOrder<uint32_t>> narrow_;
  std::optional<Scratch<uint32_t>> places_;
};

// Computes outputs 0 (values) and 1 (indices) from the lines of the first operand. `write` is called for line i with its sorter,
// its first element (the others follow at a distance of span.inner) and both outputs.
template <class Write>
void from_sorted_lines(KernelCall& call, const AxisSpan& span, bool descending, Write&& write) {
  internal_check(span.length <= int64_t{UINT32_MAX}, "a line of {} elements is too long to sort",
                 span.length);
  if (call.out(0).numel == 0) return;
  visit_wide<kBools | kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> x(call.in(0));
    const Result<T> result(call.out(0));
    auto* places = static_cast<int64_t*>(call.out(1).data);
    parallel_for(0, span.lines(), std::max<int64_t>(1, kGrain / 16 / span.length),
                 [&](int64_t begin, int64_t end) {
                   LineSorter<T> sorter(span.length, descending);
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t outer = i / span.inner, inner = i % span.inner;
                     const T* line = x.data() + outer * span.length * span.inner + inner;
                     write(sorter, line, i, result.data(), places);
                   }
                 });
    result.finish();
  });
}

}  // namespace oar::cpu
