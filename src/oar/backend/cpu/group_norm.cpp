// Group normalisation with its derivative: groups of channels within a sample.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/loops/streaming.h"
#include "oar/backend/cpu/rows/row_buffer.h"
#include "oar/backend/cpu/rows/row_table.h"

namespace oar::cpu {
namespace {

// A group is a run of memory, and within it each channel is one.
struct GroupSpan {
  GroupSpan(const oar_tensor& x, int64_t given)
      : batch(x.shape[0]), channels(x.shape[1]), groups(given == 0 ? channels : given) {
    for (int i = 2; i < x.ndim; ++i) inner *= x.shape[i];
    share = groups == 0 ? 0 : channels / groups;
  }
  int64_t length() const { return share * inner; }
  // body(group of the batch, its first channel, its first element).
  template <class Body>
  void each(Body&& body) const {
    parallel_for(0, batch * groups,
                 std::max<int64_t>(1, kGrain / 4 / std::max<int64_t>(length(), 1)),
                 [&](int64_t begin, int64_t end) {
                   const StreamFence fence;
                   for (int64_t i = begin; i < end; ++i) body(i, i % groups * share, i * length());
                 });
  }
  int64_t batch, channels, groups, inner = 1, share;
};

void group_norm_rows(KernelCall& call) {
  const GroupSpan span(call.in(0), call.arg(3).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const RowTable<C>& table = row_table<C>();
    const auto epsilon = static_cast<C>(call.arg(4).as_double());
    const auto n = static_cast<C>(span.length());
    const Contiguous<T> x(call.in(0));
    const Converted<C> weight(optional_in(call, 1)), bias(optional_in(call, 2));
    auto* out = static_cast<T*>(call.out(0).data);
    auto *means = static_cast<C*>(call.out(1).data), *invs = static_cast<C*>(call.out(2).data);
    const bool stream = streams<T>(call.out(0));
    span.each([&](int64_t group, int64_t channel, int64_t start) {
      const RowBuffer<T> in(span.length()), made(span.length());
      const C* from = in.read(x.data() + start);
      C* to = made.place(out + start);
      const C mean = table.sum(from, span.length()) / n;
      const C inv = 1 / std::sqrt(table.spread(from, span.length(), mean) / n + epsilon);
      for (int64_t c = 0; c < span.share; ++c)
        table.affine(from + c * span.inner, to + c * span.inner, span.inner, mean,
                     weight ? inv * weight[channel + c] : inv, bias ? bias[channel + c] : C(0),
                     stream);
      made.finish(out + start);
      means[group] = mean;
      invs[group] = inv;
    });
  });
}

void group_norm_rows_grad(KernelCall& call) {
  const GroupSpan span(call.in(0), call.arg(7).as_int());
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const RowTable<C>& table = row_table<C>();
    const auto n = static_cast<C>(span.length());
    const int64_t inner = span.inner;
    const Contiguous<T> x(call.in(0)), grad(call.in(4));
    const Converted<C> weight(optional_in(call, 1)), mean(&call.in(2)), inv(&call.in(3)),
        grad_mean(&call.in(5)), grad_inv(&call.in(6));
    auto* out = static_cast<T*>(call.out(0).data);
    const Scratch<C> levels(span.batch * span.channels), slopes(span.batch * span.channels);
    const bool stream = streams<T>(call.out(0));
    span.each([&](int64_t group, int64_t channel, int64_t start) {
      const RowBuffer<T> xs(span.length()), grads(span.length()), made(span.length());
      const C *from = xs.read(x.data() + start), *g = grads.read(grad.data() + start);
      C* to = made.place(out + start);
      const C m = mean[group], s = inv[group];
      C level = 0, slope = 0;
      for (int64_t c = 0; c < span.share; ++c) {
        C &of_level = levels[group * span.share + c], &of_slope = slopes[group * span.share + c];
        table.norm_sums(g + c * inner, nullptr, from + c * inner, inner, m, &of_level, &of_slope);
        level += weight ? of_level * weight[channel + c] : of_level;
        slope += weight ? of_slope * weight[channel + c] : of_slope;
        of_slope *= s;
      }
      level = level / n - grad_mean[group] / (n * s);
      slope = (slope + grad_inv[group]) * s * s / n;
      for (int64_t c = 0; c < span.share; ++c)
        table.affine_grad(g + c * inner, from + c * inner, to + c * inner, inner, m,
                          weight ? s * weight[channel + c] : s, -s * slope, -s * level, stream);
      made.finish(out + start);
    });
    auto *gw = static_cast<C*>(call.out(1).data), *gb = static_cast<C*>(call.out(2).data);
    std::fill_n(gw, span.channels, C(0));
    std::fill_n(gb, span.channels, C(0));
    for (int64_t i = 0; i < span.batch * span.channels; ++i) {
      gw[i % span.channels] += slopes[i];
      gb[i % span.channels] += levels[i];
    }
  });
}

}  // namespace

KernelList group_norm_kernels() {
  static const oar_kernel list[] = {
      {"group_norm_rows", 1, vector_name(), nullptr, kernel_entry<group_norm_rows>},
      {"group_norm_rows_grad", 1, vector_name(), nullptr, training_entry<group_norm_rows_grad>},
  };
  return list;
}

}  // namespace oar::cpu
