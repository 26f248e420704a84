// Fused updates with adaptive steps: each tensor is read and written once, Lamb's three times.
#include <cmath>

#include "oar/backend/cpu/blocks.h"

namespace oar::cpu {
namespace {

// One update's arguments: tensors of parameter i by the place of their list.
class Update {
 public:
  explicit Update(KernelCall& call) : call_(call) {}
  size_t count() const { return call_.arg(0).as_tensors().size(); }
  const oar_tensor* at(int list, size_t i) const { return call_.arg(list).as_tensors()[i].impl(); }
  double number(int i) const { return call_.arg(i).as_double(); }
  bool flag(int i) const { return call_.arg(i).as_bool(); }
  double scalar(int i) const { return scalar_of(call_.in(i)); }
  // body(i, zero of the type that parameter i is updated in).
  template <class Body>
  void each(Body&& body) const {
    for (size_t i = 0; i < count(); ++i)
      in_precision_of(static_cast<DType>(at(0, i)->dtype), [&](auto zero) { body(i, zero); });
  }
  // A number kept for parameter i, and writing it.
  double kept(int list, size_t i) const { return scalar_of(*at(list, i)); }
  void keep(int list, size_t i, double value) const {
    store_element(at(list, i)->data, static_cast<DType>(at(list, i)->dtype), value);
  }

 private:
  KernelCall& call_;
};

void adagrad(KernelCall& call) {
  const Update u(call);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const C lr = static_cast<C>(u.scalar(3)), epsilon = static_cast<C>(u.number(4)),
            decay = static_cast<C>(u.number(5));
    update_blocks<2, C, 3>({u.at(0, i), u.at(2, i), u.at(1, i)}, [=](C(*b)[kBlock]) {
      C* __restrict param = b[0], * __restrict moment = b[1];
      for (int64_t k = 0; k < kBlock; ++k) {
        const C grad = b[2][k] + decay * param[k];
        moment[k] += grad * grad;
        param[k] -= lr * grad / (std::sqrt(moment[k]) + epsilon);
      }
    });
  });
}

void adadelta(KernelCall& call) {
  const Update u(call);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const C lr = static_cast<C>(u.scalar(4)), rho = static_cast<C>(u.number(5)),
            epsilon = static_cast<C>(u.number(6)), decay = static_cast<C>(u.number(7));
    update_blocks<3, C, 4>({u.at(0, i), u.at(2, i), u.at(3, i), u.at(1, i)}, [=](C(*b)[kBlock]) {
      C* __restrict param = b[0], * __restrict grads = b[1], * __restrict updates = b[2];
      for (int64_t k = 0; k < kBlock; ++k) {
        const C grad = b[3][k] + decay * param[k];
        grads[k] = rho * grads[k] + (1 - rho) * grad * grad;
        const C update = grad * std::sqrt((updates[k] + epsilon) / (grads[k] + epsilon));
        updates[k] = rho * updates[k] + (1 - rho) * update * update;
        param[k] -= lr * update;
      }
    });
  });
}

void adamax(KernelCall& call) {
  const Update u(call);
  const double beta1 = u.number(6);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const double power = u.kept(4, i);
    const C rate = static_cast<C>(u.scalar(5) / (1 - power)), keep1 = static_cast<C>(beta1),
            keep2 = static_cast<C>(u.number(7)), epsilon = static_cast<C>(u.number(8)),
            decay = static_cast<C>(u.number(9));
    update_blocks<3, C, 4>({u.at(0, i), u.at(2, i), u.at(3, i), u.at(1, i)}, [=](C(*b)[kBlock]) {
      C* __restrict param = b[0], * __restrict moment = b[1], * __restrict norm = b[2];
      for (int64_t k = 0; k < kBlock; ++k) {
        const C grad = b[3][k] + decay * param[k];
        moment[k] = keep1 * moment[k] + (1 - keep1) * grad;
        const C size = std::abs(grad), faded = keep2 * norm[k] + epsilon;
        norm[k] = size > faded ? size : faded;
        param[k] -= rate * (moment[k] / norm[k]);
      }
    });
    u.keep(4, i, power * beta1);
  });
}

void rmsprop(KernelCall& call) {
  const Update u(call);
  const bool centered = u.flag(9);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const C lr = static_cast<C>(u.scalar(5)), rho = static_cast<C>(u.number(6)),
            epsilon = static_cast<C>(u.number(7)), momentum = static_cast<C>(u.number(8)),
            decay = static_cast<C>(u.number(10));
    const auto step = [=](C* __restrict param, C* __restrict square, C* __restrict velocity,
                          const C* __restrict grads, C* __restrict mean) {
      for (int64_t k = 0; k < kBlock; ++k) {
        const C grad = grads[k] + decay * param[k];
        square[k] = rho * square[k] + (1 - rho) * grad * grad;
        C spread = square[k] + epsilon;
        if (mean) {
          mean[k] = rho * mean[k] + (1 - rho) * grad;
          spread -= mean[k] * mean[k];
        }
        velocity[k] = momentum * velocity[k] + lr * grad / std::sqrt(spread);
        param[k] -= velocity[k];
      }
    };
    if (centered)
      update_blocks<4, C, 5>({u.at(0, i), u.at(2, i), u.at(4, i), u.at(3, i), u.at(1, i)},
                             [=](C(*b)[kBlock]) { step(b[0], b[1], b[2], b[4], b[3]); });
    else
      update_blocks<3, C, 4>({u.at(0, i), u.at(2, i), u.at(4, i), u.at(1, i)},
                             [=](C(*b)[kBlock]) { step(b[0], b[1], b[2], b[3], nullptr); });
  });
}

