// Elements of two tensors, chosen by a condition.
#include "oar/backend/cpu/loops/copy.h"

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

}  // namespace

KernelList masking_kernels() {
  static const oar_kernel list[] = {
      {"where", 1, "cpu:generic", nullptr, kernel_entry<where>},
  };
  return list;
}

}  // namespace oar::cpu
