// Losses of pairs, element by element, with their sum or mean in the same pass, and their derivatives.
#include <string_view>

#include "oar/backend/cpu/loops/blocks.h"
#include "oar/backend/cpu/simd/ops.h"

namespace oar::cpu {
namespace {

using simd::Op;

struct Loss {
  std::string_view kind;
  Op value, slope;
};
constexpr Loss kLosses[] = {
    {"square", Op::square_loss, Op::square_slope},
    {"absolute", Op::absolute_loss, Op::absolute_slope},
    {"huber", Op::huber_loss, Op::huber_slope},
    {"logistic", Op::logistic_loss, Op::logistic_slope},
    {"binary_entropy", Op::binary_entropy, Op::binary_entropy_slope},
    {"bernoulli", Op::bernoulli_loss, Op::bernoulli_slope},
    {"focal", Op::focal_loss, Op::focal_slope},
    {"hinge_embedding", Op::hinge_embedding, Op::hinge_embedding_slope},
    {"poisson_of_log", Op::poisson_of_log, Op::poisson_of_log_slope},
    {"poisson", Op::poisson_loss, Op::poisson_slope},
    {"divergence", Op::divergence, Op::divergence_slope},
    {"divergence_of_log", Op::divergence_of_log, Op::divergence_of_log_slope},
};
const Loss& loss_of(std::string_view kind) {
  for (const Loss& loss : kLosses)
    if (loss.kind == kind) return loss;
  fail(ErrorKind::InvalidArgument, "there is no pointwise loss '{}'.", kind);
}

// The factor of a mean; NaN without elements.
double share_of(std::string_view reduction, int64_t n) {
  return reduction == "mean" ? 1 / static_cast<double>(n) : 1;
}

void check_probabilities(const oar_tensor& input) {
  in_precision_of(static_cast<DType>(input.dtype), [&](auto zero) {
    using C = decltype(zero);
    const C outside = block_sum<C, 1>({&input}, [](const C(*b)[kBlock], C* made) {
      for (int64_t i = 0; i < kBlock; ++i)
        made[i] = (b[0][i] < 0 ? C(1) : C(0)) + (b[0][i] > 1 ? C(1) : C(0));
    });
    if (outside == 0) return;
    const Converted<C> values(&input);
    const C* wrong = std::find_if(values.data(), values.data() + input.numel,
                                  [](C p) { return p < 0 || p > 1; });
    fail(ErrorKind::InvalidArgument,
         "input holds {}; probabilities are between 0 and 1.\nhint: Pass it through sigmoid, or "
         "use binary_cross_entropy_with_logits.",
         *wrong);
  });
}

void pointwise_loss(KernelCall& call) {
  const Loss& loss = loss_of(call.arg(2).as_string());
  const std::string_view reduction = call.arg(5).as_string();
  const double settings[] = {call.arg(3).as_double(), call.arg(4).as_double()};
  const oar_tensor &input = call.in(0), &label = call.in(1);
  if (loss.value == Op::bernoulli_loss) check_probabilities(input);
  if (reduction == "none")
    return simd::drive_op<2>(loss.value, {&call.out(), &input, &label}, settings);
  in_precision_of(call.dtype(), [&](auto zero) {
    using C = decltype(zero);
    const simd::Function loop = simd::loop_for(loss.value, dtype_for<C>);
    const C total = block_sum<C, 2>({&input, &label}, [&](const C(*b)[kBlock], C* made) {
      loop({.out = made,
            .in = {b[0], b[1]},
            .repeated = 0,
            .stream = false,
            .count = kBlock,
            .numbers = settings});
    });
    const C result = total * static_cast<C>(share_of(reduction, input.numel));
    transfer_of<C>(call.out()).store(static_cast<char*>(call.out().data), 0, 1, &result);
  });
}

void pointwise_loss_grad(KernelCall& call) {
  const std::string_view reduction = call.arg(6).as_string();
  const oar_tensor &input = call.in(0), &label = call.in(1);
  const double settings[] = {call.arg(4).as_double(), call.arg(5).as_double(),
                             share_of(reduction, input.numel)};
  const SmallVector<int64_t, 6> nowhere(static_cast<size_t>(input.ndim), 0);
  oar_tensor grad = call.in(2);
  if (reduction != "none") {  // one number for all elements
    grad.shape = input.shape;
    grad.strides = nowhere.data();
    grad.ndim = input.ndim;
    grad.numel = input.numel;
  }
  simd::drive_op<3>(loss_of(call.arg(3).as_string()).slope, {&call.out(), &input, &label, &grad},
                    settings);
}

const char* accepts_alike(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  return c.dtype(1) == c.dtype() && c.dtype(2) == c.dtype() ? nullptr
                                                            : "operands of several dtypes";
}

}  // namespace

KernelList pointwise_loss_kernels() {
  static const oar_kernel list[] = {
      {"pointwise_loss", 1, "cpu:simd", nullptr, kernel_entry<pointwise_loss>},
      {"pointwise_loss_grad", 1, "cpu:simd", accepts_alike, training_entry<pointwise_loss_grad>},
  };
  return list;
}

}  // namespace oar::cpu
