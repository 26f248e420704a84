// Boxes that remain after those that overlap better ones are dropped.
#include <cmath>
#include <map>

#include "oar/backend/cpu/boxes/overlap.h"
#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {
namespace {

constexpr auto kAll = [](auto) { return true; };

std::vector<int32_t> taken(const std::vector<int32_t>& order, const std::vector<int32_t>& kept) {
  std::vector<int32_t> numbers;
  numbers.reserve(kept.size());
  for (const int32_t k : kept) numbers.push_back(order[static_cast<size_t>(k)]);
  return numbers;
}

// The boxes of each category, best first; only those of the given categories.
std::vector<std::vector<int32_t>> by_category(const std::vector<int32_t>& order,
                                              const int64_t* category, Ints categories) {
  std::map<int64_t, std::vector<int32_t>> groups;
  for (const int64_t c : categories) groups[c];
  for (const int32_t i : order)
    if (const auto group = groups.find(category[i]); group != groups.end())
      group->second.push_back(i);
  std::vector<std::vector<int32_t>> lists;
  for (auto& [number, list] : groups) lists.push_back(std::move(list));
  return lists;
}

template <class C>
std::vector<int32_t> chosen_boxes(const KernelCall& call) {
  const Compact<C> boxes(call.in(0));
  const int64_t n = call.in(0).shape[0];
  const auto limit = static_cast<C>(static_cast<float>(call.arg(1).as_double()));
  const OverlapRule<C> rule{0, false};
  const oar_tensor *scores = optional_in(call, 2), *categories = optional_in(call, 3);
  if (!scores) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    return greedy(SortedBoxes<C>(boxes.data(), order, 4, rule), limit);
  }
  const Copied<double> values(*scores);  // whatever their dtype
  const std::vector<int32_t> order = best_first(values.data(), n, 1, -1, kAll);
  if (!categories) return taken(order, greedy(SortedBoxes<C>(boxes.data(), order, 4, rule), limit));
  const Copied<int64_t> category(*categories);
  auto groups = by_category(order, category.data(), call.arg(4).as_ints());
  parallel_for(0, static_cast<int64_t>(groups.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      std::vector<int32_t>& group = groups[static_cast<size_t>(g)];
      group = taken(group, greedy(SortedBoxes<C>(boxes.data(), group, 4, rule), limit));
    }
  });
  std::vector<uint8_t> kept(static_cast<size_t>(n), 0);
  for (const auto& group : groups)
    for (const int32_t i : group) kept[static_cast<size_t>(i)] = 1;
  std::vector<int32_t> best;
  for (const int32_t i : order)
    if (kept[static_cast<size_t>(i)]) best.push_back(i);
  if (call.has(5) && call.arg(5).as_int() < static_cast<int64_t>(best.size()))
    best.resize(static_cast<size_t>(call.arg(5).as_int()));
  return best;
}

// Boxes are numbered in 32 bits.
void check_count(int64_t boxes) {
  user_check(boxes < std::numeric_limits<int32_t>::max(), ErrorKind::InvalidArgument,
             "there are {} boxes, more than can be numbered in 32 bits.", boxes);
}

void nms(KernelCall& call) {
  check_count(call.in(0).shape[0]);
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    const auto kept = chosen_boxes<typename decltype(tag)::type>(call);
    const auto count = static_cast<int64_t>(kept.size());
    std::ranges::copy(kept, static_cast<int64_t*>(call.allocate(0, Ints(&count, 1)).data));
  });
}

// A box of the result.
template <class C>
struct Found {
  int32_t label, box;
  C score;
};

// Writes what each image found: class, score and box; the number among all boxes; the count.
// box_of(image, found) is where the box is, number_of(image, found) its number.
template <class C, class BoxOf, class NumberOf>
void write_found(KernelCall& call, const std::vector<std::vector<Found<C>>>& images, BoxOf&& box_of,
                 NumberOf&& number_of) {
  int64_t total = 0;
  auto* counts = static_cast<int32_t*>(call.out(2).data);
  for (size_t i = 0; i < images.size(); ++i) {
    counts[i] = static_cast<int32_t>(images[i].size());
    total += counts[i];
  }
  const int64_t rows[] = {total, 6}, numbers[] = {total, 1};
  const Result<C> out(call.allocate(0, Ints(rows, 2)));
  auto* number = static_cast<int32_t*>(call.allocate(1, Ints(numbers, 2)).data);
  C* to = out.data();
  for (size_t i = 0; i < images.size(); ++i)
    for (const Found<C>& f : images[i]) {
      *to++ = static_cast<C>(f.label);
      *to++ = f.score;
      to = std::copy_n(box_of(static_cast<int64_t>(i), f), 4, to);
      *number++ = static_cast<int32_t>(number_of(static_cast<int64_t>(i), f));
    }
  out.finish();
}

