// How much boxes overlap, and the boxes that remain after those that overlap better ones are dropped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace oar::cpu {

// What an overlap is. Paddle has two meanings, which differ in boxes without an area.
template <class C>
struct OverlapRule {
  C one;  // 1 if a box is given by its outermost pixels, else 0
  bool
      checked;  // a box whose sides are exchanged has no area, and no area against none is too much
};

// Boxes in the order of their scores, each side in an array of its own, so that one is compared with
// many at a time.
template <class C>
class SortedBoxes {
 public:
  SortedBoxes(const C* boxes, const std::vector<int32_t>& order, int64_t stride,
              OverlapRule<C> rule)
      : rule_(rule) {
    const size_t n = order.size();
    for (auto* side : {&left_, &top_, &right_, &bottom_, &area_}) side->resize(n);
    for (size_t i = 0; i < n; ++i) {
      const C* b = boxes + order[i] * stride;
      left_[i] = b[0], top_[i] = b[1], right_[i] = b[2], bottom_[i] = b[3];
      const bool exchanged = rule.checked && (b[2] < b[0] || b[3] < b[1]);
      area_[i] = exchanged ? C(0) : (b[2] - b[0] + rule.one) * (b[3] - b[1] + rule.one);
    }
  }
  size_t size() const { return left_.size(); }
  bool too_much(C overlap, C limit) const {
    return rule_.checked ? !(overlap <= limit) : overlap > limit;
  }
  // Marks the boxes after i that overlap it by more than `limit`.
  void mark(size_t i, C limit, uint8_t* dropped) const {
    const Side box = side(i);
    for (size_t k = i + 1; k < size(); ++k) dropped[k] |= too_much(overlap(box, k), limit);
  }
  C overlap(size_t i, size_t k) const { return overlap(side(i), k); }

 private:
  struct Side {
    C left, top, right, bottom, area;
  };
  Side side(size_t i) const { return {left_[i], top_[i], right_[i], bottom_[i], area_[i]}; }
  C overlap(const Side& box, size_t k) const {
    const C width = std::min(box.right, right_[k]) - std::max(box.left, left_[k]),
            height = std::min(box.bottom, bottom_[k]) - std::max(box.top, top_[k]);
    const bool apart = (width < 0) | (height < 0);
    const C both = apart ? C(0) : (width + rule_.one) * (height + rule_.one);
    // Boxes that are apart do not overlap, even if neither has an area.
    return apart && rule_.checked ? C(0) : both / (box.area + area_[k] - both);
  }
  OverlapRule<C> rule_;
  std::vector<C> left_, top_, right_, bottom_, area_;
};

// The positions, among sorted boxes, of those that overlap no better one by more than `limit`. After
// each, a limit above 0.5 is multiplied by eta if that is below 1.
template <class C>
std::vector<int32_t> greedy(const SortedBoxes<C>& boxes, C limit, C eta = 1) {
  std::vector<uint8_t> dropped(boxes.size(), 0);
  std::vector<int32_t> kept;
  const bool adapts = eta < 1;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (adapts) {
      // The limit at the time of a comparison counts, so boxes are compared when their turn comes.
      dropped[i] = std::ranges::any_of(kept, [&](int32_t k) {
        return boxes.too_much(boxes.overlap(i, static_cast<size_t>(k)), limit);
      });
    }
    if (dropped[i]) continue;
    kept.push_back(static_cast<int32_t>(i));
    if (adapts) {
      if (limit > C(0.5)) limit *= eta;
    } else {
      boxes.mark(i, limit, dropped.data());
    }
  }
  return kept;
}

// Numbers 0 to n - 1 for which `holds`, best score first; equal ones in their order. `most` < 0: all.
template <class C, class Holds>
std::vector<int32_t> best_first(const C* scores, int64_t n, int64_t step, int64_t most,
                                Holds&& holds) {
  std::vector<int32_t> order;
  for (int64_t i = 0; i < n; ++i)
    if (holds(scores[i * step])) order.push_back(static_cast<int32_t>(i));
  const auto better = [&](int32_t a, int32_t b) {
    const C x = scores[a * step], y = scores[b * step];
    const bool no_x = x != x, no_y = y != y;  // NaN comes first
    if (no_x || no_y || x == y) return no_x != no_y ? no_x : a < b;
    return x > y;
  };
  if (most >= 0 && most < static_cast<int64_t>(order.size())) {
    std::nth_element(order.begin(), order.begin() + most, order.end(), better);
    order.resize(static_cast<size_t>(most));
  }
  std::sort(order.begin(), order.end(), better);
  return order;
}

}  // namespace oar::cpu
