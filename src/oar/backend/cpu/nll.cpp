// The negative log-likelihood of labelled classes.
#include "oar/backend/cpu/axis.h"
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
      user_check(label[i] == ignored || (label[i] >= 0 && label[i] < span.length),
                 ErrorKind::OutOfRange,
                 "label holds class {}, but there are {} classes.\nhint: Labels go from 0 to {}; "
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

}  // namespace

KernelList nll_kernels() {
  static const oar_kernel list[] = {
      {"nll_loss", 1, "cpu:ref", nullptr, kernel_entry<nll_loss>},
  };
  return list;
}

}  // namespace oar::cpu