struct Decay {
  bool gaussian;
  double sigma;
  template <class C>
  C operator()(C overlap, C most) const {
    if (gaussian) return std::exp((most * most - overlap * overlap) * static_cast<C>(sigma));
    return (1 - overlap) / (1 - most);
  }
};

// The boxes of one class with their lowered scores.
template <class C>
void decayed(const C* boxes, const C* scores, const std::vector<int32_t>& order, C one, C least,
             const Decay& decay, int32_t label, std::vector<Found<C>>& out) {
  const SortedBoxes<C> sorted(boxes, order, 4, {one, true});
  const size_t n = order.size();
  std::vector<C> overlaps(n), most(n, C(0));
  for (size_t i = 0; i < n; ++i) {
    C lowest = 1;
    for (size_t k = 0; k < i; ++k) {
      overlaps[k] = sorted.overlap(i, k);
      most[i] = std::max(most[i], overlaps[k]);
    }
    for (size_t k = 0; k < i; ++k) lowest = std::min(lowest, decay(overlaps[k], most[k]));
    const C score = lowest * scores[order[i]];
    if (score > least) out.push_back({label, order[i], score});
  }
}

template <class C>
void keep_best(std::vector<Found<C>>& found, int64_t most) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Found<C>& a, const Found<C>& b) { return a.score > b.score; });
  if (most >= 0 && most < static_cast<int64_t>(found.size()))
    found.erase(found.begin() + most, found.end());
}

// To the type of the boxes, by way of float: thresholds are floats in Paddle.
template <class C>
C number(const KernelCall& call, int i) {
  return static_cast<C>(static_cast<float>(call.arg(i).as_double()));
}

void matrix_nms(KernelCall& call) {
  const oar_tensor& x = call.in(1);
  const int64_t images = x.shape[0], classes = x.shape[1], boxes = x.shape[2];
  check_count(images * boxes);
  const Decay decay{call.arg(6).as_bool(), call.arg(7).as_double()};
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> all(call.in(0)), scores(x);
    const C least = number<C>(call, 2), after = number<C>(call, 5);
    std::vector<std::vector<Found<C>>> by_class(static_cast<size_t>(images * classes)),
        found(static_cast<size_t>(images));
    parallel_for(0, images * classes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        if (k % classes == call.arg(8).as_int()) continue;
        const C* own = scores.data() + k * boxes;
        const auto order =
            best_first(own, boxes, 1, call.arg(3).as_int(), [&](C score) { return score > least; });
        decayed(all.data() + k / classes * boxes * 4, own, order,
                call.arg(9).as_bool() ? C(0) : C(1), after, decay,
                static_cast<int32_t>(k % classes), by_class[static_cast<size_t>(k)]);
      }
    });
    for (int64_t k = 0; k < images * classes; ++k) {
      auto& image = found[static_cast<size_t>(k / classes)];
      const auto& more = by_class[static_cast<size_t>(k)];
      image.insert(image.end(), more.begin(), more.end());
    }
    for (auto& image : found) keep_best(image, call.arg(4).as_int());
    write_found<C>(
        call, found,
        [&](int64_t i, const Found<C>& f) { return all.data() + (i * boxes + f.box) * 4; },
        [&](int64_t i, const Found<C>& f) { return i * boxes + f.box; });
  });
}

