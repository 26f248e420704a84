// Matrix products of tensors: batches, vectors and broadcasting around gemm.
#include "oar/backend/cpu/gemm/batched.h"
#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/gemm/gemv.h"
#include "oar/backend/cpu/loops/loops.h"
#include "oar/backend/cpu/simd/ops.h"

namespace oar::cpu {
namespace {

template <class T>
void run(const Batched& p, const void* x, const void* y, void* out, bool accumulate) {
  const auto* a = static_cast<const T*>(x);
  const auto* b = static_cast<const T*>(y);
  auto* c = static_cast<T*>(out);
  const auto one = [&](int64_t index) {
    const Batched::Offsets at = p.at(index);
    const Matrix<const T> left{a + at.a, p.a_row, p.a_column}, right{b + at.b, p.b_row, p.b_column};
    const Matrix<T> result{c + at.c, p.c_row, 1};
    if constexpr (std::is_floating_point_v<T>)
      if (thin_product<T>(p.m, p.n, p.k, left, right, result, accumulate)) return;
    gemm<T>(p.m, p.n, p.k, left, right, result, accumulate);
  };
  if (p.count == 1) return one(0);
  const double work =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  // Few large products: gemm itself uses the threads.
  if (p.count < num_threads() && work > (1 << 18)) {
    for (int64_t i = 0; i < p.count; ++i) one(i);
    return;
  }
  const auto grain = static_cast<int64_t>(std::max(1.0, (1 << 17) / std::max(work, 1.0)));
  parallel_for(0, p.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

// A column times a row has nothing to add up. Returns false for other products.
bool outer_product(const Batched& p, KernelCall& call) {
  if (p.k != 1 || p.count != 1 || !simd::loop_for(simd::Op::multiply, call.dtype())) return false;
  const int64_t shape[] = {p.m, p.n};
  const int64_t rows[] = {p.a_row, 0}, columns[] = {0, p.b_column}, both[] = {p.c_row, 1};
  const auto with_steps = [&](oar_tensor t, const int64_t* steps) {
    t.shape = shape;
    t.strides = steps;
    t.ndim = 2;
    t.numel = p.m * p.n;
    return t;
  };
  const oar_tensor x = with_steps(call.in(0), rows), y = with_steps(call.in(1), columns),
                   out = with_steps(call.out(), both);
  simd::drive_op<2>(simd::Op::multiply, {&out, &x, &y});
  return true;
}

void product(KernelCall& call, bool transpose_x, bool transpose_y) {
  if (call.out().numel == 0) return;
  const Batched p = batched_product(call.in(0), call.in(1), call.out(), transpose_x, transpose_y);
  if (outer_product(p, call)) return;
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    run<typename decltype(tag)::type>(p, call.in(0).data, call.in(1).data, call.out().data, false);
  });
}

void matmul(KernelCall& call) { product(call, call.arg(2).as_bool(), call.arg(3).as_bool()); }
void matmul_core(KernelCall& call) { product(call, false, false); }

template <class T>
void fill_rows(const oar_tensor& out, const oar_tensor& row) {
  auto* to = static_cast<T*>(out.data);
  const auto* from = static_cast<const T*>(row.data);
  const int64_t n = row.numel, stride = row.strides[0];
  parallel_for(0, out.numel / n, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      for (int64_t j = 0; j < n; ++j) to[i * n + j] = from[j * stride];
  });
}

// The sums start from the bias.
void linear(KernelCall& call) {
  if (call.out().numel == 0) return;
  const Batched p = batched_product(call.in(0), call.in(1), call.out(), false, false);
  const bool biased = call.has(2);
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (biased) fill_rows<T>(call.out(), call.in(2));
    run<T>(p, call.in(0).data, call.in(1).data, call.out().data, biased);
  });
}

const char* not_integers(const oar_kernel_call* call) {
  return is_integral(static_cast<const KernelCall*>(call)->dtype())
             ? "integers are multiplied by the plain loop"
             : nullptr;
}
const char* not_a_row(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  return objection_to_linear(call.in(1), call.has(2) ? &call.in(2) : nullptr);
}
const char* not_integers_or_a_row(const oar_kernel_call* call) {
  const char* objection = not_integers(call);
  return objection ? objection : not_a_row(call);
}

}  // namespace

KernelList matmul_kernels() {
  static const oar_kernel list[] = {
      {"matmul", 1, "cpu:gemm", not_integers, kernel_entry<matmul>},
      {"matmul", 1, "cpu:generic", nullptr, kernel_entry<matmul>},
      {"matmul_core", 1, "cpu:gemm", not_integers, kernel_entry<matmul_core>},
      {"matmul_core", 1, "cpu:generic", nullptr, kernel_entry<matmul_core>},
      {"linear", 1, "cpu:gemm", not_integers_or_a_row, kernel_entry<linear>},
      {"linear", 1, "cpu:generic", not_a_row, kernel_entry<linear>},
  };
  return list;
}

}  // namespace oar::cpu
