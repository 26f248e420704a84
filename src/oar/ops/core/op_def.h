// The record of an op: everything known about it, in one place. docs/adding-an-op.md explains each
// field with an example.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/error.h"
#include "oar/ops/core/canonical.h"
#include "oar/ops/core/deployed.h"
#include "oar/ops/core/samples.h"
#include "oar/ops/core/schema.h"
#include "oar/ops/sharding/plan.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// Replaces a rule that cannot exist, with the reason that users will read.
struct Unsupported {
  const char* why;
};

namespace detail {
template <class F>
struct ParameterOf : ParameterOf<decltype(&F::operator())> {};
template <class C, class R, class P>
struct ParameterOf<R (C::*)(P) const> {
  using type = std::remove_cvref_t<P>;
};
template <class R, class P>
struct ParameterOf<R (*)(P)> {
  using type = std::remove_cvref_t<P>;
};
}  // namespace detail

// A rule: a function, an Unsupported, or nothing. A function takes the context itself or any type
// made from it, such as the generated args::softmax.
template <class R, class Context>
class Rule {
 public:
  Rule() = default;
  Rule(Unsupported u) : why_(u.why) {}  // reads as the record does
  template <class F>
  Rule(Kept<F> kept) : Rule(std::move(kept.function)) {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Rule> && !std::is_same_v<F, Unsupported>)
  Rule(F function) {  // NOLINT(performance-unnecessary-value-param): lambdas are small
    using P = typename detail::ParameterOf<F>::type;
    if constexpr (std::is_same_v<P, Context>)
      function_ = function;
    else
      function_ = [function](const Context& context) -> R { return function(P(context)); };
  }

  explicit operator bool() const { return static_cast<bool>(function_); }
  bool is_unsupported() const { return why_ != nullptr; }
  const char* why() const { return why_; }
  R operator()(const Context& context) const { return function_(context); }

 private:
  std::function<R(const Context&)> function_;
  const char* why_ = nullptr;
};

// In a deployed library: the rule that was marked `kept`, else none.
template <class RuleType>
struct DroppedUnlessKept : RuleType {
  DroppedUnlessKept() = default;
  template <class F>
  DroppedUnlessKept(Kept<F> kept) : RuleType(std::move(kept)) {}
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, DroppedUnlessKept>)
  [[gnu::always_inline]] DroppedUnlessKept(F&&) {}
};
template <class RuleType>
using FullOrKept = std::conditional_t<kDeployed, DroppedUnlessKept<RuleType>, RuleType>;

// What inference says of one result.
struct TensorMeta {
  DType dtype = DType::Float32;
  Shape shape;
  // The size depends on the data: the kernel allocates. `shape` then gives the rank, with an upper
  // bound or a fresh symbol in the unknown places.
  bool data_dependent = false;
};
class Metas : public SmallVector<TensorMeta, 2> {
 public:
  Metas() = default;
  Metas(TensorMeta one) { push_back(std::move(one)); }
  Metas(std::initializer_list<TensorMeta> many) {
    for (const TensorMeta& m : many) push_back(m);
  }
};

// A view's place in its base's memory, in elements relative to the base's own first element.
struct ViewSpec {
  Shape shape;
  SmallVector<int64_t, 6> strides;
  int64_t offset = 0;
};

class Grads : public SmallVector<Tensor, 3> {
 public:
  Grads() = default;
  Grads(Tensor one) { push_back(std::move(one)); }
  Grads(std::initializer_list<Tensor> many) {
    for (const Tensor& t : many) push_back(t);
  }
};

// A vjp rule's context. Only what `saves` names is present; the rest is undefined.
struct VjpCall {
  Args args;
  TensorList outputs;
  TensorList cotangents;         // one per result; zeros if none arrived, undefined for integers
  std::span<const bool> needed;  // one per tensor input, lists flattened
  bool needs(size_t i) const { return i >= needed.size() || needed[i]; }
};

struct JvpCall {
  Args args;
  TensorList outputs;
  Args tangents;  // as args, with tangents instead of the tensors; None if zero
};

// A batching rule's context: batched tensors have the batch as axis 0, the others have none.
struct BatchCall {
  Args args;
  Dim size;
  std::span<const bool> batched;  // one per parameter
};