template <class C>
struct LambStep {
  C inv_bias1, inv_bias2, epsilon, decay;
  C operator()(C param, C mean, C square) const {
    return mean * inv_bias1 / (std::sqrt(square * inv_bias2) + epsilon) + decay * param;
  }
};

void lamb(KernelCall& call) {
  const Update u(call);
  const double beta1 = u.number(7), beta2 = u.number(8), decay = u.number(10);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const double power1 = u.kept(4, i), power2 = u.kept(5, i);
    const LambStep<C> step{static_cast<C>(1 / (1 - power1)), static_cast<C>(1 / (1 - power2)),
                           static_cast<C>(u.number(9)), static_cast<C>(decay)};
    const C keep1 = static_cast<C>(beta1), keep2 = static_cast<C>(beta2);
    update_blocks<2, C, 3>({u.at(2, i), u.at(3, i), u.at(1, i)}, [=](C(*b)[kBlock]) {
      for (int64_t k = 0; k < kBlock; ++k) {
        b[0][k] = keep1 * b[0][k] + (1 - keep1) * b[2][k];
        b[1][k] = keep2 * b[1][k] + (1 - keep2) * b[2][k] * b[2][k];
      }
    });
    double ratio = 1;
    if (decay > 0 || u.flag(11)) {
      const C size = block_sum<C, 1>({u.at(0, i)}, [](const C(*b)[kBlock], C* made) {
        for (int64_t k = 0; k < kBlock; ++k) made[k] = b[0][k] * b[0][k];
      });
      const C step_size = block_sum<C, 3>({u.at(0, i), u.at(2, i), u.at(3, i)},
                                          [step](const C(*b)[kBlock], C* made) {
                                            for (int64_t k = 0; k < kBlock; ++k) {
                                              const C s = step(b[0][k], b[1][k], b[2][k]);
                                              made[k] = s * s;
                                            }
                                          });
      if (size > 0 && step_size > 0) ratio = std::sqrt(size) / std::sqrt(step_size);
    }
    const C rate = static_cast<C>(u.scalar(6) * ratio);
    update_blocks<1, C, 3>({u.at(0, i), u.at(2, i), u.at(3, i)}, [=](C(*b)[kBlock]) {
      for (int64_t k = 0; k < kBlock; ++k) b[0][k] -= rate * step(b[0][k], b[1][k], b[2][k]);
    });
    u.keep(4, i, power1 * beta1);
    u.keep(5, i, power2 * beta2);
  });
}

// What NAdam and RAdam share: both means move, then the parameter by by_grad * grad + by_mean *
// mean, divided by the root of the other mean or by nothing.
template <class C>
struct AdamLike {
  C beta1, beta2, epsilon, decay, by_mean, by_grad, inv_bias2;
  bool divides;
  void operator()(C* __restrict param, C* __restrict mean, C* __restrict square,
                  const C* __restrict grads) const {
    for (int64_t k = 0; k < kBlock; ++k) {
      const C grad = grads[k] + decay * param[k];
      mean[k] = beta1 * mean[k] + (1 - beta1) * grad;
      square[k] = beta2 * square[k] + (1 - beta2) * grad * grad;
      const C step = by_mean * mean[k] + by_grad * grad;
      param[k] -= divides ? step / (std::sqrt(square[k] * inv_bias2) + epsilon) : step;
    }
  }
};
template <class C>
void run_adam_like(const Update& u, size_t i, const AdamLike<C>& step) {
  update_blocks<3, C, 4>({u.at(0, i), u.at(2, i), u.at(3, i), u.at(1, i)},
                         [=](C(*b)[kBlock]) { step(b[0], b[1], b[2], b[3]); });
}

void nadam(KernelCall& call) {
  constexpr double kFade = 0.96;
  const Update u(call);
  const double lr = u.scalar(7), beta1 = u.number(8), beta2 = u.number(9),
               momentum_decay = u.number(11);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const double faded = u.kept(4, i) * kFade, power2 = u.kept(5, i) * beta2;
    const double fade = std::pow(faded, momentum_decay);
    const double share = beta1 * (1 - 0.5 * fade),
                 next = beta1 * (1 - 0.5 * fade * std::pow(kFade, momentum_decay));
    const double product = u.kept(6, i) * share;
    run_adam_like<C>(
        u, i,
        {static_cast<C>(beta1), static_cast<C>(beta2), static_cast<C>(u.number(10)),
         static_cast<C>(u.number(12)), static_cast<C>(lr * next / (1 - product * next)),
         static_cast<C>(lr * (1 - share) / (1 - product)), static_cast<C>(1 / (1 - power2)), true});
    u.keep(4, i, faded);
    u.keep(5, i, power2);
    u.keep(6, i, product);
  });
}

