// The autograd layer of the dispatcher: records a call on the tape.
#pragma once

#include "oar/autograd/node.h"
#include "oar/autograd/saved.h"
#include "oar/base/api.h"

namespace OAR_API oar {

// A recorded op call.
class OpNode final : public Node, public FreeListed<OpNode> {
 public:
  // Saves what the op's vjp reads: arguments as aliases, copies of those that the call will overwrite.
  OpNode(const Op& op, Args args);
  void save_outputs(const Outputs& outputs);

  Grads apply(TensorList cotangents, std::span<const bool> needed) override;
  std::string name() const override { return op_.name(); }
  void free_saved() override;
  bool is_freed() const { return freed_; }
  bool is_view() const { return op_.has(Trait::View); }
  // For a view: adds the cotangent to its part of `sum`, a tensor like the base.
  // Returns false, and does nothing, if the op is not such a view.
  bool add_to(const Tensor& sum, const Tensor& cotangent) const;

 private:
  const OpDef& rules() const { return (op_.inplace_of() ? *op_.inplace_of() : op_).def(); }
  void save_argument(size_t i, Args args);
  void check_versions() const;
  Tensor saved(const Tensor& t);
  bool pack(const Tensor& t, int16_t place, size_t element);
  Frame unpacked_args() const;
  Tensor restored(const Tensor& saved, const Edge& edge, int16_t parameter) const;
  Frame restored_args(Args saved) const;
  std::vector<Tensor> restored_outputs();
  Grads fitting(Grads grads) const;

  struct Version {
    const TensorImpl* tensor;  // an alias owned by this node
    uint32_t version;
    int16_t parameter;  // or -1 - result
  };
  // A saved tensor that a hook took over; its place has a tensor without content.
  struct Packed {
    UnpackHook unpack;
    int16_t place;  // a parameter, or -1 - number of the result
    size_t element;
  };
  const Op& op_;
  uint32_t recorded_;  // parameters that require a gradient
  Frame args_;
  SmallVector<Tensor, 1> outputs_;
  SmallVector<Version, 3> versions_;
  std::unique_ptr<std::vector<Packed>> packed_;  // rare
  uint32_t copied_ = 0;  // parameters that were saved as copies, because the call overwrites them
  bool freed_ = false;
};

Outputs autograd_layer(const Op& op, Args args);

// For a view whose base was written through another view: recreates its node.
void refresh_view_history(const Tensor& t);

// The vjp of an op as a function, for layers that derive something from it.
Grads call_vjp(const Op& op, Args args, TensorList outputs, TensorList cotangents,
               std::span<const bool> needed = {});

// A function with its own derivative. `backward` gets the results' cotangents and returns one
// gradient per input. Results without a cotangent get zeros, or, with `Missing::Undefined`, undefined tensors. After a
// backward that does not keep the graph `backward` is destroyed, unless it frees what it saved itself.
enum class Missing : uint8_t { Zeros, Undefined };
enum class Frees : uint8_t { Node, Itself };
using CustomForward = std::function<std::vector<Tensor>(TensorList inputs)>;
using CustomBackward = std::function<std::vector<Tensor>(TensorList cotangents)>;
std::vector<Tensor> custom_function(TensorList inputs, const CustomForward& forward,
                                    CustomBackward backward, std::string name = "custom",
                                    Missing missing = Missing::Zeros, Frees frees = Frees::Node);
// The error of a second backward.
[[noreturn]] void fail_freed(std::string_view name);
// Inside such a backward: the alias of a result, with its place on the tape. A backward that kept the result itself
// would keep its own node alive forever.
Tensor result_of_custom(const Tensor& alias, uint32_t index);
// … and the content of an input that was saved without its history.
Tensor input_of_custom(const Tensor& content, uint32_t index);

// A gradient that a user's function returned for the tensor at the end of the edge; an error if the shapes differ.
// `source` names the function.
Tensor fitting_gradient(Tensor gradient, const Edge& edge, std::string_view source);
Tensor fitting_gradient(Tensor gradient, const Shape& shape, std::string_view source);

}  // namespace oar