// Results of a decomposition or run-time kernel.
class Made : public Outputs {
 public:
  Made() = default;
  Made(Tensor one) { push_back(std::move(one)); }
  Made(std::initializer_list<Tensor> many) {
    for (const Tensor& t : many) push_back(t);
  }
  Made(std::vector<Tensor> list) {
    for (Tensor& t : list) push_back(std::move(t));
  }
  template <class... T>
  Made(std::tuple<T...> tuple) {
    std::apply([&](auto&... t) { (push_back(std::move(t)), ...); }, tuple);
  }
  explicit Made(Outputs outputs) : Outputs(std::move(outputs)) {}
};

// The work of a call, by sizes; symbolic sizes count as their hints.
struct Cost {
  double flops = 0;     // every kind of arithmetic on one element
  double bytes = -1;    // read and written; below 0: all operands and results, once each
  double products = 0;  // the flops in sums of products: devices do them at full rate
  static Cost of_products(double flops) { return {.flops = flops, .products = flops}; }
};

// A cost rule's context: the arguments and the results, of which only shapes and dtypes are read.
struct CostCall {
  Args args;
  TensorList results;
};

// For a result that is zero except for some rows: the operands that hold the numbers and the slices of these rows.
struct RowsSpec {
  size_t numbers = 0, slices = 0;
  bool as_given = true;  // else the slices must be processed first
};

using InferRule = Rule<Metas, Args>;
using ViewRule = Rule<std::optional<ViewSpec>, Args>;
using MakeRule = Rule<Made, Args>;
using VjpRule = Rule<Grads, VjpCall>;
using JvpRule = Rule<Made, JvpCall>;
using BatchRule = Rule<Made, BatchCall>;
using PlanRule = Rule<void, PlanCall>;
using LocaliseRule = Rule<void, PieceCall>;
using CanonicalRule = Rule<void, CanonicalCall>;
using AcceptRule = Rule<bool, Args>;
using CostRule = Rule<Cost, CostCall>;
using RowsRule = Rule<std::optional<RowsSpec>, Args>;
using OrderRule = Rule<bool, Args>;

// What the dispatcher, the compiler and the tests may conclude about an op.
enum class Trait : uint32_t {
  None = 0,
  Elementwise = 1u << 0,  // out[i] depends on in[i] only; operands are broadcast before
  Broadcast = 1u << 1,    // tensor operands are broadcast to one shape before every rule
  Promote = 1u << 2,      // … and cast to one dtype
  FloatMath = 1u << 3,    // integers become the default float first (exp, divide)
  Linear = 1u << 4,       // in its tensor operands together: jvp applies the op to the tangents
  Reduction = 1u << 5,
  Random = 1u << 6,         // takes numbers from the random stream
  View = 1u << 7,           // set by the registry if `view` is given
  Inplace = 1u << 8,        // set by the registry if a result is written through an argument
  DataDependent = 1u << 9,  // result sizes depend on values
  NoGrad = 1u << 10,        // piecewise constant or integer-valued: the derivative is zero
  Rowwise = 1u << 11,
  SelectedRows = 1u << 12,  // takes selected-rows operands as they are
  Exchanges = 1u << 13,     // all processes of a group make the call, in the same order
  HasInplace = 1u << 14,    // `name_` exists too and writes the first operand
  // A 0-d operand does not widen larger operands of its kind: float32 * 0-d float64 is float32.
  Arithmetic = 1u << 15,
  // Each element of the results is one of the operands', chosen by shapes and attributes alone: concat, flip. Implied for views.
  Moves = 1u << 16,
  MayFail = 1u << 17,  // an elementwise op whose kernel can reject values: integer division by 0
  BackwardMark = 1u << 18,  // what is computed from its result belongs to the derivative
  Packed = 1u << 19,        // takes operands that are packed below a byte (int4) as they are
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool operator&(Trait a, Trait b) {
  return (static_cast<uint32_t>(a) & static_cast<uint32_t>(b)) != 0;
}

// What automatic mixed precision does with the op.
enum class Amp : uint8_t { Follow, Low, Full };

// How the op works on images [batch, channels, height, width] whose channels are last in memory. The compiler then
// permutes the image operands and results, and the attributes that name their axes: `channels_last`, `channel_axis`
// and those named here. Elementwise ops need nothing: every operand and result is an image.
struct ImageLayout {
  // Operands that are images: "x residual"; none: the op refuses.
  FullOnly<const char*> images = "";
  FullOnly<const char*> sizes = "";  // an attribute with the sizes of an image
  FullOnly<const char*> axes = "";   // an attribute with axes of an image
  // The weight [out_channels, in_channels / groups, …] of a convolution, an operand or a result. Such an op is faster
  // with the channels last if the weight is large enough, and others follow it.
  FullOnly<const char*> weight = "";
};

// How a call can be fused into the product or convolution whose result it reads.
enum class EpilogueRole : uint8_t {
  None,
  Sum,         // x + y: with a bias or a residual
  Product,     // x * y: with a factor
  ScaleShift,  // x * scale + shift, per channel
  Spread,      // repeats x, aligned at the last axes: what a bias passes through
};

// A step that a product or convolution can do on each element of its result before it is stored.
enum class EpilogueStep : uint8_t { None, ScaleShift, Bias, Factor, Residual, Activation };

// Which calls the compiler fuses with the call that computes their operand.
struct Epilogue {
  FullOnly<EpilogueRole> role = EpilogueRole::None;  // as a reader of another op's result

