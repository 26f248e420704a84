// Test samples in an op's record: calls that the generated tests make in every mode.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// How a sample's tensor is filled.
enum class Fill { Normal, Uniform, Positive, Distinct, Integers, Bools, Values };

struct TensorSpec {
  Shape shape;
  Fill fill = Fill::Normal;
  double low = -1, high = 1;   // Uniform, Integers (high excluded)
  std::optional<DType> dtype;  // fixed; otherwise the test's dtype
  std::vector<double> values;  // Values
  bool differentiable = true;

  Tensor make(DType test_dtype, uint64_t seed) const;
};

// Short names, because records are full of them.
inline TensorSpec t(Shape shape) { return {.shape = std::move(shape)}; }
inline TensorSpec positive(Shape shape) {
  return {.shape = std::move(shape), .fill = Fill::Positive};
}
// All elements apart from each other, so that max and sort are smooth around them.
inline TensorSpec distinct(Shape shape) {
  return {.shape = std::move(shape), .fill = Fill::Distinct};
}
inline TensorSpec uniform_in(double low, double high, Shape shape) {
  return {.shape = std::move(shape), .fill = Fill::Uniform, .low = low, .high = high};
}
inline TensorSpec ints(int64_t low, int64_t high, Shape shape, DType dtype = DType::Int64) {
  return {.shape = std::move(shape),
          .fill = Fill::Integers,
          .low = static_cast<double>(low),
          .high = static_cast<double>(high),
          .dtype = dtype,
          .differentiable = false};
}
inline TensorSpec bools(Shape shape) {
  return {.shape = std::move(shape),
          .fill = Fill::Bools,
          .dtype = DType::Bool,
          .differentiable = false};
}
inline TensorSpec of_dtype(TensorSpec spec, DType dtype) {
  spec.dtype = dtype;
  return spec;
}

struct SampleNone {};
using SampleArg =
    std::variant<SampleNone, TensorSpec, std::vector<TensorSpec>, bool, int64_t, double,
                 std::string, std::vector<int64_t>, DType, std::vector<double>>;

struct Sample {
  std::vector<SampleArg> args;  // by position; missing ones take the schema's defaults
  // Arguments of a call in the given dtype; `frame` owns them.
  Frame make(const struct Schema& schema, DType dtype, uint64_t seed) const;
};

class Samples : public std::vector<Sample> {
 public:
  // One call: tensors by t(...), attributes as literals, in schema order.
  template <class... A>
  Samples& add(A... args) {  // NOLINT(performance-unnecessary-value-param): they are moved
    push_back({{to_arg(std::move(args))...}});
    return *this;
  }

 private:
  static SampleArg to_arg(SampleNone v) { return v; }
  static SampleArg to_arg(std::nullopt_t) { return SampleNone{}; }
  static SampleArg to_arg(TensorSpec v) { return v; }
  static SampleArg to_arg(std::vector<TensorSpec> v) { return v; }
  static SampleArg to_arg(bool v) { return v; }
  static SampleArg to_arg(int v) { return int64_t{v}; }
  static SampleArg to_arg(int64_t v) { return v; }
  static SampleArg to_arg(double v) { return v; }
  static SampleArg to_arg(const char* v) { return std::string(v); }
  static SampleArg to_arg(DType v) { return v; }
  static SampleArg to_arg(std::vector<int64_t> v) { return v; }
  static SampleArg to_arg(std::vector<double> v) { return v; }
};
using IntVector = std::vector<int64_t>;
using Specs = std::vector<TensorSpec>;

namespace samples {
// The shapes every elementwise op must take: several ranks, 0-d, zero-size.
inline Samples unary() {
  return Samples().add(t({4, 7})).add(t({2, 3, 5})).add(t({})).add(t({0, 3}));
}
inline Samples unary_positive() {
  return Samples().add(positive({4, 7})).add(positive({})).add(positive({0, 3}));
}
inline Samples unary_in(double low, double high) {
  return Samples()
      .add(uniform_in(low, high, {4, 7}))
      .add(uniform_in(low, high, {}))
      .add(uniform_in(low, high, {0, 3}));
}
// … and for two operands: equal shapes, broadcasting both ways, 0-d, zero-size.
inline Samples binary() {
  return Samples()
      .add(t({4, 7}), t({4, 7}))
      .add(t({2, 1, 5}), t({3, 1}))
      .add(t({3}), t({}))
      .add(t({}), t({}))
      .add(t({0, 3}), t({3}));
}
inline Samples binary_positive() {
  return Samples()
      .add(positive({4, 7}), positive({4, 7}))
      .add(positive({2, 1, 5}), positive({3, 1}))
      .add(positive({3}), positive({}))
      .add(positive({0, 3}), positive({3}));
}
}  // namespace samples

}  // namespace oar
