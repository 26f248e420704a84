// Matrix products of tensors: batches, vectors and broadcasting around gemm.
#include "oar/backend/cpu/gemm.h"
#include "oar/backend/cpu/loops.h"

namespace oar::cpu {
namespace {

// A product of two matrices for each element of the batch axes. Strides are in elements.
struct Batched {
  int64_t m = 1, n = 1, k = 1;
  int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0;
  int64_t count = 1;
  struct Axis {
    int64_t size, a, b, c;
  };
  SmallVector<Axis, 4> axes;

  struct Offsets {
    int64_t a = 0, b = 0, c = 0;
  };
  Offsets at(int64_t index) const {
    Offsets offsets;
    for (size_t i = axes.size(); i-- > 0;) {
      const int64_t place = index % axes[i].size;
      index /= axes[i].size;
      offsets.a += place * axes[i].a;
      offsets.b += place * axes[i].b;
      offsets.c += place * axes[i].c;
    }
    return offsets;
  }
  // Batches of rows against one matrix are more rows, if they continue each other.
  void fold_rows() {
    while (!axes.empty()) {
      const Axis& last = axes.back();
      if (last.b != 0 || (m > 1 && last.a != a_row * m) || (m > 1 && last.c != c_row * m)) return;
      if (m == 1) {
        a_row = last.a;
        c_row = last.c;
      }
      m *= last.size;
      count /= std::max<int64_t>(last.size, 1);
      axes.pop_back();
    }
  }
};

// Stride of the batch axis that is `from_end` axes in front of the matrix; 0 where it is broadcast.
int64_t batch_stride(const oar_tensor& t, int from_end) {
  const int axis = t.ndim - 3 - from_end;
  return axis >= 0 && t.shape[axis] != 1 ? t.strides[axis] : 0;
}

Batched batched_product(const oar_tensor& x, const oar_tensor& y, const oar_tensor& out,
                        bool transpose_x, bool transpose_y) {
  Batched p;
  const bool x_vector = x.ndim == 1, y_vector = y.ndim == 1;
  // A vector has one axis, whatever the flags say: it is the one that is summed.
  const int x_sum = x_vector || !transpose_x ? x.ndim - 1 : x.ndim - 2;
  const int y_sum = y_vector || transpose_y ? y.ndim - 1 : y.ndim - 2;
  p.k = x.shape[x_sum];
  p.a_column = x.strides[x_sum];
  p.b_row = y.strides[y_sum];
  if (!x_vector) {
    const int free = 2 * x.ndim - 3 - x_sum;
    p.m = x.shape[free];
    p.a_row = x.strides[free];
  }
  if (!y_vector) {
    const int free = 2 * y.ndim - 3 - y_sum;
    p.n = y.shape[free];
    p.b_column = y.strides[free];
  }
  p.c_row = p.n;
  const int batch_rank = out.ndim - (x_vector ? 0 : 1) - (y_vector ? 0 : 1);
  int64_t c = p.m * p.n;
  for (int i = batch_rank; i-- > 0;) c *= out.shape[i];
  for (int i = 0; i < batch_rank; ++i) {
    const int64_t size = out.shape[i];
    c = size == 0 ? 0 : c / size;
    p.count *= size;
    if (size == 1) continue;
    const int from_end = batch_rank - 1 - i;
    p.axes.push_back({size, batch_stride(x, from_end), batch_stride(y, from_end), c});
  }
  p.fold_rows();
  return p;
}

template <class T>
void run(const Batched& p, const void* x, const void* y, void* out, bool accumulate) {
  const auto* a = static_cast<const T*>(x);
  const auto* b = static_cast<const T*>(y);
  auto* c = static_cast<T*>(out);
  const auto one = [&](int64_t index) {
    const Batched::Offsets at = p.at(index);
    gemm<T>(p.m, p.n, p.k, {a + at.a, p.a_row, p.a_column}, {b + at.b, p.b_row, p.b_column},
            {c + at.c, p.c_row, 1}, accumulate);
  };
  if (p.count == 1) return one(0);
  const double work =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  // Few large products: gemm itself brings the threads.
  if (p.count < num_threads() && work > (1 << 18)) {
    for (int64_t i = 0; i < p.count; ++i) one(i);
    return;
  }
  const auto grain = static_cast<int64_t>(std::max(1.0, (1 << 17) / std::max(work, 1.0)));
  parallel_for(0, p.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) one(i);
  });
}

void product(KernelCall& call, bool transpose_x, bool transpose_y) {
  if (call.out().numel == 0) return;
  const Batched p = batched_product(call.in(0), call.in(1), call.out(), transpose_x, transpose_y);
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

// The bias is what the sums start from.
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

}  // namespace

KernelList linalg_kernels() {
  static const oar_kernel list[] = {
      {"matmul", 1, "cpu:gemm", not_integers, kernel_entry<matmul>},
      {"matmul", 1, "cpu:ref", nullptr, kernel_entry<matmul>},
      {"matmul_core", 1, "cpu:gemm", not_integers, kernel_entry<matmul_core>},
      {"matmul_core", 1, "cpu:ref", nullptr, kernel_entry<matmul_core>},
      {"linear", 1, "cpu:gemm", not_integers, kernel_entry<linear>},
      {"linear", 1, "cpu:ref", nullptr, kernel_entry<linear>},
  };
  return list;
}

}  // namespace oar::cpu
