// The record of an op: everything known about it, in one place. docs/adding-an-op.md explains each
// field with an example.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "oar/base/error.h"
#include "oar/ops/core/samples.h"
#include "oar/ops/core/schema.h"
#include "oar/ops/sharding/plan.h"
#include "oar/tensor/value.h"

namespace oar {

// Stands in a rule's place where there can be none, with the reason that users will read.
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

// A vjp rule's context. Only what `saves` names is there; the rest is undefined.
struct VjpCall {
  Args args;
  TensorList outputs;
  TensorList cotangents;  // one per result; zeros where nothing arrived, undefined for integers
  std::span<const bool> needed;  // one per tensor input, lists flattened
  bool needs(size_t i) const { return i >= needed.size() || needed[i]; }
};

struct JvpCall {
  Args args;
  TensorList outputs;
  Args tangents;  // as args, with tangents in the tensors' places; None where zero
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
    std::apply([this](auto&... t) { (push_back(std::move(t)), ...); }, tuple);
  }
  explicit Made(Outputs outputs) : Outputs(std::move(outputs)) {}
};

using InferRule = Rule<Metas, Args>;
using ViewRule = Rule<std::optional<ViewSpec>, Args>;
using MakeRule = Rule<Made, Args>;
using VjpRule = Rule<Grads, VjpCall>;
using JvpRule = Rule<Made, JvpCall>;
using BatchRule = Rule<Made, BatchCall>;
using PlanRule = Rule<void, PlanCall>;
using LocaliseRule = Rule<void, PieceCall>;

// What the dispatcher, the compiler and the tests may conclude about an op.
enum class Trait : uint32_t {
  None = 0,
  Elementwise = 1u << 0,  // out[i] depends on in[i] only; operands are broadcast in front
  Broadcast = 1u << 1,    // tensor operands are broadcast to one shape before every rule
  Promote = 1u << 2,      // … and cast to one dtype
  FloatMath = 1u << 3,    // integers become the default float first (exp, divide)
  Linear = 1u << 4,       // in its tensor operands together: jvp applies the op to the tangents
  Reduction = 1u << 5,
  Random = 1u << 6,         // takes numbers from the random stream
  View = 1u << 7,           // set by the registry where `view` is given
  Inplace = 1u << 8,        // set by the registry where a result is written through an argument
  DataDependent = 1u << 9,  // result sizes depend on values
  NoGrad = 1u << 10,        // piecewise constant or integer-valued: the derivative is zero
  Rowwise = 1u << 11,
  SelectedRows = 1u << 12,  // takes selected-rows operands as they are
  Smooth = 1u << 13,        // derivatives of order 3 are tested
  HasInplace = 1u << 14,    // `name_` exists too and writes the first operand
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
constexpr bool operator&(Trait a, Trait b) {
  return (static_cast<uint32_t>(a) & static_cast<uint32_t>(b)) != 0;
}

// What automatic mixed precision does with the op.
enum class Amp : uint8_t { Follow, Low, Full };

struct OpDef {
  const char* schema = nullptr;
  const char* brief = nullptr;
  InferRule infer;  // may be left out where `decompose` is given
  MakeRule decompose;
  ViewRule view;
  VjpRule vjp;
  // What vjp reads: "x out"; "x:shape" for its shape only; "x>y" for the whole of x if the gradient
  // of y is asked for, else its shape.
  const char* saves = "";
  JvpRule jvp;                  // derived where left out
  BatchRule batch;              // for vmap; derived from `shard` where left out
  const char* shard = nullptr;  // index notation; see ops/shard_rule.h
  PlanRule plan;                // where axes depend on more than names: reshape, convolution
  LocaliseRule localise;        // attributes of a piece, where they differ from those of the whole
  // Operands in which the op is linear while the others are fixed: "x y" of a product.
  const char* linear_in = "";
  Trait traits = Trait::None;
  const char* dtypes = "";    // of the first operands: "float complex int bool"; "" is any
  const char* promotes = "";  // names of the operands that share a dtype; "" is all
  Amp amp = Amp::Follow;
  const char* numpy = nullptr;  // reference: a NumPy expression in the parameter names
  std::function<Samples()> samples;
  const char* python = "";  // where Python shows it: "oar Tensor", "oar.nn.functional", …
  const char* onnx = "";    // names in foreign formats
};

}  // namespace oar
