// jvp, Taylor series and vmap: tensors that carry derivatives or a hidden batch axis, in levels that nest in any order.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

// The content of a tensor inside a transform.
class Wrapped : public Payload {
 public:
  Wrapped(int l, Tensor v) : level(l), value(std::move(v)) {}
  // What the transform does with a call that has a tensor of this level.
  virtual Outputs call(const Op& op, Args args) const = 0;
  // The same content, through which no derivative passes.
  virtual Tensor detached() const = 0;

  const int level;
  Tensor value;
};

class Dual final : public Wrapped {
 public:
  Dual(int l, Tensor v, Tensor t) : Wrapped(l, std::move(v)), tangent(std::move(t)) {}
  Outputs call(const Op& op, Args args) const override;
  Tensor detached() const override;
  Tensor tangent;  // undefined: zero
};

// The batch is axis 0 of the value.
class Batched final : public Wrapped {
 public:
  using Wrapped::Wrapped;
  Outputs call(const Op& op, Args args) const override;
  Tensor detached() const override;
  Dim size() const { return value.dims()[0]; }
};

// The payload at this level, or null.
const Wrapped* wrapped_at(const Tensor& t, int level);
Tensor make_dual(const Tensor& value, const Tensor& tangent, int level);
Tensor make_batched(const Tensor& value, int level);
// The same content, through which no derivative of any level passes.
Tensor detach_wrapped(const Tensor& t);

// Tangents of this level and of the outer ones are cut: the user has switched derivatives off inside it. Does not
// include the tape's own steps with recording off.
int tangents_cut_until();

// Numbers the transforms that are running on this thread; inner ones are larger.
class TransformLevel {
 public:
  TransformLevel();
  ~TransformLevel();
  TransformLevel(const TransformLevel&) = delete;
  TransformLevel& operator=(const TransformLevel&) = delete;
  int level() const { return level_; }

 private:
  int level_;
};

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// Values and directional derivatives of f at `primals` along `tangents` (undefined: zero).
std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction& f, TensorList primals,
                                                        TensorList tangents);

// f over slices of the inputs. An axis of -1 << 31 (kNoAxis) leaves an input whole.
inline constexpr int64_t kNoAxis = INT64_MIN;
std::vector<Tensor> vmap(const TensorFunction& f, TensorList inputs, Ints in_axes, Ints out_axes);

Outputs transform_layer(const Op& op, Args args);

// Derivatives of the results of a call along tangents, by the op's rules; undefined ones are zero. `args` are the
// arguments that `tangent_of` knows, `primals` the same with the values in place of wrapped tensors.
using TangentOf = std::function<Tensor(const Tensor&)>;
std::vector<Tensor> output_tangents(const Op& op, Args args, Args primals, TensorList outputs,
                                    const TangentOf& tangent_of);

// The level of the transform that acts first on these tensors, if it is a jvp; else 0.
int dual_level(TensorList tensors, const std::string& name);
// A function with its own derivative on duals of this level (record.h).
std::vector<Tensor> custom_dual(TensorList inputs,
                                const std::function<std::vector<Tensor>(TensorList)>& forward,
                                const std::function<std::vector<Tensor>(TensorList)>& backward,
                                const std::string& name, int level);

// Arguments with this level's wrappers removed.
Frame unwrapped(Args args, int level);
// For a call that writes: the results of the functional op, to be copied in. Shared by all transforms.
Outputs functional_result(const Op& op, Args args);

}  // namespace oar