void radam(KernelCall& call) {
  const Update u(call);
  const double lr = u.scalar(7), beta1 = u.number(8), beta2 = u.number(9);
  const double longest = 2 / (1 - beta2) - 1;
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const double power1 = u.kept(4, i) * beta1, power2 = u.kept(5, i) * beta2;
    const double rho = (u.kept(6, i) * (beta2 - power2) + power2) / (1 - power2);
    const double length = longest - 2 * rho;
    const bool rectifies = length > 5;
    double rate = lr / (1 - power1);
    if (rectifies)
      rate *= std::sqrt((length - 4) * (length - 2) * longest /
                        ((longest - 4) * (longest - 2) * length)) *
              std::sqrt(1 - power2);
    run_adam_like<C>(u, i,
                     {static_cast<C>(beta1), static_cast<C>(beta2), static_cast<C>(u.number(10)),
                      static_cast<C>(u.number(11)), static_cast<C>(rate), C(0), C(1), rectifies});
    u.keep(4, i, power1);
    u.keep(5, i, power2);
    u.keep(6, i, rho);
  });
}

// The part of a history that belongs to one batch.
oar_tensor slot_of(const oar_tensor& history, int64_t index) {
  oar_tensor slot = history;
  const auto size = static_cast<int64_t>(size_of(static_cast<DType>(history.dtype)));
  slot.data = static_cast<char*>(history.data) + index * history.strides[0] * size;
  slot.numel = history.shape[0] ? history.numel / history.shape[0] : 0;
  ++slot.shape;
  ++slot.strides;
  --slot.ndim;
  return slot;
}

void asgd(KernelCall& call) {
  const Update u(call);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const oar_tensor& history = *u.at(3, i);
    const auto slots = history.shape[0];
    const auto steps = static_cast<int64_t>(u.kept(4, i));
    user_check(steps >= 0, ErrorKind::InvalidArgument, "counts[{}] is {}; it cannot be negative.",
               i, steps);
    const oar_tensor slot = slot_of(history, steps % slots);
    const C rate = static_cast<C>(u.scalar(5) / static_cast<double>(std::min(steps + 1, slots))),
            decay = static_cast<C>(u.number(6));
    update_blocks<3, C, 4>({u.at(0, i), u.at(2, i), &slot, u.at(1, i)}, [=](C(*b)[kBlock]) {
      C* __restrict param = b[0], * __restrict total = b[1], * __restrict old = b[2];
      for (int64_t k = 0; k < kBlock; ++k) {
        const C grad = b[3][k] + decay * param[k];
        total[k] += grad - old[k];
        old[k] = grad;
        param[k] -= rate * total[k];
      }
    });
    u.keep(4, i, static_cast<double>(steps + 1));
  });
}

void rprop(KernelCall& call) {
  const Update u(call);
  u.each([&](size_t i, auto zero) {
    using C = decltype(zero);
    const C smallest = static_cast<C>(u.number(4)), largest = static_cast<C>(u.number(5)),
            shrink = static_cast<C>(u.number(6)), grow = static_cast<C>(u.number(7));
    update_blocks<3, C, 4>({u.at(0, i), u.at(2, i), u.at(3, i), u.at(1, i)}, [=](C(*b)[kBlock]) {
      C* __restrict param = b[0], * __restrict previous = b[1], * __restrict rate = b[2];
      for (int64_t k = 0; k < kBlock; ++k) {
        const C agrees = b[3][k] * previous[k];
        const C grad = agrees < 0 ? C(0) : b[3][k];
        const C moved = rate[k] * (agrees < 0 ? shrink : agrees > 0 ? grow : C(1));
        const C raised = moved < smallest ? smallest : moved;
        rate[k] = raised > largest ? largest : raised;
        previous[k] = grad;
        param[k] -= grad > 0 ? rate[k] : grad < 0 ? -rate[k] : grad;
      }
    });
  });
}

}  // namespace

KernelList updates_kernels() {
  static const oar_kernel list[] = {
      {"adagrad_", 1, "cpu:ref", nullptr, kernel_entry<adagrad>},
      {"adadelta_", 1, "cpu:ref", nullptr, kernel_entry<adadelta>},
      {"adamax_", 1, "cpu:ref", nullptr, kernel_entry<adamax>},
      {"rmsprop_", 1, "cpu:ref", nullptr, kernel_entry<rmsprop>},
      {"lamb_", 1, "cpu:ref", nullptr, kernel_entry<lamb>},
      {"nadam_", 1, "cpu:ref", nullptr, kernel_entry<nadam>},
      {"radam_", 1, "cpu:ref", nullptr, kernel_entry<radam>},
      {"asgd_", 1, "cpu:ref", nullptr, kernel_entry<asgd>},
      {"rprop_", 1, "cpu:ref", nullptr, kernel_entry<rprop>},
  };
  return list;
}

}  // namespace oar::cpu
