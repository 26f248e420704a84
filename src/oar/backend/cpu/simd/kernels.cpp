// Kernels of elementwise ops on vectorised loops, for the types that these are written for. The
// general loops, which are tried next, have the rest.

#include <bit>
#include <cmath>
#include <limits>

#include "oar/backend/cpu/instruction_set.h"
#include "oar/backend/cpu/simd/ops.h"

namespace oar::cpu {
namespace simd {
namespace {

#define OAR_SIMD_COUNT(...) +1
constexpr int kArithmeticCount = OAR_SIMD_ARITHMETIC(OAR_SIMD_COUNT, OAR_SIMD_COUNT),
              kMathCount = OAR_SIMD_MATH(OAR_SIMD_COUNT, OAR_SIMD_COUNT),
              kActivationCount = OAR_SIMD_ACTIVATION(OAR_SIMD_COUNT, OAR_SIMD_COUNT),
              kLossCount = OAR_SIMD_LOSS(OAR_SIMD_COUNT, OAR_SIMD_COUNT),
              kQuestionCount = OAR_SIMD_QUESTION(OAR_SIMD_COUNT, OAR_SIMD_COUNT);
#undef OAR_SIMD_COUNT

// The loops of the instruction set that was chosen, by op.
class Loops {
 public:
  static const Loops& get() {
    static const Loops loops;
    return loops;
  }
  Function of(Op op, Type type) const { return by_op_[static_cast<size_t>(op)][type]; }
  Function conversion(Type from, Type to) const { return convert_[from][to]; }
  Function select(int width) const { return select_[static_cast<size_t>(width)]; }

 private:
  Loops() {
#if !defined(OAR_WITHOUT_BASE_LOOPS)  // a lean library; without AVX-512 the general loops serve it
    set_all(base::kArithmetic, base::kMath, base::kActivation, base::kLoss, base::kQuestion,
            base::kConvert, base::kSelect);
#endif
#if defined(__x86_64__) && !defined(OAR_WITHOUT_AVX512_LOOPS)
    if (use_avx512())
      set_all(avx512::kArithmetic, avx512::kMath, avx512::kActivation, avx512::kLoss,
              avx512::kQuestion, avx512::kConvert, avx512::kSelect);
#endif
  }
  using Rows = const Function (*)[kTypes];
  void set_all(Rows arithmetic, Rows math, Rows activation, Rows loss, Rows question, Rows convert,
               const Function* select) {
    Table* to = by_op_.data();
    to = set(to, arithmetic, kArithmeticCount);
    to = set(to, math, kMathCount);
    to = set(to, activation, kActivationCount);
    to = set(to, loss, kLossCount);
    set(to, question, kQuestionCount);
    set(convert_.data(), convert, kTypes);
    for (size_t i = 0; i < select_.size(); ++i) select_[i] = select[i];
  }
  using Table = std::array<Function, kTypes>;
  // What the rows lack stays as it is.
  static Table* set(Table* to, Rows rows, int count) {
    for (int i = 0; i < count; ++i, ++to)
      for (size_t type = 0; type < kTypes; ++type)
        if (rows[i][type]) (*to)[type] = rows[i][type];
    return to;
  }

  std::array<Table, static_cast<size_t>(Op::kCount)> by_op_{};
  std::array<Table, kTypes> convert_{};
  std::array<Function, 4> select_{};
};

constexpr Type type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32:
      return kFloat32;
    case DType::Float64:
      return kFloat64;
    case DType::BFloat16:
      return kBFloat16;
    case DType::Float16:
      return kFloat16;
    case DType::Int32:
      return kInt32;
    case DType::Int64:
      return kInt64;
    case DType::Bool:
      return kBool;
    default:
      return kTypes;
  }
}
}  // namespace

Function loop_for(Op op, DType dtype) {
  const Type type = is_float8(dtype) ? kFloat32 : type_of(dtype);
  return type == kTypes ? nullptr : Loops::get().of(op, type);
}
Function select_for(int64_t bytes) {
  return bytes > 8 ? nullptr : Loops::get().select(std::countr_zero(static_cast<uint64_t>(bytes)));
}
int64_t grain_of(Op op) {
  const int i = static_cast<int>(op);
  const bool heavy =
      i >= kArithmeticCount && i < kArithmeticCount + kMathCount + kActivationCount + kLossCount;
  return heavy ? kGrain / 4 : kGrain;
}

