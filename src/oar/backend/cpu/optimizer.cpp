// Fused parameter updates: each tensor is read and written once. 16-bit floats compute in float32.
#include <cmath>

#include "oar/backend/cpu/blocks.h"
#include "oar/backend/cpu/loops.h"

namespace oar::cpu {
namespace {

// Row numbers of a gradient, all of them rows of the parameter.
std::vector<int64_t> row_numbers(const Tensor& rows, int64_t height) {
  std::vector<int64_t> numbers(static_cast<size_t>(rows->numel));
  const int64_t step =
      numbers.empty() ? 0 : rows->strides[0] * static_cast<int64_t>(size_of(rows.dtype()));
  const char* from = static_cast<const char*>(rows->data);
  for (int64_t& row : numbers) {
    row = load_integer(from, rows.dtype());
    from += step;
    user_check(row >= 0 && row < height, ErrorKind::OutOfRange,
               "a gradient names row {} of a parameter with {} rows.", row, height);
  }
  return numbers;
}

// Each thread owns a range of the parameter's rows, so that rows which repeat are taken in order.
template <class C>
void sgd_dense_rows(const Tensor& param, const std::vector<int64_t>& rows, const Tensor& values,
                    int64_t width, C lr) {
  constexpr size_t kAhead = 16;  // rows that are asked for before they are needed
  const int64_t height = param->shape[0];
  auto* const to = static_cast<C*>(param->data);
  const auto* const from = static_cast<const C*>(values->data);
  const int64_t parts =
      values->numel <= kGrain ? 1 : std::min<int64_t>(in_parallel() ? 1 : num_threads(), height);
  parallel_chunks(parts, [&](int64_t part) {
    const int64_t first = height * part / parts, last = height * (part + 1) / parts;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size()) __builtin_prefetch(to + rows[i + kAhead] * width, 1);
      if (rows[i] < first || rows[i] >= last) continue;
      C* __restrict p = to + rows[i] * width;
      const C* __restrict g = from + static_cast<int64_t>(i) * width;
      for (int64_t k = 0; k < width; ++k) p[k] -= lr * g[k];
    }
  });
}

// Rows of the gradient one after the other, since they may repeat.
template <class C>
void sgd_rows(const Tensor& param, const SelectedRows& grad, C lr) {
  const Tensor& values = grad.values;
  const int64_t height = param->shape[0], width = height ? param->numel / height : 0;
  const std::vector<int64_t> rows = row_numbers(grad.rows, height);
  if (param.dtype() == dtype_of<C> && values.dtype() == dtype_of<C> && param.is_contiguous() &&
      values.is_contiguous())
    return sgd_dense_rows(param, rows, values, width, lr);
  const auto size = static_cast<int64_t>(size_of(param.dtype()));
  for (size_t i = 0; i < rows.size(); ++i) {
    oar_tensor p = *param.impl(), g = *values.impl();
    const auto drop_first = [&](oar_tensor& t, int64_t index, int64_t bytes) {
      t.data = static_cast<char*>(t.data) + index * t.strides[0] * bytes;
      ++t.shape;
      ++t.strides;
      --t.ndim;
      t.numel = width;
    };
    drop_first(p, rows[i], size);
    drop_first(g, static_cast<int64_t>(i), static_cast<int64_t>(size_of(values.dtype())));
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
      update_in_place<1, C, 2>({params[i].impl(), grads[i].impl()},
                               [=](const std::array<C*, 2>& at) {
                                 C* __restrict param = at[0];
                                 const C* __restrict grad = at[1];
                                 for (int64_t k = 0; k < kBlock; ++k)
                                   param[k] -= lr * (grad[k] + decay * param[k]);
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
      update_in_place<2, C, 3>({params[i].impl(), velocities[i].impl(), grads[i].impl()},
                               [=](const std::array<C*, 3>& at) {
                                 C* __restrict param = at[0], * __restrict velocity = at[1];
                                 const C* __restrict grads_at = at[2];
                                 for (int64_t k = 0; k < kBlock; ++k) {
                                   const C grad = grads_at[k] + decay * param[k];
                                   velocity[k] = mu * velocity[k] + grad;
                                   param[k] -=
                                       lr * (nesterov ? grad + mu * velocity[k] : velocity[k]);
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
