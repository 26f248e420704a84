#include "hostile.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

#include "oar/base/error.h"
#include "oar/ops/core/program_args.h"
#include "oar/tensor/element.h"

namespace fuzz {

using namespace oar;

namespace {

constexpr int64_t kMostElements = 3000;

// Exactly as many bytes as requested: a sanitizer sees the first one after them.
StoragePtr exact_storage(size_t bytes) {
  return Storage::adopt(
      std::malloc(bytes), bytes, Device{}, [](void*, void* data, size_t) { std::free(data); },
      nullptr);
}

double random_real(Random& random) {
  static const std::vector<double> odd = {0,      -0.0,     1,         -1,    0.5,   2,
                                          1e-300, -1e300,   1e18,      1e-20, 65504, 1e308,
                                          3.75,   INFINITY, -INFINITY, NAN};
  if (random.chance(0.4)) return random.pick(odd);
  return (static_cast<double>(random.below(2000)) - 1000) / 300;
}

// An element of an index, a label, a length.
int64_t random_element(Random& random, DType dtype) {
  if (random.chance(0.9)) return static_cast<int64_t>(random.below(9)) - 2;
  if (dtype == DType::Int64) return random_integer(random);
  return static_cast<int64_t>(random.word());
}

enum class Content { Zeros, Small, Ordinary, Extreme };

void fill(Random& random, char* data, int64_t count, DType dtype) {
  static const std::vector<Content> contents = {Content::Zeros, Content::Small, Content::Small,
                                                Content::Ordinary, Content::Extreme};
  const Content content = random.pick(contents);
  const size_t size = size_of(dtype);
  for (int64_t i = 0; i < count; ++i, data += size) {
    if (dtype == DType::Bool) {
      *data = static_cast<char>(content != Content::Zeros && random.chance(0.5));
    } else if (is_integral(dtype)) {
      const int64_t number = content == Content::Zeros   ? 0
                             : content == Content::Small ? static_cast<int64_t>(random.below(4))
                                                         : random_element(random, dtype);
      store_integer(data, dtype, number);
    } else if (content == Content::Zeros) {
      std::memset(data, 0, size);
    } else {
      const double number = content == Content::Extreme
                                ? random_real(random)
                                : (static_cast<double>(random.below(2000)) - 1000) / 300;
      store_element(data, dtype, {number, content == Content::Small ? 0 : -number});
    }
  }
}

// The strides of a dense tensor whose axes are in another order, with gaps or overlapping.
struct Layout {
  SmallVector<int64_t, 6> strides;
  int64_t elements = 1;  // of the memory
};
Layout random_layout(Random& random, const Shape& shape) {
  const size_t rank = shape.size();
  std::vector<size_t> order(rank);
  for (size_t i = 0; i < rank; ++i) order[i] = i;
  const size_t kind = random.below(8);  // mostly row-major
  if (kind == 0) std::reverse(order.begin(), order.end());
  if (kind == 1) std::shuffle(order.begin(), order.end(), std::mt19937_64(random.word()));
  Layout layout;
  layout.strides.resize(rank);
  for (size_t k = rank; k-- > 0;) {
    const size_t axis = order[k];
    const bool flat = kind == 2 && random.chance(0.5), gap = kind == 3 && random.chance(0.5);
    const int64_t size = std::max<int64_t>(shape[axis].value(), 1);
    if (gap) layout.elements *= 2;
    layout.strides[axis] = flat ? 0 : layout.elements;
    if (!flat) layout.elements *= size;
  }
  return layout;
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> list = [] {
    std::set<std::string> found = {
        "", "x", "mean", "none", "sum", "NHWC", "...", "\xff\xfe", std::string(300, 'a')};
    for (const Op* op : Registry::get().all()) {
      for (const Value& v : op->schema().defaults().args())
        if (v.tag == OAR_TAG_STRING) found.emplace(v.as_string());
      if (!op->def().samples) continue;
      for (const Sample& s : op->def().samples())
        for (const SampleArg& a : s.args)
          if (const auto* text = std::get_if<std::string>(&a.content())) found.insert(*text);
    }
    return std::vector<std::string>(found.begin(), found.end());
  }();
  return list;
}

std::vector<int64_t> changed(Random& random, std::vector<int64_t> list) {
  switch (random.below(5)) {
    case 0:
      list.clear();
      for (size_t n = random.below(6); n > 0; --n) list.push_back(random_integer(random));
      break;
    case 1:
      list.push_back(random_integer(random));
      break;
    case 2:
      if (!list.empty()) list.erase(list.begin() + static_cast<int64_t>(random.below(list.size())));
      break;
    default:
      if (!list.empty()) list[random.below(list.size())] = random_integer(random);
  }
  return list;
}

void change_list(Random& random, const Parameter& p, Frame& frame, size_t i) {
  const Value& old = frame[i];
  if (p.type == ArgType::Float) {
    std::vector<double> reals;
    if (old.tag == OAR_TAG_DOUBLES) reals.assign(old.as_doubles().begin(), old.as_doubles().end());
    if (reals.empty() || random.chance(0.3)) reals.push_back(random_real(random));
    reals[random.below(reals.size())] = random_real(random);
    if (random.chance(0.2)) reals.pop_back();
    return frame.set(i, Value(std::span<const double>(reals)));
  }
  std::vector<int64_t> list;
  if (old.tag == OAR_TAG_INTS) list.assign(old.as_ints().begin(), old.as_ints().end());
  list = changed(random, std::move(list));
  frame.set(i, Value(Ints(list)));
}

Shape changed(Random& random, Shape shape) {
  const size_t at = random.below(shape.size() + 1);
  switch (random.below(4)) {
    case 0:
      return random_shape(random);
    case 1:
      shape.push_back(static_cast<int64_t>(random.below(4)));
      break;
    case 2:
      if (!shape.empty()) shape.pop_back();
      break;
    default:
      if (at < shape.size()) shape[at] = static_cast<int64_t>(random.below(9));
  }
  return shape;
}

Tensor changed(Random& random, const Tensor& t) {
  if (!t.defined()) return random_tensor(random, random_shape(random), random_dtype(random));
  switch (random.below(5)) {
    case 0:
      return random_tensor(random, t.shape(), random_dtype(random));
    case 1:
      return random_tensor(random, t.shape(), t.dtype());
    case 2:
    case 3:
      return random_tensor(random, changed(random, t.shape()), t.dtype());
    default:
      return random_tensor(random, random_shape(random), random_dtype(random));
  }
}

void change_tensor(Random& random, const Parameter& p, Frame& frame, size_t i) {
  if (p.optional && random.chance(0.25)) return frame.set(i, Value());
  if (!p.list) return frame.set_tensor(i, changed(random, frame[i].as_tensor()));
  std::vector<Tensor> list;
  if (frame[i].is_tensors())
    list.assign(frame[i].as_tensors().begin(), frame[i].as_tensors().end());
  if (list.empty() || random.chance(0.2)) list.push_back(changed(random, Tensor()));
  const size_t at = random.below(list.size());
  list[at] = p.optional_elements && random.chance(0.2) ? Tensor() : changed(random, list[at]);
  if (random.chance(0.2)) list.pop_back();
  frame.set_tensors(i, std::move(list));
}

// The sample's own tensors, in memory of exactly their size.
void copy_exactly(Frame& frame) {
  const auto exact = [](const Tensor& t) {
    if (!t.defined()) return t;
    const auto bytes = static_cast<size_t>(byte_count(t->numel, t.dtype()));
    StoragePtr storage = exact_storage(bytes);
    if (bytes > 0) std::memcpy(storage->data(), t->data, bytes);
    return Tensor::view_of(storage, t.dims(), t.strides(), storage->data(), t.dtype());
  };
  for (size_t i = 0; i < frame.size(); ++i) {
    if (frame[i].is_tensor()) frame.set_tensor(i, exact(frame[i].as_tensor()));
    if (!frame[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : frame[i].as_tensors()) list.push_back(exact(t));
    frame.set_tensors(i, std::move(list));
  }
}

// Where the record has no sample: anything that the schema allows.
Frame call_by_schema(Random& random, const Op& op) {
  Frame frame = op.schema().defaults().clone();
  for (size_t i = 0; i < frame.size(); ++i) {
    const Parameter& p = op.schema().parameters[i];
    if (p.is_tensor() && p.list)
      frame.set_tensors(i, {});
    else if (p.is_tensor() && !(p.optional && random.chance(0.5)))
      frame.set_tensor(i, changed(random, Tensor()));
    else if (!p.is_tensor() && !p.optional && !p.has_default)
      change_attribute(random, op, frame, i);
  }
  return frame;
}

Frame valid_call(Random& random, const Op& op) {
  const Op& shown = op.inplace_of() ? *op.inplace_of() : op;
  const Samples samples = shown.def().samples ? shown.def().samples() : Samples();
  if (samples.empty()) return call_by_schema(random, op);
  const DType dtype = random.chance(0.6) ? DType::Float32 : random_dtype(random);
  Frame frame = random.pick(samples).make(op.schema(), dtype, random.below(100));
  copy_exactly(frame);
  return frame;
}

}  // namespace

int64_t random_integer(Random& random) {
  static const std::vector<int64_t> odd = {1000,
                                           -1000,
                                           65536,
                                           INT32_MAX,
                                           int64_t{INT32_MAX} + 1,
                                           INT32_MIN,
                                           int64_t{1} << 40,
                                           -(int64_t{1} << 40),
                                           (int64_t{1} << 61) + 1,
                                           int64_t{1} << 62,
                                           -(int64_t{1} << 62),
                                           INT64_MAX,
                                           INT64_MAX - 1,
                                           INT64_MAX / 3};
  if (random.chance(0.3)) return random.pick(odd);
  return static_cast<int64_t>(random.below(12)) - 3;
}

DType random_dtype(Random& random) { return static_cast<DType>(random.below(kDTypeCount)); }

Shape random_shape(Random& random) {
  static const std::vector<int64_t> sizes = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33};
  Shape shape;
  int64_t elements = 1;
  for (size_t rank = random.below(6); rank > 0; --rank) {
    const int64_t size = random.pick(sizes);
    if (elements * std::max<int64_t>(size, 1) > kMostElements) break;
    elements *= std::max<int64_t>(size, 1);
    shape.push_back(size);
  }
  return shape;
}

// Elements that share bytes are adjacent; the rest of the last byte is 0.
Tensor random_packed(Random& random, const Shape& shape, DType dtype) {
  const int64_t elements = shape.numel().value(), bytes = byte_count(elements, dtype);
  const StoragePtr storage = exact_storage(static_cast<size_t>(bytes));
  auto* data = static_cast<uint8_t*>(storage->data());
  for (int64_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(random.below(256));
  if (elements % 2 != 0) data[bytes - 1] &= 15;
  return Tensor::view_of(storage, shape, contiguous_strides(shape), storage->data(), dtype);
}

Tensor random_tensor(Random& random, const Shape& shape, DType dtype) {
  if (is_packed(dtype)) return random_packed(random, shape, dtype);
  const Layout layout = random_layout(random, shape);
  const bool empty = shape.numel() == Dim(0);
  const size_t bytes = empty ? 0 : static_cast<size_t>(layout.elements) * size_of(dtype);
  const StoragePtr storage = exact_storage(bytes);
  fill(random, static_cast<char*>(storage->data()), empty ? 0 : layout.elements, dtype);
  return Tensor::view_of(storage, shape, {layout.strides.data(), layout.strides.size()},
                         storage->data(), dtype);
}

const std::vector<const Op*>& callable_ops() {
  static const std::vector<const Op*> list = [] {
    std::vector<const Op*> ops;
    for (const Op* op : Registry::get().all()) {
      const auto& parameters = op->schema().parameters;
      if (std::none_of(parameters.begin(), parameters.end(),
                       [](const Parameter& p) { return p.type == ArgType::Program; }))
        ops.push_back(op);
    }
    return ops;
  }();
  return list;
}

void change_attribute(Random& random, const Op& op, Frame& frame, size_t i) {
  const Parameter& p = op.schema().parameters[i];
  if (p.optional && random.chance(0.15)) return frame.set(i, Value());
  if (p.list || p.type == ArgType::Shape) return change_list(random, p, frame, i);
  switch (p.type) {
    case ArgType::Bool:
      return frame.set(i, Value(random.chance(0.5)));
    case ArgType::Int:
      return frame.set(i, Value(random_integer(random)));
    case ArgType::Float:
      return frame.set(i, Value(random_real(random)));
    case ArgType::Scalar: {
      const Scalar real(random_real(random)), integer(random_integer(random));
      return frame.set(i, random.chance(0.5) ? Value(real) : Value(integer));
    }
    case ArgType::String: {
      const std::string& word = random.pick(words());
      return frame.set(i, Value(std::string_view(word)));
    }
    case ArgType::DType:
      return frame.set(i, Value(random_dtype(random)));
    default:
      return;
  }
}

Frame random_call(Random& random, const Op& op) {
  Frame frame = valid_call(random, op);
  if (frame.size() == 0) return frame;
  for (size_t changes = random.below(4); changes > 0; --changes) {
    const size_t i = random.below(frame.size());
    const Parameter& p = op.schema().parameters[i];
    if (p.is_tensor())
      change_tensor(random, p, frame, i);
    else
      change_attribute(random, op, frame, i);
  }
  return frame;
}

std::string describe_call(const Op& op, Args args) {
  const auto tensor = [](const Tensor& t) {
    if (!t.defined()) return std::string("None");
    return t.describe() + (t.is_contiguous() ? "" : " strides " + to_string(t.strides()));
  };
  std::string text = op.name() + "(";
  for (size_t i = 0; i < args.size(); ++i) {
    text += (i ? ", " : "") + op.schema().parameters[i].name + "=";
    if (args[i].is_tensor()) {
      text += tensor(args[i].as_tensor());
    } else if (args[i].is_tensors()) {
      text += "[";
      for (const Tensor& t : args[i].as_tensors()) text += tensor(t) + ", ";
      text += "]";
    } else {
      text += args[i].str();
    }
  }
  return text + ")";
}

}  // namespace fuzz
