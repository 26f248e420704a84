// Fused updates by running means of the gradient and its square: each tensor is read and written once,
// Lamb's three times. 16-bit floats compute in float32.
#include <cmath>

#include "oar/backend/cpu/optimizer/update.h"

namespace oar::cpu {
namespace {

template <class C>
struct AdamStep {
  C keep, rate, beta1, beta2, epsilon, inv_bias2;
  // param, moment1, moment2, grad.
  void operator()(C* __restrict param, C* __restrict moment1, C* __restrict moment2,
                  const C* __restrict grad) const {
    for (int64_t k = 0; k < kBlock; ++k) {
      moment1[k] = beta1 * moment1[k] + (1 - beta1) * grad[k];
      moment2[k] = beta2 * moment2[k] + (1 - beta2) * grad[k] * grad[k];
      const C ratio = moment1[k] / (std::sqrt(moment2[k] * inv_bias2) + epsilon);
      param[k] = param[k] * keep - rate * ratio;
    }
  }
};

void adamw(KernelCall& call) {
  const TensorList params = call.arg(0).as_tensors(), grads = call.arg(1).as_tensors(),
                   moments1 = call.arg(2).as_tensors(), moments2 = call.arg(3).as_tensors();
  const TensorList masters = call.has(10) ? call.arg(10).as_tensors() : TensorList();
  const oar_tensor& counter = call.in(5);
  const double steps = scalar_of(counter) + 1;
  store_element(counter.data, static_cast<DType>(counter.dtype), steps);
  const double lr = scalar_of(call.in(4)), beta1 = call.arg(6).as_double(),
               beta2 = call.arg(7).as_double(), decay = call.arg(9).as_double();
  const double bias1 = 1 - std::pow(beta1, steps), bias2 = 1 - std::pow(beta2, steps);
  for (size_t i = 0; i < params.size(); ++i)
    in_precision_of(params[i].dtype(), [&](auto zero) {
      using C = decltype(zero);
      const AdamStep<C> step{static_cast<C>(1 - lr * decay),
                             static_cast<C>(lr / bias1),
                             static_cast<C>(beta1),
                             static_cast<C>(beta2),
                             static_cast<C>(call.arg(8).as_double()),
                             static_cast<C>(1 / bias2)};
      if (masters.empty())
        update_in_place<3, C, 4>(
            {params[i].impl(), moments1[i].impl(), moments2[i].impl(), grads[i].impl()},
            [=](const std::array<C*, 4>& at) { step(at[0], at[1], at[2], at[3]); });
      else
        update_blocks<4, C, 5>({params[i].impl(), masters[i].impl(), moments1[i].impl(),
                                moments2[i].impl(), grads[i].impl()},
                               [=](C(*b)[kBlock]) {
                                 step(b[1], b[2], b[3], b[4]);
                                 std::copy_n(b[1], kBlock, b[0]);
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

// What NAdam and RAdam share: both means are updated, then the parameter by by_grad * grad + by_mean *
// mean, which is divided by the root of the other mean or not.
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

}  // namespace

KernelList optimizer_adam_kernels() {
  static const oar_kernel list[] = {
      {"adamw_", 1, "cpu:generic", nullptr, kernel_entry<adamw>},
      {"adamax_", 1, "cpu:generic", nullptr, kernel_entry<adamax>},
      {"lamb_", 1, "cpu:generic", nullptr, kernel_entry<lamb>},
      {"nadam_", 1, "cpu:generic", nullptr, kernel_entry<nadam>},
      {"radam_", 1, "cpu:generic", nullptr, kernel_entry<radam>},
  };
  return list;
}

}  // namespace oar::cpu
