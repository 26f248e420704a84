// Losses of pairs, element by element, with their sum or mean made on the way, and their slopes.
#include <string_view>

#include "oar/backend/cpu/blocks.h"
#include "oar/backend/cpu/log_math.h"

namespace oar::cpu {
namespace {

// Each loss: value(x, y) and its derivative in x. `a` and `b` are the settings of the call.
template <class C>
struct Settings {
  C a, b;
};

template <class C>
struct SquareLoss : Settings<C> {
  C value(C x, C y) const { return (x - y) * (x - y); }
  C slope(C x, C y) const { return 2 * (x - y); }
};
template <class C>
struct AbsoluteLoss : Settings<C> {
  C value(C x, C y) const { return std::abs(x - y); }
  C slope(C x, C y) const { return x > y ? C(1) : x < y ? C(-1) : x - y; }
};
template <class C>
struct HuberLoss : Settings<C> {
  C value(C x, C y) const {
    const C d = x - y, size = std::abs(d);
    return size <= this->a ? d * d / 2 : this->a * (size - this->a / 2);
  }
  C slope(C x, C y) const {
    const C d = x - y;
    return d > this->a ? this->a : d < -this->a ? -this->a : d;
  }
};
template <class C>
struct LogisticLoss : Settings<C> {
  C value(C x, C y) const { return softplus_of(-x * y); }
  C slope(C x, C y) const { return -y * logistic_of(-x * y); }
};
template <class C>
struct BinaryEntropy : Settings<C> {
  C value(C x, C y) const { return (1 - y) * x + softplus_of(-x); }
  C slope(C x, C y) const { return logistic_of(x) - y; }
};
template <class C>
struct FocalLoss : Settings<C> {
  C weight(C y) const { return this->a * y + (1 - this->a) * (1 - y); }
  C miss(C p, C y) const { return p + y - 2 * p * y; }
  C value(C x, C y) const {
    const C entropy = (1 - y) * x + softplus_of(-x);
    return weight(y) * std::pow(miss(logistic_of(x), y), this->b) * entropy;
  }
  C slope(C x, C y) const {
    const C p = logistic_of(x), q = miss(p, y), gamma = this->b;
    C made = std::pow(q, gamma) * (p - y);
    if (gamma != 0)
      made += gamma * std::pow(q, gamma - 1) * (1 - 2 * y) * p * (1 - p) *
              ((1 - y) * x + softplus_of(-x));
    return weight(y) * made;
  }
};
template <class C>
struct HingeEmbedding : Settings<C> {
  C value(C x, C y) const {
    const C short_of = this->a - x;
    return y == 1 ? x : y == -1 ? (short_of < 0 ? C(0) : short_of) : C(0);
  }
  C slope(C x, C y) const { return y == 1 ? C(1) : y == -1 && x < this->a ? C(-1) : C(0); }
};
// Stirling's approximation of log(y!), which Poisson losses add where y > 1 if `a` is set.
template <class C>
C log_factorial(C y) {
  constexpr C kLog2Pi = C(1.8378770664093454836);
  const C log_y = log_of(y > 1 ? y : C(1));
  return y > 1 ? y * log_y - y + (kLog2Pi + log_y) / 2 : C(0);
}
template <class C>
struct PoissonOfLog : Settings<C> {
  C value(C x, C y) const { return exp_of(x) - y * x + (this->a != 0 ? log_factorial(y) : C(0)); }
  C slope(C x, C y) const { return exp_of(x) - y; }
};
template <class C>
struct Poisson : Settings<C> {
  C value(C x, C y) const {
    return x - y * log_of(x + this->b) + (this->a != 0 ? log_factorial(y) : C(0));
  }
  C slope(C x, C y) const { return 1 - y / (x + this->b); }
};
template <class C>
struct Divergence : Settings<C> {
  C value(C x, C y) const { return y > 0 ? y * (log_of(y > 0 ? y : C(1)) - x) : C(0); }
  C slope(C, C y) const { return y > 0 ? -y : C(0); }
};
template <class C>
struct DivergenceOfLog : Settings<C> {
  C value(C x, C y) const { return exp_of(y) * (y - x); }
  C slope(C, C y) const { return -exp_of(y); }
};

// body(loss) with the loss that a call names.
template <class C, class Body>
void with_loss(const KernelCall& call, int first, Body&& body) {
  const std::string_view kind = call.arg(first).as_string();
  const Settings<C> s{static_cast<C>(call.arg(first + 1).as_double()),
                      static_cast<C>(call.arg(first + 2).as_double())};
  if (kind == "square") return body(SquareLoss<C>{s});
  if (kind == "absolute") return body(AbsoluteLoss<C>{s});
  if (kind == "huber") return body(HuberLoss<C>{s});
  if (kind == "logistic") return body(LogisticLoss<C>{s});
  if (kind == "binary_entropy") return body(BinaryEntropy<C>{s});
  if (kind == "focal") return body(FocalLoss<C>{s});
  if (kind == "hinge_embedding") return body(HingeEmbedding<C>{s});
  if (kind == "poisson_of_log") return body(PoissonOfLog<C>{s});
  if (kind == "poisson") return body(Poisson<C>{s});
  if (kind == "divergence") return body(Divergence<C>{s});
  return body(DivergenceOfLog<C>{s});
}

// What a mean is multiplied by; of nothing it is not a number.
template <class C>
C share_of(std::string_view reduction, int64_t n) {
  return reduction == "mean" ? C(1) / static_cast<C>(n) : C(1);
}

void pointwise_loss(KernelCall& call) {
  const std::string_view reduction = call.arg(5).as_string();
  const oar_tensor &input = call.in(0), &label = call.in(1);
  in_precision_of(call.dtype(), [&](auto zero) {
    using C = decltype(zero);
    with_loss<C>(call, 2, [&](const auto& loss) {
      if (reduction == "none") {
        in_blocks<1, 1, C, 3>({&call.out(), &input, &label}, [loss](C(*b)[kBlock], int64_t) {
          for (int64_t i = 0; i < kBlock; ++i) b[0][i] = loss.value(b[1][i], b[2][i]);
        });
        return;
      }
      const C total = block_sum<C, 2>({&input, &label}, [loss](const C(*b)[kBlock], C* made) {
        for (int64_t i = 0; i < kBlock; ++i) made[i] = loss.value(b[0][i], b[1][i]);
      });
      const C result = total * share_of<C>(reduction, input.numel);
      transfer_of<C>(call.out()).store(static_cast<char*>(call.out().data), 0, 1, &result);
    });
  });
}

void pointwise_loss_grad(KernelCall& call) {
  const std::string_view reduction = call.arg(6).as_string();
  const oar_tensor &input = call.in(0), &label = call.in(1), &grad = call.in(2);
  in_precision_of(call.dtype(), [&](auto zero) {
    using C = decltype(zero);
    with_loss<C>(call, 3, [&](const auto& loss) {
      if (reduction == "none") {
        in_blocks<1, 1, C, 4>({&call.out(), &input, &label, &grad}, [loss](C(*b)[kBlock], int64_t) {
          for (int64_t i = 0; i < kBlock; ++i) b[0][i] = loss.slope(b[1][i], b[2][i]) * b[3][i];
        });
        return;
      }
      const C factor = static_cast<C>(scalar_of(grad)) * share_of<C>(reduction, input.numel);
      in_blocks<1, 1, C, 3>({&call.out(), &input, &label}, [=](C(*b)[kBlock], int64_t) {
        for (int64_t i = 0; i < kBlock; ++i) b[0][i] = loss.slope(b[1][i], b[2][i]) * factor;
      });
    });
  });
}

}  // namespace

KernelList pointwise_loss_kernels() {
  static const oar_kernel list[] = {
      {"pointwise_loss", 1, "cpu:ref", nullptr, kernel_entry<pointwise_loss>},
      {"pointwise_loss_grad", 1, "cpu:ref", nullptr, kernel_entry<pointwise_loss_grad>},
  };
  return list;
}

}  // namespace oar::cpu