namespace {

template <size_t N>
void drive_call(Op op, KernelCall& call, const double* numbers = nullptr) {
  Tensors<N> tensors{&call.out()};
  for (size_t k = 0; k < N; ++k) tensors[k + 1] = &call.in(static_cast<int>(k));
  drive_op<N>(op, tensors, numbers);
}

template <Op kOp>
const char* accepts(const oar_kernel_call* call) {
  const DType dtype = static_cast<const KernelCall*>(call)->dtype();
  return loop_for(kOp, dtype) ? nullptr : "no vectorised loop for the dtype";
}
template <Op kOp, int kOperands, int kNumbers>
void run(KernelCall& call) {
  double numbers[kNumbers + 1] = {};
  for (int i = 0; i < kNumbers; ++i) numbers[i] = call.arg(kOperands + i).as_double();
  drive_call<kOperands>(kOp, call, numbers);
}

// ---- Ops whose attributes must be checked --------------------------------------------------------

void scale(KernelCall& call) {
  const double numbers[] = {call.arg(1).as_scalar().to_double(),
                            call.arg(2).as_scalar().to_double()};
  drive_call<1>(call.arg(3).as_bool() ? Op::scale : Op::add_then_scale, call, numbers);
}

double bound(const KernelCall& call, int i, double open) {
  return call.has(i) ? call.arg(i).as_scalar().to_double() : open;
}
void clip(KernelCall& call) {
  constexpr double kOpen = std::numeric_limits<double>::infinity();
  const double bounds[] = {bound(call, 1, -kOpen), bound(call, 2, kOpen)};
  drive_call<1>(Op::clip, call, bounds);
}
// A bound that is outside itself is replaced by its neighbour inside.
double neighbour(const KernelCall& call, double bound, double towards) {
  return call.dtype() == DType::Float64
             ? std::nextafter(bound, towards)
             : std::nextafter(static_cast<float>(bound), static_cast<float>(towards));
}
void clip_grad(KernelCall& call) {
  constexpr double kOpen = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double bounds[] = {bound(call, 2, kOpen), bound(call, 3, kOpen)};
  if (!call.arg(4).as_bool()) {
    bounds[0] = neighbour(call, bounds[0], kInfinity);
    bounds[1] = neighbour(call, bounds[1], -kInfinity);
  }
  drive_call<2>(Op::clip_grad, call, bounds);
}

const char* accepts_round(const oar_kernel_call* call) {
  if (static_cast<const KernelCall*>(call)->arg(1).as_int() != 0) return "rounds to decimals";
  return accepts<Op::round>(call);
}
void round(KernelCall& call) { drive_call<1>(Op::round, call); }

void logit(KernelCall& call) {
  constexpr double kOpen = std::numeric_limits<double>::infinity();
  const double eps = call.has(1) ? call.arg(1).as_double() : -kOpen;
  const double bounds[] = {eps, 1 - eps};
  drive_call<1>(Op::logit, call, bounds);
}
void gelu(KernelCall& call) {
  drive_call<1>(call.arg(1).as_bool() ? Op::gelu_tanh : Op::gelu, call);
}
void gelu_grad(KernelCall& call) {
  drive_call<2>(call.arg(2).as_bool() ? Op::gelu_tanh_grad : Op::gelu_grad, call);
}

// The one value that a broadcast tensor holds, else NaN.
double common_value(const oar_tensor& t) {
  for (int axis = 0; axis < t.ndim; ++axis)
    if (t.shape[axis] != 1 && t.strides[axis] != 0) return std::nan("");
  return t.numel == 0 ? std::nan("") : load_element(t.data, static_cast<DType>(t.dtype)).real();
}
void pow(KernelCall& call) {
  const double exponent = common_value(call.in(1));
  if (exponent == 2) return drive_call<1>(Op::square, call);
  if (exponent == 3) return drive_call<1>(Op::cube, call);
  drive_call<2>(Op::pow, call);
}
void pow_grad(KernelCall& call) {
  const double exponent = common_value(call.in(1));
  if (exponent != 2 && exponent != 3) return drive_call<3>(Op::pow_grad, call);
  const Op op = exponent == 2 ? Op::square_grad : Op::cube_grad;
  drive_op<2>(op, {&call.out(), &call.in(0), &call.in(2)});
}

// Half of a tensor along an axis, with the shape of `like`.
oar_tensor half(const oar_tensor& whole, const oar_tensor& like, int64_t axis, bool second) {
  oar_tensor part = whole;
  part.shape = like.shape;
  part.numel = like.numel;
  const auto i = static_cast<size_t>(normalise_axis(axis, whole.ndim));
  const int64_t start = second ? like.shape[i] * whole.strides[i] : 0;
  part.data = static_cast<char*>(whole.data) + start * bytes_of_element(whole);
  return part;
}
void glu(KernelCall& call) {
  const int64_t axis = call.arg(1).as_int();
  const oar_tensor& out = call.out();
  const oar_tensor value = half(call.in(0), out, axis, false),
                   gate = half(call.in(0), out, axis, true);
  drive_op<2>(Op::glu, {&out, &value, &gate});
}
void glu_grad(KernelCall& call) {
  const int64_t axis = call.arg(2).as_int();
  const oar_tensor &x = call.in(0), &grad = call.in(1);
  const oar_tensor value = half(x, grad, axis, false), gate = half(x, grad, axis, true);
  const oar_tensor to_value = half(call.out(), grad, axis, false),
                   to_gate = half(call.out(), grad, axis, true);
  drive_op<2>(Op::glu, {&to_value, &grad, &gate});
  drive_op<3>(Op::glu_gate_grad, {&to_gate, &grad, &gate, &value});
}
void gated_silu_grad(KernelCall& call) {
  const oar_tensor &x = call.in(0), &y = call.in(1), &grad = call.in(2);
  drive_op<3>(Op::gated_silu_grad, {&call.out(0), &x, &y, &grad});
  drive_op<2>(Op::gated_silu, {&call.out(1), &x, &grad});
}

// ---- Copies --------------------------------------------------------------------------------------

Function conversion(const oar_tensor& to, const oar_tensor& from) {
  const Type to_type = type_of(static_cast<DType>(to.dtype)),
             from_type = type_of(static_cast<DType>(from.dtype));
  if (to_type == kTypes || from_type == kTypes) return nullptr;
  return Loops::get().conversion(from_type, to_type);
}
const char* accepts_cast(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  return conversion(c.out(), c.in(0)) ? nullptr : "no vectorised loop for the dtypes";
}
void cast(KernelCall& call) {
  drive<1>(conversion(call.out(), call.in(0)), {&call.out(), &call.in(0)}, nullptr, kGrain);
}

const char* accepts_where(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  return select_for(bytes_of_element(c.in(1))) ? nullptr : "wide elements";
}
void where(KernelCall& call) {
  drive<3>(select_for(bytes_of_element(call.in(1))),
           {&call.out(), &call.in(0), &call.in(1), &call.in(2)}, nullptr, kGrain);
}

// None where the table has no loops for the op.
template <Op kOp, int kOperands, int kAttributes, unsigned kOf>
constexpr int32_t (*entry_of)(oar_kernel_call*) =
    kOf != 0 ? kernel_entry<run<kOp, kOperands, kAttributes>> : nullptr;

KernelList rows() {
#define OAR_SIMD_KERNEL(op, functor, operands, numbers, types) \
  {#op, 1, vector_name(), accepts<Op::op>, entry_of<Op::op, operands, numbers, types>},
#define OAR_SIMD_NONE(...)
  static const oar_kernel list[] = {
      OAR_SIMD_LISTS(OAR_SIMD_KERNEL, OAR_SIMD_NONE)  //
      {"scale", 1, vector_name(), accepts<Op::scale>, kernel_entry<scale>},
      {"clip", 1, vector_name(), accepts<Op::clip>, kernel_entry<clip>},
      {"clip_grad", 1, vector_name(), accepts<Op::clip_grad>, training_entry<clip_grad>},
      {"round", 1, vector_name(), accepts_round, kernel_entry<round>},
      {"logit", 1, vector_name(), accepts<Op::logit>, kernel_entry<logit>},
      {"gelu", 1, vector_name(), accepts<Op::gelu>, kernel_entry<gelu>},
      {"gelu_grad", 1, vector_name(), accepts<Op::gelu_grad>, training_entry<gelu_grad>},
      {"pow", 1, vector_name(), accepts<Op::pow>, kernel_entry<pow>},
      {"pow_grad", 1, vector_name(), accepts<Op::pow_grad>, training_entry<pow_grad>},
      {"glu", 1, vector_name(), accepts<Op::glu>, kernel_entry<glu>},
      {"glu_grad", 1, vector_name(), accepts<Op::glu>, training_entry<glu_grad>},
      {"gated_silu_grad", 1, vector_name(), accepts<Op::gated_silu_grad>,
       training_entry<gated_silu_grad>},
      {"cast", 1, vector_name(), accepts_cast, kernel_entry<cast>},
      {"where", 1, vector_name(), accepts_where, kernel_entry<where>},
  };
#undef OAR_SIMD_KERNEL
#undef OAR_SIMD_NONE
  return list;
}

}  // namespace
}  // namespace simd

KernelList simd_kernels() { return simd::rows(); }

}  // namespace oar::cpu
