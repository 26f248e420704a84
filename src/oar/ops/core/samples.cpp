#include "oar/ops/core/samples.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "oar/base/error.h"
#include "oar/device/generator.h"
#include "oar/ops/core/schema.h"

namespace oar {
namespace {

// Samples have their own stream: the same in every run, independent of the user's seed.
class NumberStream {
 public:
  explicit NumberStream(uint64_t seed) : seed_(seed) {}
  double uniform() {  // in (0, 1)
    if (left_ == 0) {
      block_ = philox(seed_, offset_++);
      left_ = 4;
    }
    return (static_cast<double>(block_[static_cast<size_t>(--left_)]) + 0.5) / 4294967296.0;
  }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  uint64_t seed_, offset_ = 0;
  std::array<uint32_t, 4> block_{};
  int left_ = 0;
};

std::vector<double> numbers_for(const TensorSpec& spec, int64_t n, NumberStream& random) {
  std::vector<double> values(static_cast<size_t>(n));
  switch (spec.fill) {
    case Fill::Normal:
      for (double& v : values) v = random.normal();
      break;
    case Fill::Uniform:
      for (double& v : values) v = spec.low + (spec.high - spec.low) * random.uniform();
      break;
    case Fill::Positive:
      for (double& v : values) v = 0.5 + random.uniform();
      break;
    case Fill::Distinct: {
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = 0.25 * (static_cast<double>(i) - static_cast<double>(n) / 2);
      for (size_t i = values.size(); i > 1; --i)
        std::swap(values[i - 1],
                  values[static_cast<size_t>(random.uniform() * static_cast<double>(i))]);
      break;
    }
    case Fill::Integers:
      for (double& v : values) v = std::floor(spec.low + (spec.high - spec.low) * random.uniform());
      break;
    case Fill::Bools:
      for (double& v : values) v = random.uniform() < 0.5;
      break;
    case Fill::Values:
      values = spec.values;
      break;
    case Fill::FullRank:
    case Fill::Definite:  // by matrix_numbers
      break;
  }
  return values;
}

using Complexes = std::vector<std::complex<double>>;

// `count` orthonormal columns of `size` random numbers, one after another.
Complexes orthonormal(size_t size, size_t count, bool is_complex, NumberStream& random) {
  Complexes columns(size * count);
  for (size_t j = 0; j < count; ++j) {
    std::complex<double>* column = columns.data() + j * size;
    for (size_t i = 0; i < size; ++i)
      column[i] = {random.normal(), is_complex ? random.normal() : 0};
    for (int pass = 0; pass < 2; ++pass)  // once more, for what rounding left
      for (size_t k = 0; k < j; ++k) {
        const std::complex<double>* other = columns.data() + k * size;
        std::complex<double> along = 0;
        for (size_t i = 0; i < size; ++i) along += std::conj(other[i]) * column[i];
        for (size_t i = 0; i < size; ++i) column[i] -= along * other[i];
      }
    double squares = 0;
    for (size_t i = 0; i < size; ++i) squares += std::norm(column[i]);
    for (size_t i = 0; i < size; ++i) column[i] /= std::sqrt(squares);
  }
  return columns;
}

// U diag(1, 1.75, ...) V^H with random orthonormal columns; V is U if the matrix is definite.
Complexes matrix_numbers(const TensorSpec& spec, bool is_complex, NumberStream& random) {
  const auto rows = static_cast<size_t>(spec.shape[spec.shape.size() - 2].value());
  const auto columns = static_cast<size_t>(spec.shape[spec.shape.size() - 1].value());
  const size_t rank = std::min(rows, columns);
  Complexes values(static_cast<size_t>(spec.shape.numel().value()), 0.0);
  for (size_t start = 0; start < values.size(); start += rows * columns) {
    const Complexes u = orthonormal(rows, rank, is_complex, random);
    const Complexes v =
        spec.fill == Fill::Definite ? u : orthonormal(columns, rank, is_complex, random);
    for (size_t k = 0; k < rank; ++k)
      for (size_t i = 0; i < rows; ++i)
        for (size_t j = 0; j < columns; ++j)
          values[start + i * columns + j] +=
              (1 + 0.75 * static_cast<double>(k)) * u[k * rows + i] * std::conj(v[k * columns + j]);
  }
  return values;
}

}  // namespace

TensorSpec::TensorSpec(SampleShape of, Fill with) : shape(of.sizes), fill(with) {}
TensorSpec::TensorSpec(const TensorSpec&) = default;
TensorSpec::TensorSpec(TensorSpec&&) noexcept = default;
TensorSpec& TensorSpec::operator=(const TensorSpec&) = default;
TensorSpec& TensorSpec::operator=(TensorSpec&&) noexcept = default;
TensorSpec::~TensorSpec() = default;

TensorSpec t(SampleShape shape) { return TensorSpec(shape); }
TensorSpec positive(SampleShape shape) { return TensorSpec(shape, Fill::Positive); }
TensorSpec distinct(SampleShape shape) { return TensorSpec(shape, Fill::Distinct); }

TensorSpec full_rank(SampleShape shape) { return TensorSpec(shape, Fill::FullRank); }

TensorSpec definite(SampleShape shape) {
  TensorSpec spec(shape, Fill::Definite);
  spec.hermitian = true;
  return spec;
}

TensorSpec uniform_in(double low, double high, SampleShape shape) {
  TensorSpec spec(shape, Fill::Uniform);
  spec.low = low;
  spec.high = high;
  return spec;
}

TensorSpec ints(int64_t low, int64_t high, SampleShape shape, DType dtype) {
  TensorSpec spec(shape, Fill::Integers);
  spec.low = static_cast<double>(low);
  spec.high = static_cast<double>(high);
  spec.dtype = dtype;
  spec.differentiable = false;
  return spec;
}

TensorSpec bools(SampleShape shape) {
  TensorSpec spec(shape, Fill::Bools);
  spec.dtype = DType::Bool;
  spec.differentiable = false;
  return spec;
}

TensorSpec filled_with(const std::vector<double>& values, SampleShape shape) {
  TensorSpec spec(shape, Fill::Values);
  spec.values = values;
  return spec;
}

TensorSpec fixed_values(const std::vector<double>& values, SampleShape shape,
                        std::optional<DType> dtype) {
  TensorSpec spec = filled_with(values, shape);
  spec.dtype = dtype;
  spec.differentiable = false;
  return spec;
}

TensorSpec of_dtype(const TensorSpec& spec, DType dtype) {
  TensorSpec changed = spec;
  changed.dtype = dtype;
  return changed;
}

namespace {
template <class T>
auto content_of(T&& value) {
  return std::make_unique<SampleArg::Content>(std::forward<T>(value));
}
}  // namespace

SampleArg::SampleArg(SampleNone v) : content_(content_of(v)) {}
SampleArg::SampleArg(std::nullopt_t) : SampleArg(SampleNone{}) {}
SampleArg::SampleArg(const TensorSpec& v) : content_(content_of(v)) {}
SampleArg::SampleArg(const std::vector<TensorSpec>& v) : content_(content_of(v)) {}
SampleArg::SampleArg(bool v) : content_(content_of(v)) {}
SampleArg::SampleArg(int v) : SampleArg(int64_t{v}) {}
SampleArg::SampleArg(int64_t v) : content_(content_of(v)) {}
SampleArg::SampleArg(double v) : content_(content_of(v)) {}
SampleArg::SampleArg(const char* v) : content_(content_of(std::string(v))) {}
SampleArg::SampleArg(DType v) : content_(content_of(v)) {}
SampleArg::SampleArg(const std::vector<int64_t>& v) : content_(content_of(v)) {}
SampleArg::SampleArg(const std::vector<double>& v) : content_(content_of(v)) {}
SampleArg::SampleArg(const SampleArg& other) : content_(content_of(other.content())) {}
SampleArg::SampleArg(SampleArg&&) noexcept = default;
SampleArg& SampleArg::operator=(const SampleArg& other) {
  content_ = content_of(other.content());
  return *this;
}
SampleArg& SampleArg::operator=(SampleArg&&) noexcept = default;
SampleArg::~SampleArg() = default;

Samples::Samples() = default;
Samples::Samples(const Samples&) = default;
Samples::Samples(Samples&&) noexcept = default;
Samples& Samples::operator=(const Samples&) = default;
Samples& Samples::operator=(Samples&&) noexcept = default;
Samples::~Samples() = default;

Samples& Samples::append(std::initializer_list<SampleArg> args) {
  push_back({args});
  return *this;
}

namespace samples {

Samples unary() { return Samples().add(t({4, 7})).add(t({2, 3, 5})).add(t({})).add(t({0, 3})); }

Samples unary_positive() {
  return Samples().add(positive({4, 7})).add(positive({})).add(positive({0, 3}));
}

Samples unary_in(double low, double high) {
  return Samples()
      .add(uniform_in(low, high, {4, 7}))
      .add(uniform_in(low, high, {}))
      .add(uniform_in(low, high, {0, 3}));
}

Samples binary() {
  return Samples()
      .add(t({4, 7}), t({4, 7}))
      .add(t({2, 1, 5}), t({3, 1}))
      .add(t({3}), t({}))
      .add(t({}), t({}))
      .add(t({0, 3}), t({3}));
}

Samples binary_positive() {
  return Samples()
      .add(positive({4, 7}), positive({4, 7}))
      .add(positive({2, 1, 5}), positive({3, 1}))
      .add(positive({3}), positive({}))
      .add(positive({0, 3}), positive({3}));
}

}  // namespace samples

Tensor TensorSpec::make(DType test_dtype, uint64_t seed) const {
  const DType type = dtype.value_or(test_dtype);
  NumberStream random(seed);
  const int64_t n = shape.numel().value();
  if (is_matrix()) {
    const Complexes values = matrix_numbers(*this, is_complex(type), random);
    if (is_complex(type)) return Tensor::from_vector(values, shape, type);
    std::vector<double> parts;
    for (const auto& v : values) parts.push_back(v.real());
    return Tensor::from_vector(parts, shape, type);
  }
  std::vector<double> reals = numbers_for(*this, n, random);
  if (is_complex(type)) {
    const std::vector<double> imaginary = numbers_for(*this, n, random);
    std::vector<std::complex<double>> both;
    for (size_t i = 0; i < reals.size(); ++i) both.emplace_back(reals[i], imaginary[i]);
    return Tensor::from_vector(both, shape, type);
  }
  if ((is_integral(type) || is_bool(type)) && !dtype)  // spread over a few integers
    for (double& v : reals)
      v = type == DType::UInt8 ? std::floor(std::fabs(v) * 3) : std::round(v * 3);
  if ((is_integral(type)) && !dtype && fill == Fill::Positive)
    for (double& v : reals) v = std::max(v, 1.0);
  return Tensor::from_vector(reals, shape, type);
}

Frame Sample::make(const Schema& schema, DType dtype, uint64_t seed) const {
  internal_check(args.size() <= schema.parameters.size(), "a sample of {} has {} arguments",
                 schema.name, args.size());
  Frame frame = schema.defaults().clone();
  for (size_t i = 0; i < args.size(); ++i) {
    const SampleArg::Content& arg = args[i].content();
    if (const auto* spec = std::get_if<TensorSpec>(&arg)) {
      frame.set_tensor(i, spec->make(dtype, seed * 1000 + i));
    } else if (const auto* specs = std::get_if<std::vector<TensorSpec>>(&arg)) {
      std::vector<Tensor> list;
      for (size_t k = 0; k < specs->size(); ++k)
        list.push_back((*specs)[k].make(dtype, seed * 1000 + i * 50 + k));
      frame.set_tensors(i, std::move(list));
    } else if (const auto* flag = std::get_if<bool>(&arg)) {
      frame.set(i, *flag);
    } else if (const auto* integer = std::get_if<int64_t>(&arg)) {
      const Parameter& p = schema.parameters[i];
      const bool list = p.list || p.type == ArgType::Shape;
      if (list)
        frame.set(i, Ints(integer, 1));
      else if (p.type == ArgType::Float)
        frame.set(i, static_cast<double>(*integer));
      else
        frame.set(i, *integer);
    } else if (const auto* real = std::get_if<double>(&arg)) {
      frame.set(i, *real);
    } else if (const auto* text = std::get_if<std::string>(&arg)) {
      frame.set(i, std::string_view(*text));
    } else if (const auto* integers = std::get_if<std::vector<int64_t>>(&arg)) {
      frame.set(i, Ints(*integers));
    } else if (const auto* type = std::get_if<DType>(&arg)) {
      frame.set(i, *type);
    } else if (const auto* reals = std::get_if<std::vector<double>>(&arg)) {
      frame.set(i, std::span<const double>(*reals));
    } else {
      frame.set(i, Value());
    }
  }
  return frame;
}

}  // namespace oar
