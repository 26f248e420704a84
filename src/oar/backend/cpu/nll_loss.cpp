// The negative log-likelihood of labelled classes, and the scores it selects.
#include <cstring>
#include <numeric>

#include "oar/backend/cpu/axis.h"
#include "oar/backend/cpu/hard_label.h"
#include "oar/backend/cpu/reduce.h"

namespace oar::cpu {
namespace {

// The losses of all samples, not yet reduced. An ignored one counts nothing.
template <class T>
struct Samples {
  using C = compute_t<T>;
  AxisSpan span;
  Compact<T> input;
  Converted<int64_t> label;
  Converted<C> weight;
  int64_t ignored;

  explicit Samples(const KernelCall& call)
      : span(call.in(0), 1),
        input(call.in(0)),
        label(&call.in(1)),
        weight(optional_in(call, 2)),
        ignored(call.arg(3).as_int()) {
    for (int64_t i = 0; i < span.lines(); ++i)
      user_check(
          label[i] == ignored || (label[i] >= 0 && label[i] < span.length), ErrorKind::OutOfRange,
          "label holds class {}, but there are {} classes.\nhint: Labels range from 0 to {}; "
          "pass ignore_index for one that does not count.",
          label[i], span.length, span.length - 1);
  }
  C share(int64_t i) const { return label[i] == ignored ? C(0) : weight ? weight[label[i]] : C(1); }
  C loss(int64_t i) const {
    if (label[i] == ignored) return 0;
    const int64_t line = i / span.inner * span.length + label[i];
    return -input.data()[line * span.inner + i % span.inner] * share(i);
  }
};

void nll_loss(KernelCall& call) {
  const std::string_view reduction = call.arg(4).as_string();
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Samples<T> samples(call);
    auto* out = static_cast<T*>(call.out().data);
    const int64_t n = samples.span.lines();
    if (reduction == "none") {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(samples.loss(i));
      return;
    }
    const C total = sum_of<C>(n, [&](int64_t i) { return samples.loss(i); });
    const C shares =
        reduction == "sum" ? C(1) : sum_of<C>(n, [&](int64_t i) { return samples.share(i); });
    *out = static_cast<T>(shares == 0 ? total : total / shares);
  });
}

void pick_class(KernelCall& call) {
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  const Converted<int64_t> label(&call.in(1));
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    std::fill_n(out, span.lines(), T(0.0f));
    for_each_picked(span, label, call.arg(3).as_int(), 0, span.lines(),
                    [&](int64_t i, int64_t at) { out[i] = x.data()[at]; });
  });
}

void pick_class_grad(KernelCall& call) {
  const AxisSpan span(call.out(), call.arg(3).as_int());
  const Converted<int64_t> label(&call.in(1));
  auto* bytes = static_cast<char*>(call.out().data);
  const auto size = static_cast<int64_t>(size_of(call.dtype()));
  parallel_for(0, call.out().numel, kGrain, [&](int64_t begin, int64_t end) {
    std::memset(bytes + begin * size, 0, static_cast<size_t>((end - begin) * size));
  });
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Contiguous<T> grad(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    for_each_picked(span, label, call.arg(4).as_int(), 0, span.lines(),
                    [&](int64_t i, int64_t at) { out[at] = grad.data()[i]; });
  });
}

void mean_of_picked(KernelCall& call) {
  constexpr int64_t kPiece = 4096;
  const AxisSpan span(call.in(0), call.arg(2).as_int());
  const Converted<int64_t> label(&call.in(1));
  const int64_t pieces = (span.lines() + kPiece - 1) / kPiece;
  const Scratch<double> sums(pieces), counts(pieces);
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Contiguous<T> x(call.in(0));
    parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t piece = begin; piece < end; ++piece) {
        double sum = 0;
        int64_t count = 0;
        for_each_picked(span, label, call.arg(3).as_int(), piece * kPiece,
                        std::min(span.lines(), (piece + 1) * kPiece), [&](int64_t, int64_t at) {
                          sum += static_cast<double>(static_cast<C>(x.data()[at]));
                          ++count;
                        });
        sums[piece] = sum;
        counts[piece] = static_cast<double>(count);
      }
    });
    const double sum = std::accumulate(sums.data(), sums.data() + pieces, 0.0);
    const double count = std::accumulate(counts.data(), counts.data() + pieces, 0.0);
    *static_cast<T*>(call.out(0).data) = static_cast<T>(static_cast<C>(sum / std::max(count, 1.0)));
    *static_cast<C*>(call.out(1).data) = static_cast<C>(count);
  });
}

}  // namespace

KernelList nll_loss_kernels() {
  static const oar_kernel list[] = {
      {"nll_loss", 1, "cpu:generic", nullptr, kernel_entry<nll_loss>},
      {"pick_class", 1, "cpu:generic", nullptr, kernel_entry<pick_class>},
      {"pick_class_grad", 1, "cpu:generic", nullptr, kernel_entry<pick_class_grad>},
      {"mean_of_picked", 1, "cpu:generic", nullptr, kernel_entry<mean_of_picked>},
  };
  return list;
}

}  // namespace oar::cpu
