// Regions that may hold objects: chosen from anchors, and distributed over the levels of a pyramid.
#include <cmath>

#include "oar/backend/cpu/boxes/overlap.h"
#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {
namespace {

// What a call of generate_proposals says besides its tensors.
template <class C>
struct Choice {
  int64_t before, after;  // the most boxes before and after overlaps are removed; 0: any number
  C limit, smallest, eta, one;

  explicit Choice(const KernelCall& call)
      : before(call.arg(5).as_int()),
        after(call.arg(6).as_int()),
        limit(static_cast<C>(static_cast<float>(call.arg(7).as_double()))),
        smallest(std::max(static_cast<C>(static_cast<float>(call.arg(8).as_double())), C(1))),
        eta(static_cast<C>(static_cast<float>(call.arg(9).as_double()))),
        one(call.arg(10).as_bool() ? C(1) : C(0)) {}
};

template <class C>
struct Proposals {
  std::vector<C> boxes, scores;
};

// An anchor moved and stretched by what the network says, inside of the image.
template <class C>
std::array<C, 4> proposal(const C* anchor, const C* variance, const std::array<C, 4>& delta, C one,
                          C height, C width) {
  const C largest = std::log(C(1000) / C(16));
  const C w = anchor[2] - anchor[0] + one, h = anchor[3] - anchor[1] + one;
  const C x = variance[0] * delta[0] * w + (anchor[0] + C(0.5) * w),
          y = variance[1] * delta[1] * h + (anchor[1] + C(0.5) * h),
          half_w = std::exp(std::min(variance[2] * delta[2], largest)) * w / 2,
          half_h = std::exp(std::min(variance[3] * delta[3], largest)) * h / 2;
  const auto inside = [one](C v, C size) { return std::max(std::min(v, size - one), C(0)); };
  return {inside(x - half_w, width), inside(y - half_h, height), inside(x + half_w - one, width),
          inside(y + half_h - one, height)};
}

template <class C>
bool large_enough(const std::array<C, 4>& box, const Choice<C>& choice, C height, C width) {
  const C w = box[2] - box[0] + choice.one, h = box[3] - box[1] + choice.one;
  const bool centred = choice.one == 0 || (box[0] + w / 2 <= width && box[1] + h / 2 <= height);
  return w >= choice.smallest && h >= choice.smallest && centred;
}

// scores: [anchors, places], deltas: [anchors, 4, places], anchors and variances: [places, anchors, 4].
template <class C>
struct ImageAnchors {
  const C *scores, *deltas, *anchors, *variances;
  int64_t count, places;
};

template <class C>
Proposals<C> choose(const ImageAnchors<C>& in, const Choice<C>& choice, C height, C width) {
  const int64_t n = in.count * in.places;
  std::vector<C> scores(static_cast<size_t>(n));  // in the order of the anchors
  for (int64_t a = 0; a < in.count; ++a)
    for (int64_t p = 0; p < in.places; ++p)
      scores[static_cast<size_t>(p * in.count + a)] = in.scores[a * in.places + p];
  const auto order = best_first(scores.data(), n, 1, choice.before > 0 ? choice.before : -1,
                                [](C) { return true; });
  Proposals<C> found;
  for (const int32_t i : order) {
    const int64_t a = i % in.count, p = i / in.count;
    std::array<C, 4> delta;
    for (int k = 0; k < 4; ++k)
      delta[static_cast<size_t>(k)] = in.deltas[(a * 4 + k) * in.places + p];
    const auto box = proposal(in.anchors + int64_t{4} * i, in.variances + int64_t{4} * i, delta,
                              choice.one, height, width);
    if (!large_enough(box, choice, height, width)) continue;
    found.boxes.insert(found.boxes.end(), box.begin(), box.end());
    found.scores.push_back(scores[static_cast<size_t>(i)]);
  }
  if (found.scores.empty()) return {std::vector<C>(4, C(0)), std::vector<C>(1, C(0))};
  if (choice.limit <= 0) return found;
  std::vector<int32_t> all(found.scores.size());
  std::iota(all.begin(), all.end(), 0);
  auto kept = greedy(SortedBoxes<C>(found.boxes.data(), all, 4, {choice.one, true}), choice.limit,
                     choice.eta);
  if (choice.after > 0 && choice.after < static_cast<int64_t>(kept.size()))
    kept.resize(static_cast<size_t>(choice.after));
  Proposals<C> best;
  for (const int32_t k : kept) {
    const C* box = found.boxes.data() + int64_t{4} * k;
    best.boxes.insert(best.boxes.end(), box, box + 4);
    best.scores.push_back(found.scores[static_cast<size_t>(k)]);
  }
  return best;
}

void generate_proposals(KernelCall& call) {
  const oar_tensor& scores = call.in(0);
  const int64_t images = scores.shape[0], anchors = scores.shape[1],
                places = scores.shape[2] * scores.shape[3];
  user_check(anchors * places < std::numeric_limits<int32_t>::max(), ErrorKind::InvalidArgument,
             "there are {} anchors, more than can be numbered in 32 bits.", anchors * places);
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> s(scores), d(call.in(1)), size(call.in(2)), a(call.in(3)), v(call.in(4));
    const Choice<C> choice(call);
    std::vector<Proposals<C>> found(static_cast<size_t>(images));
    parallel_for(0, images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        found[static_cast<size_t>(i)] =
            choose<C>({s.data() + i * anchors * places, d.data() + i * anchors * places * 4,
                       a.data(), v.data(), anchors, places},
                      choice, size.data()[2 * i], size.data()[2 * i + 1]);
    });
    int64_t total = 0;
    auto* counts = static_cast<int32_t*>(call.out(2).data);
    for (const auto& f : found) {
      *counts++ = static_cast<int32_t>(f.scores.size());
      total += static_cast<int64_t>(f.scores.size());
    }
    const int64_t box_shape[] = {total, 4}, score_shape[] = {total, 1};
    const Result<C> boxes(call.allocate(0, Ints(box_shape, 2))),
        values(call.allocate(1, Ints(score_shape, 2)));
    C *box = boxes.data(), *value = values.data();
    for (const auto& f : found) {
      box = std::ranges::copy(f.boxes, box).out;
      value = std::ranges::copy(f.scores, value).out;
    }
    boxes.finish();
    values.finish();
  });
}

