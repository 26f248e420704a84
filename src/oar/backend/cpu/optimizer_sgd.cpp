// Fused updates by the gradient itself: each tensor is read and written once. 16-bit floats compute in float32.
#include <algorithm>
#include <cmath>

#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/loops/places.h"
#include "oar/backend/cpu/optimizer/update.h"

namespace oar::cpu {
namespace {

// Row numbers of a gradient, all of them rows of the parameter.
Offsets row_numbers(const Tensor& rows, int64_t height) {
  Offsets numbers(static_cast<size_t>(rows->numel));
  const char* from = static_cast<const char*>(rows->data);
  if (rows.dtype() == DType::Int64 && rows.is_contiguous()) {
    std::copy_n(rows.data<int64_t>(), rows->numel, numbers.begin());
  } else {
    const int64_t step =
        numbers.empty() ? 0 : rows->strides[0] * static_cast<int64_t>(size_of(rows.dtype()));
    for (int64_t& row : numbers) {
      row = load_integer(from, rows.dtype());
      from += step;
    }
  }
  const auto is_outside = [height](int64_t row) {
    return static_cast<uint64_t>(row) >= static_cast<uint64_t>(height);
  };
  int64_t outside = 0;
  for (const int64_t row : numbers) outside += is_outside(row);
  user_check(outside == 0, ErrorKind::OutOfRange,
             "a gradient names row {} of a parameter with {} rows.",
             *std::find_if(numbers.begin(), numbers.end(), is_outside), height);
  return numbers;
}

// Of one row; in pieces of a known length, since most rows are short.
template <class C>
void sgd_row(C* __restrict param, const C* __restrict grad, int64_t width, C lr) {
  constexpr int64_t kPiece = 64 / sizeof(C);
  int64_t k = 0;
  for (; k + kPiece <= width; k += kPiece)
    for (int64_t i = 0; i < kPiece; ++i) param[k + i] -= lr * grad[k + i];
  for (; k < width; ++k) param[k] -= lr * grad[k];
}

// Each thread owns a range of the parameter's rows, so that repeated rows are applied in order.
template <class C>
void sgd_dense_rows(const Tensor& param, const Offsets& rows, const Tensor& values, int64_t width,
                    C lr) {
  constexpr size_t kAhead = 32;  // rows that are prefetched, of each at most so many elements:
  constexpr int64_t kLine = 64 / sizeof(C), kMost = 4 * kLine;
  const int64_t height = param->shape[0], asked = std::min(width, kMost);
  auto* const to = static_cast<C*>(param->data);
  const auto* const from = static_cast<const C*>(values->data);
  const int64_t parts =
      values->numel <= kGrain ? 1 : std::min<int64_t>(in_parallel() ? 1 : num_threads(), height);
  parallel_chunks(parts, [&](int64_t part) {
    const int64_t first = height * part / parts, last = height * (part + 1) / parts;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (i + kAhead < rows.size())
        for (int64_t k = 0; k < asked; k += kLine)
          __builtin_prefetch(to + rows[i + kAhead] * width + k, 1);
      if (rows[i] < first || rows[i] >= last) continue;
      sgd_row(to + rows[i] * width, from + static_cast<int64_t>(i) * width, width, lr);
    }
  });
}

// Rows of the gradient one after the other, since they may repeat.
template <class C>
void sgd_rows(const Tensor& param, const SelectedRows& grad, C lr) {
  const Tensor& values = grad.values;
  const int64_t height = param->shape[0], width = height ? param->numel / height : 0;
  const Offsets rows = row_numbers(grad.rows, height);
  if (param.dtype() == dtype_for<C> && values.dtype() == dtype_for<C> && param.is_contiguous() &&
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

KernelList optimizer_sgd_kernels() {
  static const oar_kernel list[] = {
      {"sgd_", 1, "cpu:generic", nullptr, kernel_entry<sgd>},
      {"momentum_", 1, "cpu:generic", nullptr, kernel_entry<momentum>},
      {"asgd_", 1, "cpu:generic", nullptr, kernel_entry<asgd>},
      {"rprop_", 1, "cpu:generic", nullptr, kernel_entry<rprop>},
  };
  return list;
}

}  // namespace oar::cpu
