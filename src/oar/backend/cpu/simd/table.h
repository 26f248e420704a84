// The vectorised loops of one instruction set: which there are, and how they are called.
#pragma once

#include <cstdint>

namespace oar::cpu::simd {

enum Type : int { kFloat32, kFloat64, kBFloat16, kFloat16, kInt32, kInt64, kBool, kTypes };

// out[i] = f(in[0][i], in[1][i] ...) for i < count, in each row. `out` is either one of the operands or
// apart from them all.
struct Run {
  void* out;
  const void* in[3];
  unsigned repeated;  // bit k: operand k is one element for all i of a row
  bool stream;        // bypass the caches: the result is too large for them
  int64_t count;
  int64_t rows = 1;
  int64_t across[4] = {};  // bytes from row to row: in the result, then in the operands
  const double* numbers;   // attributes of the op
};
using Function = void (*)(const Run&);

// Sets of types.
constexpr unsigned kFloats = 1u << kFloat32 | 1u << kFloat64 | 1u << kBFloat16 | 1u << kFloat16;
constexpr unsigned kBelowDouble = kFloats & ~(1u << kFloat64);
constexpr unsigned kIntegers = 1u << kInt32 | 1u << kInt64;
constexpr unsigned kNumbers = kFloats | kIntegers;
constexpr unsigned kBits = kIntegers | 1u << kBool;
constexpr unsigned kNumbersAndBool = kNumbers | 1u << kBool;
// The types of a loop that only training runs: none in a deployed library. And those of the AVX-512 loops: what models
// compute in; the base set serves the others, with the same bits.
#if defined(OAR_DEPLOY)
#define OAR_TRAINING(types) 0u
constexpr unsigned kAvx512Types = kBelowDouble;
#else
#define OAR_TRAINING(types) types
constexpr unsigned kAvx512Types = kNumbersAndBool;
#endif

// X(op, functor, operands, numbers, types): the op's name, the functor that computes an element, how many
// tensors and then numbers the op takes, and the types that there are loops for. Y is the same for loops
// whose kernels are written by hand. The functors are in the file of units/ with the name of the list.
#define OAR_SIMD_ARITHMETIC(X, Y)                                            \
  X(neg, Neg, 1, 0, kNumbers)                                                \
  X(abs, Abs, 1, 0, kNumbers)                                                \
  X(sign, Sign, 1, 0, kNumbers)                                              \
  X(square, Square, 1, 0, kNumbers)                                          \
  X(floor, Floor, 1, 0, kFloats)                                             \
  X(ceil, Ceil, 1, 0, kFloats)                                               \
  X(trunc, Trunc, 1, 0, kFloats)                                             \
  Y(round, Round, 1, 0, kFloats)                                             \
  Y(scale, ScaleThenAdd, 1, 2, kFloats)                                      \
  Y(add_then_scale, AddThenScale, 1, 2, kFloats)                             \
  Y(clip, Clip, 1, 2, kFloats)                                               \
  Y(clip_grad, ClipGrad, 2, 2, OAR_TRAINING(kFloats))                        \
  X(add, Add, 2, 0, kNumbers)                                                \
  X(subtract, Subtract, 2, 0, kNumbers)                                      \
  X(multiply, Multiply, 2, 0, kNumbers)                                      \
  Y(floor_divide, FloorDivide, 2, 0, kIntegers)                              \
  X(divide, Divide, 2, 0, kFloats)                                           \
  X(maximum, Maximum, 2, 0, kNumbers)                                        \
  X(minimum, Minimum, 2, 0, kNumbers)                                        \
  X(fmax, Fmax, 2, 0, kNumbers)                                              \
  X(fmin, Fmin, 2, 0, kNumbers)                                              \
  X(bitwise_and, BitwiseAnd, 2, 0, kBits)                                    \
  X(bitwise_or, BitwiseOr, 2, 0, kBits)                                      \
  X(bitwise_xor, BitwiseXor, 2, 0, kBits)                                    \
  X(relu, Relu, 1, 0, kNumbers)                                              \
  X(relu_grad, ReluGrad, 2, 0, OAR_TRAINING(kNumbers))                       \
  X(leaky_relu, LeakyRelu, 1, 1, kFloats)                                    \
  X(leaky_relu_grad, LeakyReluGrad, 2, 1, OAR_TRAINING(kFloats))             \
  X(hardswish, Hardswish, 1, 0, kFloats)                                     \
  X(hardswish_grad, HardswishGrad, 2, 0, OAR_TRAINING(kFloats))              \
  X(hardsigmoid, Hardsigmoid, 1, 2, kFloats)                                 \
  X(hardsigmoid_grad, HardsigmoidGrad, 2, 1, OAR_TRAINING(kFloats))          \
  X(softsign, Softsign, 1, 0, kFloats)                                       \
  X(softsign_grad, SoftsignGrad, 2, 0, OAR_TRAINING(kFloats))                \
  X(sloped, Sloped, 2, 0, kFloats)                                           \
  X(sloped_grad, SlopedGrad, 3, 0, OAR_TRAINING(kFloats))                    \
  X(hardshrink, Hardshrink, 1, 1, kFloats)                                   \
  X(softshrink, Softshrink, 1, 1, kFloats)                                   \
  X(shrink_grad, ShrinkGrad, 2, 1, OAR_TRAINING(kFloats))                    \
  X(thresholded_relu, ThresholdedRelu, 1, 2, kFloats)                        \
  X(thresholded_relu_grad, ThresholdedReluGrad, 2, 1, OAR_TRAINING(kFloats)) \
  X(lerp, Lerp, 3, 0, kFloats)                                               \
  X(sigmoid_grad, SigmoidGrad, 2, 0, OAR_TRAINING(kFloats))                  \
  X(tanh_grad, TanhGrad, 2, 0, OAR_TRAINING(kFloats))

#define OAR_SIMD_MATH(X, Y)                                     \
  X(reciprocal, Reciprocal, 1, 0, kFloats)                      \
  X(sqrt, Sqrt, 1, 0, kFloats)                                  \
  X(rsqrt, Rsqrt, 1, 0, kFloats)                                \
  X(rsqrt_grad, RsqrtGrad, 2, 0, OAR_TRAINING(kFloats))         \
  X(exp, Exp, 1, 0, kFloats)                                    \
  X(expm1, Expm1, 1, 0, kFloats)                                \
  X(log, Log, 1, 0, kFloats)                                    \
  X(log2, Log2, 1, 0, kFloats)                                  \
  X(log10, Log10, 1, 0, kFloats)                                \
  X(log1p, Log1p, 1, 0, kFloats)                                \
  X(erf, Erf, 1, 0, kFloats)                                    \
  X(erf_grad, ErfGrad, 2, 0, OAR_TRAINING(kFloats))             \
  X(erfinv, Erfinv, 1, 0, kBelowDouble)                         \
  X(lgamma, Lgamma, 1, 0, kBelowDouble)                         \
  Y(logit, Logit, 1, 2, kFloats)                                \
  X(sin, Sin, 1, 0, kFloats)                                    \
  X(cos, Cos, 1, 0, kFloats)                                    \
  X(tan, Tan, 1, 0, kFloats)                                    \
  X(asin, Asin, 1, 0, kFloats)                                  \
  X(acos, Acos, 1, 0, kFloats)                                  \
  X(atan, Atan, 1, 0, kFloats)                                  \
  X(sinh, Sinh, 1, 0, kFloats)                                  \
  X(cosh, Cosh, 1, 0, kFloats)                                  \
  X(tanh, Tanh, 1, 0, kFloats)                                  \
  X(atan2, Atan2, 2, 0, kFloats)                                \
  X(hypot, Hypot, 2, 0, kFloats)                                \
  X(logaddexp, LogAddExp, 2, 0, kFloats)                        \
  X(logaddexp_grad, LogAddExpGrad, 3, 0, OAR_TRAINING(kFloats)) \
  Y(pow, Power, 2, 0, kFloats)                                  \
  Y(cube, Cube, 1, 0, kFloats)                                  \
  Y(pow_grad, PowerGrad, 3, 0, OAR_TRAINING(kFloats))           \
  Y(square_grad, SquareGrad, 2, 0, OAR_TRAINING(kFloats))       \
  Y(cube_grad, CubeGrad, 2, 0, OAR_TRAINING(kFloats))           \
  X(remainder, Remainder, 2, 0, kFloats)

#define OAR_SIMD_ACTIVATION(X, Y)                                  \
  X(sigmoid, Sigmoid, 1, 0, kFloats)                               \
  X(silu, Silu, 1, 0, kFloats)                                     \
  X(silu_grad, SiluGrad, 2, 0, OAR_TRAINING(kFloats))              \
  Y(glu, Glu, 2, 0, kFloats)                                       \
  Y(glu_gate_grad, GluGateGrad, 3, 0, OAR_TRAINING(kFloats))       \
  X(gated_silu, GatedSilu, 2, 0, kFloats)                          \
  Y(gated_silu_grad, GatedSiluGrad, 3, 0, OAR_TRAINING(kFloats))   \
  X(log_sigmoid, LogSigmoid, 1, 0, kFloats)                        \
  X(log_sigmoid_grad, LogSigmoidGrad, 2, 0, OAR_TRAINING(kFloats)) \
  X(softplus, Softplus, 1, 2, kFloats)                             \
  X(softplus_grad, SoftplusGrad, 2, 2, OAR_TRAINING(kFloats))      \
  X(elu, Elu, 1, 1, kFloats)                                       \
  X(elu_grad, EluGrad, 2, 1, OAR_TRAINING(kFloats))                \
  Y(gelu, Gelu, 1, 0, kFloats)                                     \
  Y(gelu_tanh, GeluTanh, 1, 0, kFloats)                            \
  Y(gelu_grad, GeluGrad, 2, 0, OAR_TRAINING(kFloats))              \
  Y(gelu_tanh_grad, GeluTanhGrad, 2, 0, OAR_TRAINING(kFloats))     \
  X(mish, Mish, 1, 0, kFloats)                                     \
  X(mish_grad, MishGrad, 2, 0, OAR_TRAINING(kFloats))              \
  X(celu, Celu, 1, 1, kFloats)                                     \
  X(celu_grad, CeluGrad, 2, 1, OAR_TRAINING(kFloats))              \
  X(selu, Selu, 1, 2, kFloats)                                     \
  X(selu_grad, SeluGrad, 2, 2, OAR_TRAINING(kFloats))              \
  X(stanh, Stanh, 1, 2, kFloats)                                   \
  X(tanhshrink, Tanhshrink, 1, 0, kFloats)                         \
  X(tanhshrink_grad, TanhshrinkGrad, 2, 0, OAR_TRAINING(kFloats))

// Values of losses and their slopes times a gradient; `pointwise_loss` has their kernels.
#define OAR_SIMD_LOSS(X, Y)                                                                    \
  Y(square_loss, Parts<SquareLoss>::template Value, 2, 2, OAR_TRAINING(kFloats))               \
  Y(square_slope, Parts<SquareLoss>::template Slope, 3, 3, OAR_TRAINING(kFloats))              \
  Y(absolute_loss, Parts<AbsoluteLoss>::template Value, 2, 2, OAR_TRAINING(kFloats))           \
  Y(absolute_slope, Parts<AbsoluteLoss>::template Slope, 3, 3, OAR_TRAINING(kFloats))          \
  Y(huber_loss, Parts<HuberLoss>::template Value, 2, 2, OAR_TRAINING(kFloats))                 \
  Y(huber_slope, Parts<HuberLoss>::template Slope, 3, 3, OAR_TRAINING(kFloats))                \
  Y(logistic_loss, Parts<LogisticLoss>::template Value, 2, 2, OAR_TRAINING(kFloats))           \
  Y(logistic_slope, Parts<LogisticLoss>::template Slope, 3, 3, OAR_TRAINING(kFloats))          \
  Y(binary_entropy, Parts<BinaryEntropy>::template Value, 2, 2, OAR_TRAINING(kFloats))         \
  Y(binary_entropy_slope, Parts<BinaryEntropy>::template Slope, 3, 3, OAR_TRAINING(kFloats))   \
  Y(bernoulli_loss, Parts<BernoulliLoss>::template Value, 2, 2, OAR_TRAINING(kFloats))         \
  Y(bernoulli_slope, Parts<BernoulliLoss>::template Slope, 3, 3, OAR_TRAINING(kFloats))        \
  Y(focal_loss, Parts<FocalLoss>::template Value, 2, 2, OAR_TRAINING(kFloats))                 \
  Y(focal_slope, Parts<FocalLoss>::template Slope, 3, 3, OAR_TRAINING(kFloats))                \
  Y(hinge_embedding, Parts<HingeEmbedding>::template Value, 2, 2, OAR_TRAINING(kFloats))       \
  Y(hinge_embedding_slope, Parts<HingeEmbedding>::template Slope, 3, 3, OAR_TRAINING(kFloats)) \
  Y(poisson_of_log, Parts<PoissonOfLog>::template Value, 2, 2, OAR_TRAINING(kFloats))          \
  Y(poisson_of_log_slope, Parts<PoissonOfLog>::template Slope, 3, 3, OAR_TRAINING(kFloats))    \
  Y(poisson_loss, Parts<Poisson>::template Value, 2, 2, OAR_TRAINING(kFloats))                 \
  Y(poisson_slope, Parts<Poisson>::template Slope, 3, 3, OAR_TRAINING(kFloats))                \
  Y(divergence, Parts<Divergence>::template Value, 2, 2, OAR_TRAINING(kFloats))                \
  Y(divergence_slope, Parts<Divergence>::template Slope, 3, 3, OAR_TRAINING(kFloats))          \
  Y(divergence_of_log, Parts<DivergenceOfLog>::template Value, 2, 2, OAR_TRAINING(kFloats))    \
  Y(divergence_of_log_slope, Parts<DivergenceOfLog>::template Slope, 3, 3, OAR_TRAINING(kFloats))

// These return a bool.
#define OAR_SIMD_QUESTION(X, Y)                     \
  X(equal, Equal, 2, 0, kNumbersAndBool)            \
  X(not_equal, NotEqual, 2, 0, kNumbersAndBool)     \
  X(less_than, Less, 2, 0, kNumbers)                \
  X(less_equal, LessEqual, 2, 0, kNumbers)          \
  X(greater_than, Greater, 2, 0, kNumbers)          \
  X(greater_equal, GreaterEqual, 2, 0, kNumbers)    \
  X(isnan, IsNan, 1, 0, kFloats)                    \
  X(isinf, IsInf, 1, 0, kFloats)                    \
  X(isfinite, IsFinite, 1, 0, kFloats)              \
  X(logical_not, LogicalNot, 1, 0, kNumbersAndBool) \
  X(logical_and, LogicalAnd, 2, 0, kNumbersAndBool) \
  X(logical_or, LogicalOr, 2, 0, kNumbersAndBool)   \
  X(logical_xor, LogicalXor, 2, 0, kNumbersAndBool)

#define OAR_SIMD_LISTS(X, Y) \
  OAR_SIMD_ARITHMETIC(X, Y)  \
  OAR_SIMD_MATH(X, Y) OAR_SIMD_ACTIVATION(X, Y) OAR_SIMD_LOSS(X, Y) OAR_SIMD_QUESTION(X, Y)

#define OAR_SIMD_NAME(op, ...) op,
enum class Op : int { OAR_SIMD_LISTS(OAR_SIMD_NAME, OAR_SIMD_NAME) kCount };
#undef OAR_SIMD_NAME

// The tables of each instruction set: AVX2 on x86-64, elsewhere what the whole library is compiled
// for; and AVX-512, only on x86-64. An entry is null if there is no loop for the type, or for AVX-512 if that of the base
// set will do.
#define OAR_SIMD_EXPORTS                                           \
  extern const Function kArithmetic[][kTypes];                     \
  extern const Function kMath[][kTypes];                           \
  extern const Function kActivation[][kTypes];                     \
  extern const Function kLoss[][kTypes];                           \
  extern const Function kQuestion[][kTypes];                       \
  extern const Function kConvert[kTypes][kTypes]; /* [from][to] */ \
  extern const Function kSelect[4]; /* by log2 of an element's bytes; operand 0 is the condition */
namespace base {
OAR_SIMD_EXPORTS
}
namespace avx512 {
OAR_SIMD_EXPORTS
}
#undef OAR_SIMD_EXPORTS

}  // namespace oar::cpu::simd
