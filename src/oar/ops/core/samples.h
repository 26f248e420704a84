// Test samples in an op's record: calls that the generated tests make in every mode.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// How a sample's tensor is filled.
enum class Fill {
  Normal,
  Uniform,
  Positive,
  Distinct,
  Integers,
  Bools,
  Values,
  FullRank,
  Definite
};

// The sizes of a sample's tensor: a list in braces, or a Shape.
struct SampleShape {
  SampleShape() = default;  // {}: 0-d
  SampleShape(std::initializer_list<Dim> list) { sizes = Dims(list.begin(), list.size()); }
  SampleShape(const Shape& shape) : sizes(shape) {}
  Dims sizes;  // of the caller's list: for the time of the call
};

// Records are full of samples, and only tests compute them. So whatever a sample is built from is compiled once, in
// samples.cpp: a record's file holds calls and no copies of containers.
struct TensorSpec {
  explicit TensorSpec(SampleShape shape, Fill fill = Fill::Normal);
  TensorSpec(const TensorSpec& other);
  TensorSpec(TensorSpec&& other) noexcept;
  TensorSpec& operator=(const TensorSpec& other);
  TensorSpec& operator=(TensorSpec&& other) noexcept;
  ~TensorSpec();

  Shape shape;
  Fill fill;
  double low = -1, high = 1;   // Uniform, Integers (high excluded)
  std::optional<DType> dtype;  // fixed; otherwise the test's dtype
  std::vector<double> values;  // Values
  bool differentiable = true;
  // The matrices are Hermitian; tests of derivatives move them in Hermitian directions only.
  bool hermitian = false;

  // Matrices in the last two axes whose elements belong together: tests do not shuffle them.
  bool is_matrix() const { return fill == Fill::FullRank || fill == Fill::Definite; }

  Tensor make(DType test_dtype, uint64_t seed) const;
};

// Short names, because records are full of them.
TensorSpec t(SampleShape shape);
TensorSpec positive(SampleShape shape);
// All elements apart from each other, so that max and sort are smooth around them.
TensorSpec distinct(SampleShape shape);
TensorSpec uniform_in(double low, double high, SampleShape shape);
TensorSpec ints(int64_t low, int64_t high, SampleShape shape, DType dtype = DType::Int64);
TensorSpec bools(SampleShape shape);
TensorSpec filled_with(const std::vector<double>& values, SampleShape shape);
// … that are not differentiated.
TensorSpec fixed_values(const std::vector<double>& values, SampleShape shape,
                        std::optional<DType> dtype = std::nullopt);
// Matrices of full rank whose singular values are apart from each other.
TensorSpec full_rank(SampleShape shape);
// Hermitian positive definite matrices whose eigenvalues are apart from each other.
TensorSpec definite(SampleShape shape);
TensorSpec of_dtype(const TensorSpec& spec, DType dtype);

struct SampleNone {};

// One argument of a sample.
class SampleArg {
 public:
  using Content =
      std::variant<SampleNone, TensorSpec, std::vector<TensorSpec>, bool, int64_t, double,
                   std::string, std::vector<int64_t>, DType, std::vector<double>>;

  SampleArg(SampleNone);
  SampleArg(std::nullopt_t);
  SampleArg(const TensorSpec& value);
  SampleArg(const std::vector<TensorSpec>& value);
  SampleArg(bool value);
  SampleArg(int value);
  SampleArg(int64_t value);
  SampleArg(double value);
  SampleArg(const char* value);
  SampleArg(DType value);
  SampleArg(const std::vector<int64_t>& value);
  SampleArg(const std::vector<double>& value);
  SampleArg(const SampleArg& other);
  SampleArg(SampleArg&& other) noexcept;
  SampleArg& operator=(const SampleArg& other);
  SampleArg& operator=(SampleArg&& other) noexcept;
  ~SampleArg();

  const Content& content() const { return *content_; }

 private:
  std::unique_ptr<Content> content_;
};

struct Sample {
  std::vector<SampleArg> args;  // by position; missing ones take the schema's defaults
  // Arguments of a call in the given dtype; `frame` owns them.
  Frame make(const struct Schema& schema, DType dtype, uint64_t seed) const;
};

class Samples : public std::vector<Sample> {
 public:
  Samples();
  Samples(const Samples& other);
  Samples(Samples&& other) noexcept;
  Samples& operator=(const Samples& other);
  Samples& operator=(Samples&& other) noexcept;
  ~Samples();

  // One call: tensors by t(...), attributes as literals, in schema order.
  template <class... A>
  Samples& add(const A&... args) {
    return append({SampleArg(args)...});
  }

 private:
  Samples& append(std::initializer_list<SampleArg> args);
};
using IntVector = std::vector<int64_t>;
using Specs = std::vector<TensorSpec>;

namespace samples {
// The shapes every elementwise op must take: several ranks, 0-d, zero-size.
Samples unary();
Samples unary_positive();
Samples unary_in(double low, double high);
// … and for two operands: equal shapes, broadcasting both ways, 0-d, zero-size.
Samples binary();
Samples binary_positive();
}  // namespace samples

}  // namespace oar
