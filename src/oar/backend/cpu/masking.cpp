// Elements chosen by a condition.
#include <cstring>

#include "oar/backend/cpu/loops/places.h"
#include "oar/backend/cpu/vector.h"
#include "oar/ops/core/infer.h"

namespace oar::cpu {
namespace {

// Which of the two operands repeats one element along the run is known when the loop is compiled.
// Both are read before the choice, which is then a select, not a branch.
template <bool kWholeX, bool kWholeY, class Word>
void select_run(Word* out, const bool* condition, const Word* x, const Word* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const Word a = x[kWholeX ? i : 0], b = y[kWholeY ? i : 0];
    out[i] = condition[i] ? a : b;
  }
}

// Only the width of an element matters.
template <class Word>
void select(KernelCall& call) {
  StridedLoop<4>({&call.out(), &call.in(0), &call.in(1), &call.in(2)})
      .run([](const auto& p, const auto& s, int64_t n) {
        constexpr int64_t kWord = sizeof(Word);
        auto* o = reinterpret_cast<Word*>(p[0]);
        const auto* c = reinterpret_cast<const bool*>(p[1]);
        const auto* x = reinterpret_cast<const Word*>(p[2]);
        const auto* y = reinterpret_cast<const Word*>(p[3]);
        if (s[0] == kWord && s[1] == 1 && s[2] == kWord && s[3] == kWord)
          return select_run<true, true>(o, c, x, y, n);
        if (s[0] == kWord && s[1] == 1 && s[2] == kWord && s[3] == 0)
          return select_run<true, false>(o, c, x, y, n);
        if (s[0] == kWord && s[1] == 1 && s[2] == 0 && s[3] == kWord)
          return select_run<false, true>(o, c, x, y, n);
        for (int64_t i = 0; i < n; ++i)
          *reinterpret_cast<Word*>(p[0] + i * s[0]) =
              c[i * s[1]] ? *reinterpret_cast<const Word*>(p[2] + i * s[2])
                          : *reinterpret_cast<const Word*>(p[3] + i * s[3]);
      });
}

void where(KernelCall& call) {
  visit_width(call.in(1), [&](auto word) { select<decltype(word)>(call); });
}

void nonzero(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  find_nonzero(x, [&](int64_t count) {
    const int64_t shape[] = {count, x.ndim};
    return static_cast<int64_t*>(call.allocate(0, Ints(shape, 2)).data);
  });
}

// Elements eight at a time, while the result has room for eight; returns how many were read.
template <class Word>
int64_t select_eights(Word*& to, const Word* end, const Word* from, const MaskRun& run) {
  int64_t i = 0;
  if constexpr (sizeof(Word) == 4)
    for (; end - to >= 8; i += 8) {
      uint64_t flags;
      std::memcpy(&flags, run.flags + i, 8);
      to += select8(to, from + i, flags);
    }
  return i;
}

void masked_select(KernelCall& call) {
  const Shape shape = broadcast_shapes(Shape(dims_of(call.in(0))), Shape(dims_of(call.in(1))));
  const LocalTensor x = LocalTensor::broadcast(call.in(0), shape),
                    mask = LocalTensor::broadcast(call.in(1), shape);
  const SmallVector<int64_t, 6> steps(x.strides, x.strides + x.ndim);
  const int64_t step = steps.empty() ? 0 : steps.back();
  void* out = nullptr;
  const auto start = [&](int64_t count) { out = call.allocate(0, Ints(&count, 1)).data; };
  visit_width(x, [&](auto word) {
    using Word = decltype(word);
    each_mask_run(mask, start, [&](const MaskRun& run) {
      const Word* from = row_of<Word>(x, run, steps);
      Word* to = static_cast<Word*>(out) + run.number;
      Word* const end = to + run.count;
      int64_t i = 0;
      if (step == 1 && run.step == 1) i = select_eights(to, end, from, run);
      // Every element is written, and overwritten by the next one unless it counts.
      for (; to < end; ++i) {
        *to = from[i * step];
        to += run.flags[i * run.step];
      }
    });
  });
}

}  // namespace

KernelList masking_kernels() {
  static const oar_kernel list[] = {
      {"where", 1, "cpu:generic", nullptr, kernel_entry<where>},
      {"nonzero", 1, "cpu:generic", nullptr, kernel_entry<nonzero>},
      {"masked_select", 1, "cpu:generic", nullptr, kernel_entry<masked_select>},
  };
  return list;
}

}  // namespace oar::cpu
