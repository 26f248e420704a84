#include "oar/tensor/value.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "oar/base/error.h"
#include "oar/tensor/closure.h"

namespace oar {

DType Scalar::natural_dtype() const {
  switch (kind_) {
    case Bool:
      return DType::Bool;
    case Int:
      return DType::Int64;
    case Double:
      return default_dtype();
    case Complex:
      return complex_type_of(default_dtype());
  }
  return DType::Float32;
}

Value::Value(const Scalar& s) {
  count = 0;
  switch (s.kind()) {
    case Scalar::Bool:
      tag = OAR_TAG_BOOL;
      integer = s.to_int();
      break;
    case Scalar::Int:
      tag = OAR_TAG_INT;
      integer = s.to_int();
      break;
    case Scalar::Double:
      tag = OAR_TAG_DOUBLE;
      real = s.to_double();
      break;
    case Scalar::Complex:
      // The parts stay in the scalar, which outlives the call as every borrowed argument does.
      tag = OAR_TAG_COMPLEX;
      count = 2;
      doubles = s.parts();
      break;
  }
}

const Tensor& Value::undefined_tensor() {
  static const Tensor undefined;
  return undefined;
}

Scalar Value::as_scalar() const {
  switch (tag) {
    case OAR_TAG_BOOL:
      return Scalar(integer != 0);
    case OAR_TAG_INT:
      return Scalar(integer);
    case OAR_TAG_DOUBLE:
      return Scalar(real);
    case OAR_TAG_COMPLEX:
      return Scalar(std::complex<double>(doubles[0], doubles[1]));
    default:
      fail(ErrorKind::Internal, "an argument is read as a number but holds tag {}", tag);
  }
}

std::string Value::str() const {
  switch (tag) {
    case OAR_TAG_NONE:
      return "None";
    case OAR_TAG_TENSOR:
      return as_tensor().describe();
    case OAR_TAG_TENSORS: {
      std::string text = "[";
      for (const Tensor& t : as_tensors()) text += (text.size() > 1 ? ", " : "") + t.describe();
      return text + "]";
    }
    case OAR_TAG_BOOL:
      return as_bool() ? "True" : "False";
    case OAR_TAG_INT:
      return Dim::from_word(integer).str();
    case OAR_TAG_DOUBLE:
      return format("{}", real);
    case OAR_TAG_COMPLEX:
      return format("({}, {}j)", doubles[0], doubles[1]);
    case OAR_TAG_STRING:
      return format("\"{}\"", as_string());
    case OAR_TAG_INTS:
      return to_string(as_ints());
    case OAR_TAG_DOUBLES: {
      std::string text = "[";
      for (double d : as_doubles()) text += (text.size() > 1 ? ", " : "") + format("{}", d);
      return text + "]";
    }
    case OAR_TAG_DTYPE:
      return name_of(as_dtype());
    case kProgramTag:
      return as_program(*this).str();
    case kProgramsTag: {
      std::string text = "[";
      for (const ClosurePtr& p : as_programs(*this))
        text += (text.size() > 1 ? ", " : "") + p->str();
      return text + "]";
    }
    default:
      return "?";
  }
}

Frame::Frame(Args args) {
  for (const Value& v : args) push(v);
}

void Frame::push(const Value& v) { values_.push_back(own(v)); }

// A frame keeps programs as it keeps tensors: by a handle whose payload they are.
static Tensor holder_of(const Closure& program) {
  return Tensor::with_payload(Kind::Meta, Dims{}, DType::Bool, {}, 0,
                              Intrusive<Payload>(const_cast<Closure*>(&program)));
}

Value Frame::own(const Value& v) {
  switch (v.tag) {
    case OAR_TAG_TENSOR:
      tensors_.push_back(v.as_tensor());
      return v;
    case OAR_TAG_TENSORS: {
      TensorList list = v.as_tensors();
      lists().tensors.push_back(std::make_unique<std::vector<Tensor>>(list.begin(), list.end()));
      return Value(TensorList(*lists().tensors.back()));
    }
    case kProgramTag:
      tensors_.push_back(holder_of(as_program(v)));
      return v;
    case kProgramsTag: {
      int64_t* copy = room_for(static_cast<size_t>(v.count));
      for (const ClosurePtr& p : as_programs(v)) tensors_.push_back(holder_of(*p));
      if (v.count) std::memcpy(copy, v.integers, static_cast<size_t>(v.count) * sizeof(int64_t));
      Value owned = v;
      owned.integers = copy;
      return owned;
    }
    case OAR_TAG_INTS:
    case OAR_TAG_DOUBLES:
    case OAR_TAG_COMPLEX:
    case OAR_TAG_STRING: {
      const auto count = static_cast<size_t>(v.count);
      const size_t bytes = v.tag == OAR_TAG_STRING ? count : count * sizeof(int64_t);
      int64_t* copy = room_for((bytes + 7) / 8);
      if (bytes) std::memcpy(copy, v.string, bytes);
      Value owned = v;
      owned.integers = copy;
      return owned;
    }
    default:
      return v;
  }
}

int64_t* Frame::room_for(size_t words) {
  if (words <= kNearWords - near_used_) {
    int64_t* place = near_ + near_used_;
    near_used_ += words;
    return place;
  }
  lists().words.push_back(std::make_unique<int64_t[]>(words));
  return lists().words.back().get();
}

Frame& Frame::operator=(Frame&& other) noexcept {
  values_ = std::move(other.values_);
  tensors_ = std::move(other.tensors_);
  lists_ = std::move(other.lists_);
  near_used_ = std::exchange(other.near_used_, 0);
  std::copy_n(other.near_, near_used_, near_);
  for (Value& v : values_) {  // lists inside the other frame are inside this one now
    const bool listed = v.tag == OAR_TAG_INTS || v.tag == OAR_TAG_DOUBLES ||
                        v.tag == OAR_TAG_COMPLEX || v.tag == OAR_TAG_STRING ||
                        v.tag == kProgramsTag;
    const std::less_equal<const int64_t*> up_to;
    if (listed && up_to(other.near_, v.integers) && up_to(v.integers, other.near_ + kNearWords))
      v.integers = near_ + (v.integers - other.near_);
  }
  return *this;
}

void Frame::set_tensor(size_t i, Tensor t) {
  values_[i] = Value(t);
  tensors_.push_back(std::move(t));
}

void Frame::set_tensors(size_t i, std::vector<Tensor> list) {
  lists().tensors.push_back(std::make_unique<std::vector<Tensor>>(std::move(list)));
  values_[i] = Value(TensorList(*lists().tensors.back()));
}

Tensor make_selected_rows(const Tensor& rows, const Tensor& values, Dims full_shape) {
  internal_check(rows.rank() == 1 && values.rank() >= 1,
                 "selected rows need int64[n] and [n, ...]");
  return Tensor::with_payload(Kind::SelectedRows, full_shape, values.dtype(), values.device(), 0,
                              make_intrusive<SelectedRows>(rows, values));
}

const SelectedRows& selected_rows(const Tensor& t) {
  internal_check(t.kind() == Kind::SelectedRows, "{} is not selected rows", t.describe());
  return static_cast<const SelectedRows&>(*t->payload);
}

}  // namespace oar
