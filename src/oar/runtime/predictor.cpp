#include "oar/runtime/predictor.h"

#include "oar/base/string_util.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

size_t place_of(const std::vector<Model::Port>& ports, std::string_view name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < ports.size(); ++i) {
    if (ports[i].name == name) return i;
    names.push_back(ports[i].name);
  }
  fail(ErrorKind::InvalidArgument, "the model has no '{}' there; it has {}.", name,
       join(names, ", "));
}

}  // namespace

Predictor::Predictor(Model model) : model_(std::move(model)) {
  inputs_.resize(model_.inputs().size());
}

void Predictor::set_input(std::string_view name, Tensor content) {
  inputs_[place_of(model_.inputs(), name)] = std::move(content);
}

void Predictor::set_input(std::string_view name, DType dtype, const Shape& shape,
                          const void* data) {
  const auto bytes = static_cast<size_t>(bytes_of(shape, dtype).value());
  const auto alignment = static_cast<uintptr_t>(byte_count(1, real_type_of(dtype)));
  user_check(bytes == 0 || (data && reinterpret_cast<uintptr_t>(data) % alignment == 0),
             ErrorKind::InvalidArgument,
             "the content of the input '{}' is null or not aligned to its elements.", name);
  // Runs read their inputs and write elsewhere, as long as somebody else holds them: here it is this object.
  const StoragePtr storage = Storage::adopt(
      const_cast<void*>(data), bytes, Device{}, [](void*, void*, size_t) {}, nullptr);
  set_input(name,
            Tensor::view_of(storage, shape, contiguous_strides(shape), storage->data(), dtype));
}

void Predictor::run() {
  outputs_ = model_.run(inputs_);
  for (Tensor& t : outputs_)
    if (!t.is_contiguous()) t = assign(t);
}

const Tensor& Predictor::output(std::string_view name) const {
  const size_t place = place_of(model_.outputs(), name);
  user_check(place < outputs_.size(), ErrorKind::InvalidArgument,
             "there is no output yet.\nhint: Call run first.");
  return outputs_[place];
}

}  // namespace oar
