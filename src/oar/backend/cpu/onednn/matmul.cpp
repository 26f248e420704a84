// Matrix products by oneDNN.
#include <utility>

#include "oar/backend/cpu/batched.h"
#include "oar/backend/cpu/loops.h"
#include "oar/backend/cpu/onednn/dtype.h"
#include "oar/backend/cpu/onednn/plan.h"
#include "oar/device/device.h"
#include "oar/device/launch.h"

namespace oar::cpu {
namespace {

using onednn::Desc;
using onednn::Plan;

// Multiply-adds below which our own product is faster, as its call costs less: of any product, of one
// whose shape suits ours, and of each in a batch.
constexpr double kLeastWork = 1 << 17, kLeastSquareWork = 1 << 20, kLeastWorkOfEach = 1 << 11;

// Ours is made for squares: it wastes lanes on few columns, and cuts neither few rows nor a long sum
// into enough pieces. Few rows against dense rows of y, on the other hand, are bound by memory.
const char* objection_to_shape(const Batched& p) {
  const double each =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  if (p.m == 1 || p.n == 1) return "a product with a vector is bound by memory";
  if (p.m <= 8 && p.b_column == 1 && p.n >= 32) return "so few rows are bound by memory";
  if (each < kLeastWorkOfEach) return "the matrices are small";
  if (p.k == 1) return "a product of two vectors is bound by memory";
  const bool square = p.m >= 48 && p.n > 8 && p.k < 16 * std::max(p.m, p.n);
  return square && each * static_cast<double>(p.count) < kLeastSquareWork ? "the product is small"
                                                                          : nullptr;
}

// The innermost batch axis goes to oneDNN; the others are a loop around it.
struct Core {
  int64_t count = 1, a = 0, b = 0, c = 0;
};

Batched without_core(Batched p, Core& core) {
  if (p.axes.empty()) return p;
  const Batched::Axis last = p.axes.back();
  core = {last.size, last.a, last.b, last.c};
  p.count /= last.size;
  p.axes.pop_back();
  return p;
}

// Neighbouring batch axes that continue each other in all three operands are one.
void join_axes(Batched& p) {
  size_t kept = 0;
  for (size_t i = 0; i < p.axes.size(); ++i) {
    const Batched::Axis axis = p.axes[i];
    if (kept > 0) {
      Batched::Axis& outer = p.axes[kept - 1];
      if (outer.a == axis.a * axis.size && outer.b == axis.b * axis.size &&
          outer.c == axis.c * axis.size) {
        outer = {outer.size * axis.size, axis.a, axis.b, axis.c};
        continue;
      }
    }
    p.axes[kept++] = axis;
  }
  p.axes.resize(kept);
}

// Of a matrix that oneDNN reads without a copy: one axis is dense, the other does not overlap.
bool is_plain(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return (column == 1 && (row >= columns || rows == 1)) ||
         (row == 1 && (column >= rows || columns == 1));
}

Batched call_shape(const KernelCall& call, bool transpose_x, bool transpose_y) {
  Batched p = batched_product(call.in(0), call.in(1), call.out(), transpose_x, transpose_y);
  join_axes(p);
  return p;
}

Desc matrices(int64_t count, int64_t stride, int64_t rows, int64_t columns, int64_t row,
              int64_t column, dnnl_data_type_t dtype) {
  // A stride of an axis of one element says nothing; oneDNN wants one that fits a known layout.
  if (rows == 1 && column == 1) row = columns;
  if (columns == 1 && row == 1) column = rows;
  if (count == 1 || stride == 0) stride = column == 1 ? rows * row : columns * column;
  return onednn::strided({count, rows, columns}, dtype, {stride, row, column});
}

std::shared_ptr<const Plan> make_plan(const Batched& p, const Core& core, dnnl_data_type_t dtype,
                                      bool biased) {
  const auto& lib = onednn::api();
  const Desc a =
      matrices(core.a == 0 ? 1 : core.count, core.a, p.m, p.k, p.a_row, p.a_column, dtype);
  const Desc b =
      matrices(core.b == 0 ? 1 : core.count, core.b, p.k, p.n, p.b_row, p.b_column, dtype);
  const Desc c = matrices(core.count, core.c, p.m, p.n, p.c_row, 1, dtype);
  const Desc bias = biased ? onednn::strided({1, 1, p.n}, dtype, {p.n, p.n, 1}) : Desc();
  dnnl_primitive_desc_t desc = nullptr;
  if (lib.dnnl_matmul_primitive_desc_create(&desc, lib.engine, a.get(), b.get(), bias.get(),
                                            c.get(), lib.attributes) != dnnl_success)
    return nullptr;
  auto plan =
      biased
          ? std::make_shared<const Plan>(onednn::PrimitiveDesc(desc),
                                         std::initializer_list<int>{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
                                                                    DNNL_ARG_DST, DNNL_ARG_BIAS})
          : std::make_shared<const Plan>(
                onednn::PrimitiveDesc(desc),
                std::initializer_list<int>{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST});
  return plan->is_reference() ? nullptr : plan;
}

std::shared_ptr<const Plan> find_plan(const Batched& p, const Core& core, DType dtype,
                                      bool biased) {
  const onednn::PlanKey key{'m',
                            onednn::use_our_threads(),
                            static_cast<int64_t>(dtype),
                            biased,
                            p.m,
                            p.n,
                            p.k,
                            p.a_row,
                            p.a_column,
                            p.b_row,
                            p.b_column,
                            p.c_row,
                            core.count,
                            core.a,
                            core.b,
                            core.c};
  return onednn::plan_for<Plan>(
      key, [&] { return make_plan(p, core, onednn::dtype_of(dtype), biased); });
}

// A call that was accepted: in eager mode its run follows at once in the same thread and finds it here.
// A program's calls are accepted once and run often, so their launches keep it.
struct Accepted {
  const oar_kernel_call* call = nullptr;
  Batched outer;
  std::shared_ptr<const Plan> plan;
  int64_t threads = 0;
};
thread_local Accepted t_accepted;

const char* objection(const oar_kernel_call* raw, bool transpose_x, bool transpose_y) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  const oar_tensor& x = call.in(0);
  const double k = transpose_x && x.ndim > 1 ? x.shape[x.ndim - 2] : x.shape[x.ndim - 1];
  const double work = static_cast<double>(call.out().numel) * k;
  if (!(work >= kLeastWork)) return "the product is small";
  const onednn::Library* lib = onednn::library();
  if (lib == nullptr) return "oneDNN is not there";
  if (!onednn::is_fast(call.dtype())) return "our own product is as fast in this dtype";
  const Batched p = call_shape(call, transpose_x, transpose_y);
  if (const char* shape = objection_to_shape(p)) return shape;
  if (!is_plain(p.m, p.k, p.a_row, p.a_column) || !is_plain(p.k, p.n, p.b_row, p.b_column))
    return "an operand has no dense axis";
  Core core;
  const Batched outer = without_core(p, core);
  auto plan = find_plan(outer, core, call.dtype(), call.input_count == 3 && call.has(2));
  if (plan == nullptr) return "oneDNN has no kernel for this layout";
  t_accepted = {raw, outer, std::move(plan), onednn::use_our_threads()};
  return nullptr;
}

template <const char* (*kAccepts)(const oar_kernel_call*)>
Accepted accepted_call(KernelCall& call) {
  internal_check(t_accepted.call == &call || !kAccepts(&call), "a product is not accepted");
  return std::exchange(t_accepted, {});
}

// What the launch keeps; made anew where the number of threads has changed.
template <const char* (*kAccepts)(const oar_kernel_call*)>
const Accepted& kept_call(KernelCall& call, LaunchMemory& memory) {
  const auto* kept = static_cast<const Accepted*>(memory.kept.get());
  if (kept == nullptr || kept->threads != onednn::use_our_threads()) {
    memory.kept = std::make_shared<Accepted>(accepted_call<kAccepts>(call));
    kept = static_cast<const Accepted*>(memory.kept.get());
  }
  return *kept;
}

template <const char* (*kAccepts)(const oar_kernel_call*)>
void product(KernelCall& call) {
  LaunchMemory* const memory = launch_memory(call);
  const Accepted once = memory == nullptr ? accepted_call<kAccepts>(call) : Accepted();
  const Accepted& accepted = memory == nullptr ? once : kept_call<kAccepts>(call, *memory);
  const auto size = static_cast<int64_t>(size_of(call.dtype()));
  const auto place = [size](const oar_tensor& t, int64_t offset) {
    return static_cast<void*>(static_cast<char*>(t.data) + offset * size);
  };
  void* const bias = call.input_count == 3 && call.has(2) ? call.in(2).data : nullptr;
  onednn::use_our_threads();
  for (int64_t i = 0; i < accepted.outer.count; ++i) {
    const Batched::Offsets at = accepted.outer.at(i);
    void* const data[] = {place(call.in(0), at.a), place(call.in(1), at.b), place(call.out(), at.c),
                          bias};
    accepted.plan->run({data, bias != nullptr ? size_t{4} : size_t{3}});
  }
}

const char* accepts_matmul(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  return objection(raw, call.arg(2).as_bool(), call.arg(3).as_bool());
}
const char* accepts_core(const oar_kernel_call* raw) { return objection(raw, false, false); }
const char* accepts_linear(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  if (call.has(2)) {
    const oar_tensor &bias = call.in(2), &weight = call.in(1);
    if (bias.numel != weight.shape[weight.ndim - 1] || bias.strides[bias.ndim - 1] != 1)
      return "the bias is not a dense row";
  }
  return objection(raw, false, false);
}

}  // namespace

KernelList onednn_matmul_kernels() {
  static const oar_kernel list[] = {
      {"matmul", 1, "cpu:onednn", accepts_matmul, kernel_entry<product<accepts_matmul>>},
      {"matmul_core", 1, "cpu:onednn", accepts_core, kernel_entry<product<accepts_core>>},
      {"linear", 1, "cpu:onednn", accepts_linear, kernel_entry<product<accepts_linear>>},
  };
  return list;
}

}  // namespace oar::cpu