// Where the boxes of each image begin, and their end: [images, …] or rows that rois_num counts.
std::vector<int64_t> starts_of(const KernelCall& call, bool by_row) {
  const oar_tensor& scores = call.in(1);
  std::vector<int64_t> starts{0};
  if (!by_row) {
    for (int64_t i = 0; i < scores.shape[0]; ++i) starts.push_back((i + 1) * scores.shape[2]);
    return starts;
  }
  const Copied<int64_t> counts(call.in(2));
  for (int64_t i = 0; i < call.in(2).numel; ++i) {
    const int64_t count = counts.data()[i];
    user_check(count >= 0 && count <= scores.shape[0] - starts.back(), ErrorKind::InvalidArgument,
               "rois_num of image {} is {}, but {} of the {} boxes are left.", i, count,
               scores.shape[0] - starts.back(), scores.shape[0]);
    starts.push_back(starts.back() + count);
  }
  return starts;
}

// Boxes [count, classes, 4] if by_row, else the same [count, 4] for all classes.
template <class C>
struct ClassBoxes {
  const C *boxes, *scores;
  int64_t classes, count;
  bool by_row;
  const C* boxes_of(int64_t image_start, int64_t label) const {
    return by_row ? boxes + (image_start * classes + label) * 4 : boxes + image_start * 4;
  }
  int64_t box_stride() const { return by_row ? classes * 4 : 4; }
  const C* scores_of(int64_t image, int64_t image_start, int64_t label) const {
    return by_row ? scores + image_start * classes + label
                  : scores + (image * classes + label) * count;
  }
  int64_t score_stride() const { return by_row ? classes : 1; }
};

template <class C>
std::vector<Found<C>> multiclass_image(const KernelCall& call, const ClassBoxes<C>& b,
                                       int64_t image, int64_t start, int64_t count) {
  std::vector<Found<C>> found;
  const C least = number<C>(call, 3), limit = number<C>(call, 6), eta = number<C>(call, 8);
  const OverlapRule<C> rule{call.arg(7).as_bool() ? C(0) : C(1), true};
  for (int64_t label = 0; label < b.classes; ++label) {
    if (label == call.arg(9).as_int()) continue;
    const C* scores = b.scores_of(image, start, label);
    const auto order = best_first(scores, count, b.score_stride(), call.arg(4).as_int(),
                                  [&](C score) { return score > least; });
    auto kept = taken(
        order,
        greedy(SortedBoxes<C>(b.boxes_of(start, label), order, b.box_stride(), rule), limit, eta));
    if (b.by_row) std::ranges::sort(kept);
    for (const int32_t i : kept)
      found.push_back({static_cast<int32_t>(label), i, scores[i * b.score_stride()]});
  }
  const int64_t most = call.arg(5).as_int();
  if (most < 0 || static_cast<int64_t>(found.size()) <= most) return found;
  keep_best(found, most);
  std::stable_sort(found.begin(), found.end(), [&](const Found<C>& x, const Found<C>& y) {
    return x.label != y.label ? x.label < y.label : b.by_row && x.box < y.box;
  });
  return found;
}

void multiclass_nms3(KernelCall& call) {
  const oar_tensor& scores = call.in(1);
  const bool by_row = scores.ndim == 2;
  check_count(call.in(0).numel / 4);
  const std::vector<int64_t> starts = starts_of(call, by_row);
  const int64_t classes = scores.shape[1];
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> boxes(call.in(0)), values(scores);
    const ClassBoxes<C> b{boxes.data(), values.data(), classes, by_row ? 0 : scores.shape[2],
                          by_row};
    std::vector<std::vector<Found<C>>> found(starts.size() - 1);
    parallel_for(0, static_cast<int64_t>(found.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const auto i = static_cast<size_t>(k);
        found[i] = multiclass_image(call, b, k, starts[i], starts[i + 1] - starts[i]);
      }
    });
    const auto place = [&](int64_t i, const Found<C>& f) {
      const int64_t row = starts[static_cast<size_t>(i)] + f.box;
      return by_row ? row * classes + f.label : row;
    };
    write_found<C>(
        call, found, [&](int64_t i, const Found<C>& f) { return boxes.data() + place(i, f) * 4; },
        place);
  });
}

}  // namespace

KernelList nms_kernels() {
  static const oar_kernel list[] = {
      {"nms", 1, "cpu:generic", nullptr, kernel_entry<nms>},
      {"matrix_nms", 1, "cpu:generic", nullptr, kernel_entry<matrix_nms>},
      {"multiclass_nms3", 1, "cpu:generic", nullptr, kernel_entry<multiclass_nms3>},
  };
  return list;
}

}  // namespace oar::cpu
