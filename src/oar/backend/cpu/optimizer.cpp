// Fused parameter updates: each tensor is read and written once. 16-bit floats compute in float32.
#include <cmath>

#include "oar/backend/cpu/blocks.h"
#include "oar/backend/cpu/loops.h"

namespace oar::cpu {
namespace {

// Rows of the gradient one after the other, since they may repeat.
template <class C>
void sgd_rows(const Tensor& param, const SelectedRows& grad, C lr) {
  const Tensor &rows = grad.rows, &values = grad.values;
  const int64_t height = param->shape[0], width = height ? param->numel / height : 0;
  const auto size = static_cast<int64_t>(size_of(param.dtype()));
  for (int64_t i = 0; i < rows->numel; ++i) {
    const int64_t row =
        load_integer(static_cast<char*>(rows->data) +
                         i * rows->strides[0] * static_cast<int64_t>(size_of(rows.dtype())),
                     rows.dtype());
    user_check(row >= 0 && row < height, ErrorKind::OutOfRange,
               "a gradient names row {} of a parameter with {} rows.", row, height);
    oar_tensor p = *param.impl(), g = *values.impl();
    const auto drop_first = [&](oar_tensor& t, int64_t index, int64_t bytes) {
      t.data = static_cast<char*>(t.data) + index * t.strides[0] * bytes;
      ++t.shape;
      ++t.strides;
      --t.ndim;
      t.numel = width;
    };
    drop_first(p, row, size);
    drop_first(g, i, static_cast<int64_t>(size_of(values.dtype())));
    update_blocks<1, C, 2>({&p, &g}, [lr](C(*b)[kBlock]) {
      for (int64_t k = 0; k < kBlock; ++k) b[0][k] -= lr * b[1][k];
    });
  }
}

void sgd(KernelCall& call) {
  const TensorList params = call.arg(0).as_tensors(), grads = call.arg(1).as_tensors();
  for (size_t i = 0; i < params.size(); ++i)
    in_precision_of(params[i].dtype(), [&](auto zero) {
      using C = decltype(zero);
      const C lr = static_cast<C>(scalar_of(call.in(2)));
      const C decay = static_cast<C>(call.arg(3).as_double());
      if (grads[i].kind() == Kind::SelectedRows) {
        if (decay != 0)
          update_blocks<1, C, 1>({params[i].impl()}, [=](C(*b)[kBlock]) {
            for (int64_t k = 0; k < kBlock; ++k) b[0][k] -= lr * (decay * b[0][k]);
          });
        return sgd_rows<C>(params[i], selected_rows(grads[i]), lr);
      }
      update_blocks<1, C, 2>({params[i].impl(), grads[i].impl()}, [=](C(*b)[kBlock]) {
        for (int64_t k = 0; k < kBlock; ++k) b[0][k] -= lr * (b[1][k] + decay * b[0][k]);
      });
    });
}

void momentum(KernelCall& call) {
  const TensorList params = call.arg(0).as_tensors(), grads = call.arg(1).as_tensors(),
                   velocities = call.arg(2).as_tensors();
  const bool nesterov = call.arg(5).as_bool();
  for (size_t i = 0; i < params.size(); ++i)
    in_precision_of(params[i].dtype(), [&](auto zero) {
      using C = decltype(zero);
      const C lr = static_cast<C>(scalar_of(call.in(3))),
              mu = static_cast<C>(call.arg(4).as_double()),
              decay = static_cast<C>(call.arg(6).as_double());
      update_blocks<2, C, 3>({params[i].impl(), velocities[i].impl(), grads[i].impl()},
                             [=](C(*b)[kBlock]) {
                               for (int64_t k = 0; k < kBlock; ++k) {
                                 const C grad = b[2][k] + decay * b[0][k];
                                 b[1][k] = mu * b[1][k] + grad;
                                 b[0][k] -= lr * (nesterov ? grad + mu * b[1][k] : b[1][k]);
                               }
                             });
    });
}

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
        update_blocks<3, C, 4>(
            {params[i].impl(), moments1[i].impl(), moments2[i].impl(), grads[i].impl()},
            [=](C(*b)[kBlock]) { step(b[0], b[1], b[2], b[3]); });
      else
        update_blocks<4, C, 5>({params[i].impl(), masters[i].impl(), moments1[i].impl(),
                                moments2[i].impl(), grads[i].impl()},
                               [=](C(*b)[kBlock]) {
                                 step(b[1], b[2], b[3], b[4]);
                                 std::copy_n(b[1], kBlock, b[0]);
                               });
    });
}

}  // namespace

KernelList optimizer_kernels() {
  static const oar_kernel list[] = {
      {"sgd_", 1, "cpu:ref", nullptr, kernel_entry<sgd>},
      {"momentum_", 1, "cpu:ref", nullptr, kernel_entry<momentum>},
      {"adamw_", 1, "cpu:ref", nullptr, kernel_entry<adamw>},
  };
  return list;
}

}  // namespace oar::cpu