  // As the op whose result is read: the steps it can do, in order, and the op that does them. The first operands of
  // `fused` are those of this op; attributes and steps have their names (`bias`, `scale`, `shift`, `residual`,
  // `activation`). No `fused`: the op has a bool attribute for the activation, of the same name.
  FullOnly<std::array<EpilogueStep, 4>> steps{};
  FullOnly<const char*> fused = "";
  FullOnly<const char*> sets = "";  // a bool attribute of `fused` that stands for this op
  FullOnly<std::span<const char* const>> activations;  // ops that can be its activation
  FullOnly<AcceptRule> accepts;  // calls of this op that have an epilogue; none: all

  // The op that computes the gradient of this one. `fuse_epilogues` tells it of an activation, too.
  FullOnly<const char*> gradient = "";
};

// A field of type FullOnly is empty in a deployed library (deployed.h).
struct OpDef {
  const char* schema = nullptr;
  FullOnly<const char*> brief = nullptr;
  InferRule infer;  // may be left out where `decompose` is given
  FullOrKept<MakeRule> decompose;
  // One element of each result from the elements of the operands in its place: "max(x, 0)"; see ops/core/scalar.h.
  FullOnly<const char*> scalar = nullptr;
  CostRule cost;  // derived from the scalar body, the traits or `decompose` where left out
  ViewRule view;
  FullOnly<VjpRule> vjp;
  // What vjp reads: "x out"; "x:shape" for its shape only; "x>y" for the whole of x if the gradient
  // of y is asked for, else its shape.
  FullOnly<const char*> saves = "";
  FullOnly<JvpRule> jvp;                  // derived where left out
  FullOnly<BatchRule> batch;              // for vmap; derived from `shard` where left out
  FullOnly<const char*> shard = nullptr;  // index notation; see ops/sharding/rule.h
  FullOnly<PlanRule> plan;  // where axes depend on more than names: reshape, convolution
  // Attributes of a piece, where they differ from those of the whole.
  FullOnly<LocaliseRule> localise;
  // Operands in which the op is linear while the others are fixed: "x y" of a product.
  FullOnly<const char*> linear_in = "";
  // For the compiler's passes.
  // Simplifies a call in a program: x * 1, transpose of transpose.
  FullOnly<CanonicalRule> canonical;
  FullOnly<const char*> fill = "";  // the attribute that every element of the result equals
  ImageLayout layout;
  Epilogue epilogue;
  FullOnly<RowsRule> rows;  // where the call asks for a result that is held as selected rows
  // May a library cut its sums by threads, and so give other bits on another number of them? Yes if left out.
  OrderRule cuts_sums;
  Trait traits = Trait::None;
  const char* dtypes = "";    // of the first operands: "float complex int bool"; "" is any
  const char* promotes = "";  // names of the operands that share a dtype; "" is all
  Amp amp = Amp::Follow;
  FullOnly<const char*> numpy = nullptr;  // reference: a NumPy expression in the parameter names
  FullOnly<std::function<Samples()>> samples;
  FullOnly<const char*> python = "";  // where Python shows it: "oar Tensor", "oar.nn.functional", …
  FullOnly<const char*> onnx = "";    // names in foreign formats
};

}  // namespace oar