// The level of each box, from 0.
template <class C>
std::vector<int32_t> levels_of(const KernelCall& call, const C* boxes, int64_t count) {
  const int64_t low = call.arg(2).as_int(), high = call.arg(3).as_int();
  const auto level = static_cast<C>(call.arg(4).as_int()),
             scale = static_cast<C>(call.arg(5).as_int());
  const C one = call.arg(6).as_bool() ? C(1) : C(0);
  std::vector<int32_t> levels;
  levels.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const C *b = boxes + 4 * i, width = b[2] - b[0], height = b[3] - b[1];
    const C area = width < 0 || height < 0 ? C(0) : (width + one) * (height + one);
    const C wanted = std::floor(std::log2(std::sqrt(area) / scale + C(1e-6)) + level);
    const C inside = std::clamp(wanted, static_cast<C>(low), static_cast<C>(high));
    levels.push_back(inside == inside ? static_cast<int32_t>(inside - static_cast<C>(low)) : 0);
  }
  return levels;
}

void fpn_levels(KernelCall& call) {
  const int64_t count = call.in(0).shape[0], images = call.in(1).numel;
  const auto levels = static_cast<int>(call.arg(3).as_int() - call.arg(2).as_int() + 1);
  const Copied<int64_t> given(call.in(1));
  const int64_t sum = std::accumulate(given.data(), given.data() + images, int64_t{0});
  user_check(sum == count &&
                 std::all_of(given.data(), given.data() + images, [](int64_t n) { return n >= 0; }),
             ErrorKind::InvalidArgument, "rois_num counts {} boxes, but there are {}.", sum, count);
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> boxes(call.in(0));
    const std::vector<int32_t> level = levels_of(call, boxes.data(), count);
    auto* restore = static_cast<int32_t*>(call.out(2 * levels).data);
    int32_t before = 0;
    for (int k = 0; k < levels; ++k) {
      const int64_t shape[] = {std::ranges::count(level, k), 4};
      const Result<C> out(call.allocate(k, Ints(shape, 2)));
      auto* counts = static_cast<int32_t*>(call.out(levels + k).data);
      C* to = out.data();
      int64_t i = 0;
      for (int64_t image = 0; image < images; ++image) {
        counts[image] = 0;
        for (const int64_t end = i + given.data()[image]; i < end; ++i) {
          if (level[static_cast<size_t>(i)] != k) continue;
          to = std::copy_n(boxes.data() + 4 * i, 4, to);
          restore[i] = before++;
          ++counts[image];
        }
      }
      out.finish();
    }
  });
}

}  // namespace

KernelList proposals_kernels() {
  static const oar_kernel list[] = {
      {"generate_proposals", 1, "cpu:generic", nullptr, kernel_entry<generate_proposals>},
      {"fpn_levels", 1, "cpu:generic", nullptr, kernel_entry<fpn_levels>},
  };
  return list;
}

}  // namespace oar::cpu
