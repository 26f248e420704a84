// Fused updates by the gradient's mean square: each tensor is read and written once. 16-bit floats compute in float32.
#include <cmath>

#include "oar/backend/cpu/optimizer/update.h"

namespace oar::cpu {
namespace {

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

}  // namespace

KernelList optimizer_adagrad_kernels() {
  static const oar_kernel list[] = {
      {"adagrad_", 1, "cpu:generic", nullptr, kernel_entry<adagrad>},
      {"adadelta_", 1, "cpu:generic", nullptr, kernel_entry<adadelta>},
      {"rmsprop_", 1, "cpu:generic", nullptr, kernel_entry<rmsprop>},
  };
  return list;
}

}  // namespace oar::cpu
