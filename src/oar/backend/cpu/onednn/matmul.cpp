// Matrix products by oneDNN, with what is done to each sum before it is written.
#include <bit>
#include <utility>

#include "oar/backend/cpu/batched.h"
#include "oar/backend/cpu/compact.h"
#include "oar/backend/cpu/loops.h"
#include "oar/backend/cpu/onednn/dtype.h"
#include "oar/backend/cpu/onednn/epilogue.h"
#include "oar/backend/cpu/onednn/plan.h"
#include "oar/backend/cpu/scratch.h"
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

// One of the ops that are products, in the words of the most general.
struct Product {
  bool transpose_x = false, transpose_y = false;
  const oar_tensor *bias = nullptr, *residual = nullptr;
  float scale = 1;
  std::string_view activation;

  bool has_epilogue() const { return residual != nullptr || scale != 1 || !activation.empty(); }
};

Batched call_shape(const KernelCall& call, const Product& of) {
  Batched p = batched_product(call.in(0), call.in(1), call.out(), of.transpose_x, of.transpose_y);
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

// A product that oneDNN does in one call, without its data.
struct Problem {
  Batched p;
  Core core;
  DType dtype = DType::Float32;
  bool biased = false, adds = false;
  float scale = 1;
  std::optional<onednn::Eltwise> activation;
  bool packs = false;  // the right factor is in the layout that oneDNN likes best

  Desc left() const {
    return matrices(core.a == 0 ? 1 : core.count, core.a, p.m, p.k, p.a_row, p.a_column, type());
  }
  Desc right() const {
    return matrices(core.b == 0 ? 1 : core.count, core.b, p.k, p.n, p.b_row, p.b_column, type());
  }
  Desc result() const { return matrices(core.count, core.c, p.m, p.n, p.c_row, 1, type()); }
  dnnl_data_type_t type() const { return onednn::dtype_of(dtype); }

  onednn::PlanKey key() const {
    return {'m',
            onednn::use_our_threads(),
            static_cast<int64_t>(dtype),
            biased,
            adds,
            std::bit_cast<int32_t>(scale),
            activation ? activation->kind : 0,
            packs,
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
  }
};

std::shared_ptr<const Plan> make_plan(const Problem& of) {
  const auto& lib = onednn::api();
  const Batched& p = of.p;
  const Desc a = of.left(), c = of.result();
  const Desc b = of.packs ? onednn::any_layout({1, p.k, p.n}, of.type()) : of.right();
  const Desc bias = of.biased ? onednn::strided({1, 1, p.n}, of.type(), {p.n, p.n, 1}) : Desc();
  SmallVector<int, 5> arguments{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
  if (of.biased) arguments.push_back(DNNL_ARG_BIAS);
  onednn::Attributes attributes;
  if (of.scale != 1) attributes.apply({dnnl_eltwise_linear, of.scale, 0});
  if (of.adds) {
    const int64_t row = of.core.count == 1 ? p.m * p.c_row : of.core.c;
    attributes.combine(dnnl_binary_add, {of.core.count, p.m, p.n}, {row, p.c_row, 1});
    arguments.push_back(onednn::argument_of_step(of.scale != 1 ? 1 : 0));
  }
  if (of.activation) attributes.apply(*of.activation);
  dnnl_primitive_desc_t desc = nullptr;
  if (lib.dnnl_matmul_primitive_desc_create(&desc, lib.engine, a.get(), b.get(), bias.get(),
                                            c.get(), attributes.get()) != dnnl_success)
    return nullptr;
  auto plan = std::make_shared<const Plan>(onednn::PrimitiveDesc(desc), arguments);
  return plan->is_reference() ? nullptr : plan;
}

std::shared_ptr<const Plan> find_plan(const Problem& of) {
  return onednn::plan_for<Plan>(of.key(), [&] { return make_plan(of); });
}

// A call that was accepted: in eager mode its run follows at once in the same thread and finds it here.
// A program's calls are accepted once and run often, so their launches keep it.
struct Accepted {
  const oar_kernel_call* call = nullptr;
  Problem problem;  // the innermost axis of a batch and all behind it; the others are a loop
  std::shared_ptr<const Plan> plan;
  int64_t threads = 0;
};
thread_local Accepted t_accepted;

// The rows of a bias and what is added are read as oneDNN writes the result: dense.
const char* objection_to_epilogue(const KernelCall& call, const Product& of) {
  if (of.bias != nullptr && (of.bias->numel != call.out().shape[call.out().ndim - 1] ||
                             of.bias->strides[of.bias->ndim - 1] != 1))
    return "the bias is not a dense row";
  if (!of.has_epilogue()) return nullptr;
  if (call.dtype() != DType::Float32) return "epilogues are for float32";
  if (!of.activation.empty() && !onednn::eltwise_of(of.activation))
    return "oneDNN does not have the activation";
  return of.residual == nullptr || is_contiguous(*of.residual) ? nullptr
                                                               : "what is added is not dense";
}

const char* objection(const oar_kernel_call* raw, const Product& of) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  const oar_tensor& x = call.in(0);
  const double k = of.transpose_x && x.ndim > 1 ? x.shape[x.ndim - 2] : x.shape[x.ndim - 1];
  const double work = static_cast<double>(call.out().numel) * k;
  if (!(work >= kLeastWork)) return "the product is small";
  const onednn::Library* lib = onednn::library();
  if (lib == nullptr) return "oneDNN is not there";
  if (!onednn::is_fast(call.dtype())) return "our own product is as fast in this dtype";
  if (const char* epilogue = objection_to_epilogue(call, of)) return epilogue;
  const Batched p = call_shape(call, of);
  if (const char* shape = objection_to_shape(p)) return shape;
  if (!is_plain(p.m, p.k, p.a_row, p.a_column) || !is_plain(p.k, p.n, p.b_row, p.b_column))
    return "an operand has no dense axis";
  Problem problem;
  problem.p = without_core(p, problem.core);
  problem.dtype = call.dtype();
  problem.biased = of.bias != nullptr;
  problem.adds = of.residual != nullptr;
  problem.scale = of.scale;
  problem.activation = onednn::eltwise_of(of.activation);
  auto plan = find_plan(problem);
  if (plan == nullptr) return "oneDNN has no kernel for this layout";
  t_accepted = {raw, std::move(problem), std::move(plan), onednn::use_our_threads()};
  return nullptr;
}

Accepted accepted_call(const KernelCall& call, const Product& of) {
  internal_check(t_accepted.call == &call || !objection(&call, of), "a product is not accepted");
  return std::exchange(t_accepted, {});
}

// What a program's launch keeps; made anew where the number of threads has changed.
class Kept {
 public:
  Kept(const KernelCall& call, const Product& of) : accepted_(accepted_call(call, of)) {}
  const Accepted& accepted() const { return accepted_; }

  // The right factor as `packed_plan` wants it, kept while it does not change; null where it is to be read as it is.
  void* packed(void* right, bool unchanged) {
    if (!unchanged || !packs()) {
      right_.reset();
      return nullptr;
    }
    if (!right_) {
      right_ =
          std::make_unique<Scratch<char, 64>>(static_cast<int64_t>(plan_->bytes(DNNL_ARG_WEIGHTS)));
      onednn::reorder(accepted_.problem.right(), plan_->layout(DNNL_ARG_WEIGHTS))
          ->run({right, right_->data()});
    }
    return right_->data();
  }
  const Plan& packed_plan() const { return *plan_; }

 private:
  // Is there another layout that oneDNN likes better?
  bool packs() {
    if (asked_) return plan_ != nullptr;
    asked_ = true;
    Problem packed = accepted_.problem;
    if (packed.p.count != 1 || (packed.core.count != 1 && packed.core.b != 0)) return false;
    packed.packs = true;
    plan_ = find_plan(packed);
    if (plan_ && onednn::same_layout(packed.right(), plan_->layout(DNNL_ARG_WEIGHTS)))
      plan_.reset();
    return plan_ != nullptr;
  }

  Accepted accepted_;
  bool asked_ = false;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Scratch<char, 64>> right_;
};

Kept& kept_of(const KernelCall& call, const Product& of, LaunchMemory& memory) {
  auto* kept = static_cast<Kept*>(memory.kept.get());
  if (kept == nullptr || kept->accepted().threads != onednn::use_our_threads()) {
    memory.kept = std::make_shared<Kept>(call, of);
    kept = static_cast<Kept*>(memory.kept.get());
  }
  return *kept;
}

void run(const KernelCall& call, const Product& of, const Problem& problem, const Plan& plan,
         void* packed) {
  const auto size = static_cast<int64_t>(size_of(call.dtype()));
  const auto place = [size](const oar_tensor& t, int64_t offset) {
    return static_cast<void*>(static_cast<char*>(t.data) + offset * size);
  };
  onednn::use_our_threads();
  for (int64_t i = 0; i < problem.p.count; ++i) {
    const Batched::Offsets at = problem.p.at(i);
    SmallVector<void*, 5> data{place(call.in(0), at.a),
                               packed != nullptr ? packed : place(call.in(1), at.b),
                               place(call.out(), at.c)};
    if (of.bias != nullptr) data.push_back(of.bias->data);
    if (of.residual != nullptr) data.push_back(place(*of.residual, at.c));
    plan.run({data.data(), data.size()});
  }
}

template <Product (*kRead)(const KernelCall&)>
void product(KernelCall& call) {
  constexpr int kRight = 1;
  const Product of = kRead(call);
  LaunchMemory* const memory = launch_memory(call);
  if (memory == nullptr) {
    const Accepted once = accepted_call(call, of);
    return run(call, of, once.problem, *once.plan, nullptr);
  }
  Kept& kept = kept_of(call, of, *memory);
  void* const packed = kept.packed(call.in(kRight).data, memory->is_unchanged(kRight));
  run(call, of, kept.accepted().problem,
      packed != nullptr ? kept.packed_plan() : *kept.accepted().plan, packed);
}
template <Product (*kRead)(const KernelCall&)>
const char* accepts(const oar_kernel_call* raw) {
  return objection(raw, kRead(*static_cast<const KernelCall*>(raw)));
}

const oar_tensor* optional(const KernelCall& call, int i) {
  return call.has(i) ? &call.in(i) : nullptr;
}
Product matmul(const KernelCall& call) {
  return {.transpose_x = call.arg(2).as_bool(), .transpose_y = call.arg(3).as_bool()};
}
Product matmul_core(const KernelCall&) { return {}; }
Product linear(const KernelCall& call) { return {.bias = optional(call, 2)}; }
Product matmul_fused(const KernelCall& call) {
  return {.transpose_x = call.arg(4).as_bool(),
          .transpose_y = call.arg(5).as_bool(),
          .bias = optional(call, 2),
          .residual = optional(call, 3),
          .scale = static_cast<float>(call.arg(6).as_double()),
          .activation = call.arg(7).as_string()};
}

}  // namespace

KernelList onednn_matmul_kernels() {
  static const oar_kernel list[] = {
      {"matmul", 1, "cpu:onednn", accepts<matmul>, kernel_entry<product<matmul>>},
      {"matmul_core", 1, "cpu:onednn", accepts<matmul_core>, kernel_entry<product<matmul_core>>},
      {"linear", 1, "cpu:onednn", accepts<linear>, kernel_entry<product<linear>>},
      {"matmul_fused", 1, "cpu:onednn", accepts<matmul_fused>, kernel_entry<product<matmul_fused>>},
  };
  return list;
}

}  // namespace oar::cpu
