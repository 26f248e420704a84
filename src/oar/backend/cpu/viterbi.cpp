// The most probable sequence of labels.
#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {
namespace {

// One sequence. Labels of positions after its end are 0.
template <class C>
C best_path(const C* potentials, const C* transitions, int64_t labels, int64_t length, bool ends,
            int64_t* path) {
  const auto n = static_cast<size_t>(labels);
  std::vector<C> sums(potentials, potentials + labels), next(n);
  std::vector<int32_t> from(n * static_cast<size_t>(length));
  const auto add = [&](int64_t row) {
    for (size_t k = 0; k < n; ++k) sums[k] += transitions[row * labels + static_cast<int64_t>(k)];
  };
  if (ends) add(labels - 1);
  for (int64_t i = 1; i < length; ++i) {
    int32_t* chosen = from.data() + i * labels;
    std::fill(chosen, chosen + labels, 0);
    for (size_t k = 0; k < n; ++k) next[k] = sums[0] + transitions[k];
    for (size_t a = 1; a < n; ++a)
      for (size_t k = 0; k < n; ++k) {
        const C sum = sums[a] + transitions[a * n + k];
        if (sum > next[k]) next[k] = sum, chosen[k] = static_cast<int32_t>(a);
      }
    for (size_t k = 0; k < n; ++k)
      sums[k] = next[k] + potentials[i * labels + static_cast<int64_t>(k)];
  }
  if (ends && length > 0) add(labels - 2);
  const auto best = std::max_element(sums.begin(), sums.end());
  int64_t label = best - sums.begin();
  for (int64_t i = length - 1; i >= 0; --i) {
    path[i] = label;
    label = from[static_cast<size_t>(i * labels + label)];
  }
  return *best;
}

void viterbi_decode(KernelCall& call) {
  const oar_tensor& p = call.in(0);
  const int64_t batch = p.shape[0], most = p.shape[1], labels = p.shape[2];
  const Copied<int64_t> lengths(call.in(2));
  int64_t longest = 0;
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t length = lengths.data()[i];
    user_check(length >= 0 && length <= most, ErrorKind::InvalidArgument,
               "lengths[{}] is {}; potentials has {} positions.", i, length, most);
    longest = std::max(longest, length);
  }
  user_check(most > 0 || batch == 0, ErrorKind::InvalidArgument, "potentials has no positions.");
  const int64_t shape[] = {batch, longest};
  auto* paths = static_cast<int64_t*>(call.allocate(1, Ints(shape, 2)).data);
  std::fill(paths, paths + batch * longest, 0);
  const bool ends = call.arg(3).as_bool();
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> potentials(p), transitions(call.in(1));
    const Result<C> scores(call.out(0));
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        scores.data()[i] = best_path(potentials.data() + i * most * labels, transitions.data(),
                                     labels, lengths.data()[i], ends, paths + i * longest);
    });
    scores.finish();
  });
}

}  // namespace

KernelList viterbi_kernels() {
  static const oar_kernel list[] = {
      {"viterbi_decode", 1, "cpu:generic", nullptr, kernel_entry<viterbi_decode>},
  };
  return list;
}

}  // namespace oar::cpu
