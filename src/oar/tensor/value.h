// Arguments of a call: `Value` borrows, `Frame` owns.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// A number whose kind matters: `2` and `2.0` promote differently.
class Scalar {
 public:
  enum Kind : uint8_t { Bool, Int, Double, Complex };
  Scalar() = default;
  Scalar(bool v) : kind_(Bool), integer_(v) {}
  Scalar(int v) : kind_(Int), integer_(v) {}
  Scalar(int64_t v) : kind_(Int), integer_(v) {}
  Scalar(double v) : kind_(Double), real_(v) {}
  Scalar(std::complex<double> v) : kind_(Complex), real_(v.real()), imag_(v.imag()) {}

  Kind kind() const { return kind_; }
  int64_t to_int() const { return kind_ <= Int ? integer_ : static_cast<int64_t>(real_); }
  double to_double() const { return kind_ <= Int ? static_cast<double>(integer_) : real_; }
  std::complex<double> to_complex() const { return {to_double(), kind_ == Complex ? imag_ : 0.0}; }
  const double* parts() const { return &real_; }  // real, imaginary
  // The dtype it has on its own: bool, int64, the default float, its complex.
  DType natural_dtype() const;

 private:
  Kind kind_ = Int;
  int64_t integer_ = 0;
  double real_ = 0;
  double imag_ = 0;  // right after real_: `parts` returns both
};

// One argument, borrowed: its creator keeps what it points to alive for the call.
class Value : public oar_value {
 public:
  Value() {
    tag = OAR_TAG_NONE;
    count = 0;
    integer = 0;
  }
  Value(std::nullopt_t) : Value() {}
  Value(const Tensor& t) : Value() {
    if (t.defined()) {
      tag = OAR_TAG_TENSOR;
      tensor = t.impl();
    }
  }
  Value(Tensor&&) = delete;  // would dangle
  Value(TensorList list) {
    tag = OAR_TAG_TENSORS;
    count = static_cast<int32_t>(list.size());
    tensors = reinterpret_cast<const oar_tensor* const*>(list.data());
  }
  Value(bool v) {
    tag = OAR_TAG_BOOL;
    count = 0;
    integer = v;
  }
  Value(int v) : Value(static_cast<int64_t>(v)) {}
  Value(int64_t v) {
    tag = OAR_TAG_INT;
    count = 0;
    integer = v;
  }
  Value(double v) {
    tag = OAR_TAG_DOUBLE;
    count = 0;
    real = v;
  }
  Value(DType t) {
    tag = OAR_TAG_DTYPE;
    count = 0;
    integer = static_cast<int64_t>(t);
  }
  Value(std::string_view s) {
    tag = OAR_TAG_STRING;
    count = static_cast<int32_t>(s.size());
    string = s.data();
  }
  Value(const char* s) : Value(std::string_view(s)) {}
  Value(Ints list) {
    tag = OAR_TAG_INTS;
    count = static_cast<int32_t>(list.size());
    integers = list.data();
  }
  Value(Dims dims) : Value(as_words(dims)) {}
  Value(std::span<const double> list) {
    tag = OAR_TAG_DOUBLES;
    count = static_cast<int32_t>(list.size());
    doubles = list.data();
  }
  Value(const Scalar& s);
  Value(Scalar&&) = delete;
  template <class T>
  Value(const std::optional<T>& v) : Value() {
    if (v) *this = Value(*v);
  }

  bool is_none() const { return tag == OAR_TAG_NONE; }
  bool is_tensor() const { return tag == OAR_TAG_TENSOR; }
  bool is_tensors() const { return tag == OAR_TAG_TENSORS; }

  TensorImpl* impl() const { return static_cast<TensorImpl*>(const_cast<oar_tensor*>(tensor)); }
  // A handle that lives inside this value; undefined for None.
  const Tensor& as_tensor() const {
    // A Tensor is one pointer, so the pointer in this value reads as a borrowed handle.
    return tag == OAR_TAG_TENSOR ? reinterpret_cast<const Tensor&>(tensor) : undefined_tensor();
  }
  TensorList as_tensors() const {
    return {reinterpret_cast<const Tensor*>(tensors), static_cast<size_t>(count)};
  }
  int64_t as_int() const { return integer; }
  bool as_bool() const { return integer != 0; }
  double as_double() const { return real; }
  DType as_dtype() const { return static_cast<DType>(integer); }
  std::string_view as_string() const { return {string, static_cast<size_t>(count)}; }
  Ints as_ints() const { return {integers, static_cast<size_t>(count)}; }
  Dims as_dim_list() const { return as_dims(as_ints()); }
  std::span<const double> as_doubles() const { return {doubles, static_cast<size_t>(count)}; }
  Scalar as_scalar() const;
  static const Tensor& undefined_tensor();
  std::string str() const;  // for messages and program text
};
static_assert(sizeof(Value) == sizeof(oar_value));

using Args = std::span<const Value>;

// Visits every tensor of a call, including those in lists; undefined entries are skipped.
template <class F>
void for_each_tensor(Args args, F&& body) {
  for (const Value& v : args) {
    if (v.is_tensor()) {
      body(v.as_tensor());
    } else if (v.is_tensors()) {
      for (const Tensor& t : v.as_tensors())
        if (t.defined()) body(t);
    }
  }
}

// An owning copy of a call's arguments.
class Frame {
 public:
  Frame() = default;
  explicit Frame(Args args);
  Frame(Frame&& other) noexcept { *this = std::move(other); }
  Frame& operator=(Frame&& other) noexcept;

  Args args() const { return {values_.data(), values_.size()}; }
  size_t size() const { return values_.size(); }
  const Value& operator[](size_t i) const { return values_[i]; }
  void push(const Value& v);
  void set_tensor(size_t i, Tensor t);
  void set_tensors(size_t i, std::vector<Tensor> list);
  void set(size_t i, const Value& v) { values_[i] = own(v); }
  Frame clone() const { return Frame(args()); }

 private:
  Value own(const Value& v);
  int64_t* room_for(size_t words);
  struct Lists {
    std::vector<std::unique_ptr<std::vector<Tensor>>> tensors;
    std::vector<std::unique_ptr<int64_t[]>> words;
  };
  Lists& lists() {
    if (!lists_) lists_ = std::make_unique<Lists>();
    return *lists_;
  }

  SmallVector<Value, 4> values_;
  SmallVector<Tensor, 2> tensors_;
  std::unique_ptr<Lists> lists_;
  // Short lists of numbers are stored here: most calls have no longer ones.
  static constexpr size_t kNearWords = 8;
  int64_t near_[kNearWords];
  size_t near_used_ = 0;
};

// The results of an op.
using Outputs = SmallVector<Tensor, 3>;

// A few rows of a tall matrix that is zero elsewhere.
class SelectedRows : public Payload {
 public:
  SelectedRows(Tensor r, Tensor v) : rows(std::move(r)), values(std::move(v)) {}
  const Tensor rows;    // int64 [n], may repeat
  const Tensor values;  // [n, ...]
};
Tensor make_selected_rows(const Tensor& rows, const Tensor& values, Dims full_shape);
const SelectedRows& selected_rows(const Tensor& t);

}  // namespace oar
