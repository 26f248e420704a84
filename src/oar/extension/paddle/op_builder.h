// PD_BUILD_OP and related functions: an op described by a chain of calls.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "oar/base/api.h"
#include "oar/extension/paddle/call.h"

namespace OAR_API paddle {

// Names derived from a tensor's name.
inline std::string Grad(const std::string& name) { return name + "@GRAD"; }
inline std::string Vec(const std::string& name) { return name + "@VECTOR"; }
inline std::string New(const std::string& name) { return name + "@NEW"; }
inline std::string Optional(const std::string& name) { return name + "@OPTIONAL"; }

namespace detail {
// What a chain has described. Nothing is checked before the library is loaded.
struct OpRecord {
  std::string name;
  int order = 0;  // of the derivative: 0 the op, 1 its gradient, 2 the gradient's
  std::vector<std::string> inputs, outputs, attributes;
  std::unordered_map<std::string, std::string> written;  // input -> output
  Kernel kernel;
  Callable<Shapes> infer_shape;
  Callable<DataTypes> infer_dtype;
  std::string schema, saves;  // built when the library is loaded
};
void announce(std::shared_ptr<OpRecord> record) noexcept;
}  // namespace detail

class OpMetaInfoBuilder {
 public:
  OpMetaInfoBuilder(const char* name, int order) : record_(std::make_shared<detail::OpRecord>()) {
    record_->name = name;
    record_->order = order;
    detail::announce(record_);
  }
  OpMetaInfoBuilder& Inputs(std::vector<std::string>&& names) {
    record_->inputs = std::move(names);
    return *this;
  }
  OpMetaInfoBuilder& Outputs(std::vector<std::string>&& names) {
    record_->outputs = std::move(names);
    return *this;
  }
  // "name: type", with bool, int, int64_t, float, double, std::string and vectors of numbers.
  OpMetaInfoBuilder& Attrs(std::vector<std::string>&& attributes) {
    record_->attributes = std::move(attributes);
    return *this;
  }
  OpMetaInfoBuilder& SetInplaceMap(std::unordered_map<std::string, std::string>&& written) {
    record_->written = std::move(written);
    return *this;
  }
  OpMetaInfoBuilder& SetKernelFn(detail::Kernel&& kernel) {
    record_->kernel = std::move(kernel);
    return *this;
  }
  OpMetaInfoBuilder& SetInferShapeFn(detail::Callable<detail::Shapes>&& function) {
    record_->infer_shape = std::move(function);
    return *this;
  }
  OpMetaInfoBuilder& SetInferDtypeFn(detail::Callable<detail::DataTypes>&& function) {
    record_->infer_dtype = std::move(function);
    return *this;
  }

 private:
  std::shared_ptr<detail::OpRecord> record_;
};

}  // namespace paddle

#define PD_BUILD_OP(name)                                             \
  [[maybe_unused]] static ::paddle::OpMetaInfoBuilder oar_op_##name = \
      ::paddle::OpMetaInfoBuilder(#name, 0)
#define PD_BUILD_GRAD_OP(name)                                             \
  [[maybe_unused]] static ::paddle::OpMetaInfoBuilder oar_op_grad_##name = \
      ::paddle::OpMetaInfoBuilder(#name, 1)
#define PD_BUILD_DOUBLE_GRAD_OP(name)                                           \
  [[maybe_unused]] static ::paddle::OpMetaInfoBuilder oar_op_grad_grad_##name = \
      ::paddle::OpMetaInfoBuilder(#name, 2)
