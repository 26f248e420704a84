#include "oar/tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "oar/base/error.h"
#include "oar/tensor/byte_count.h"
#include "oar/tensor/element.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

PythonReleaser g_python_releaser = nullptr;

bool is_contiguous_layout(const int64_t* shape, const int64_t* strides, int ndim, int64_t numel) {
  if (numel == 0) return true;
  int64_t expected = 1;
  for (int i = ndim - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// Product of sizes. A size of 0 counts as 1, as in bytes_of.
Count step_over(Count step, int64_t size) { return step * std::max<int64_t>(size, 1); }

}  // namespace

void set_python_releaser(PythonReleaser releaser) { g_python_releaser = releaser; }

TensorImpl::TensorImpl(Dims dims, DType type, Device device, Kind k) {
  sizes_ = inline_sizes_;
  data = nullptr;
  dtype = static_cast<uint8_t>(type);
  kind = static_cast<uint8_t>(k);
  device_type = device.type;
  device_index = device.index;
  flags = is_packed(type) ? uint32_t{kQuantised} : 0;
  scales = nullptr;
  ndim = 0;
  set_sizes(dims);
}

TensorImpl::~TensorImpl() {
  if (python_owned) g_python_releaser(python);
  if (sizes_ != inline_sizes_) delete[] sizes_;
}

void TensorImpl::reserve_rank(int rank) {
  if (rank > capacity_) {
    auto* larger = new int64_t[static_cast<size_t>(2 * rank)];
    if (sizes_ != inline_sizes_) delete[] sizes_;
    sizes_ = larger;
    capacity_ = rank;
  }
  shape = sizes_;
  strides = sizes_ + capacity_;
  ndim = rank;
}

void TensorImpl::set_sizes(Dims dims) {
  reserve_rank(static_cast<int>(dims.size()));
  bool known = true;
  for (size_t i = 0; i < dims.size(); ++i) {
    sizes_[i] = dims[i].word();
    known &= dims[i].is_known();
  }
  contiguous = true;
  numel = 1;
  if (!known) {
    numel = -1;
    std::fill_n(mutable_strides(), ndim, 0);
    return;
  }
  Count step = 1;
  bool empty = false;
  for (int i = ndim - 1; i >= 0; --i) {
    mutable_strides()[i] = step.value();
    empty |= sizes_[i] == 0;
    step = step_over(step, sizes_[i]);
  }
  numel = empty ? 0 : step.value();
}

void TensorImpl::set_layout(Dims dims, Ints new_strides) {
  reserve_rank(static_cast<int>(dims.size()));
  // A broadcast view may have more elements than there is memory, but their number must fit into 64 bits.
  Count elements = 1;
  bool empty = false;
  for (int i = 0; i < ndim; ++i) {
    sizes_[i] = dims[static_cast<size_t>(i)].word();
    mutable_strides()[i] = new_strides[static_cast<size_t>(i)];
    empty |= sizes_[i] == 0;
    elements = step_over(elements, sizes_[i]);
  }
  numel = empty ? 0 : elements.value();
  contiguous = is_contiguous_layout(shape, strides, ndim, numel);
}

Intrusive<TensorImpl> TensorImpl::alias() const {
  auto copy =
      make_intrusive<TensorImpl>(Dims{}, static_cast<DType>(dtype),
                                 Device{device_type, device_index}, static_cast<Kind>(kind));
  copy->reserve_rank(ndim);
  std::copy_n(shape, ndim, copy->sizes_);
  std::copy_n(strides, ndim, copy->mutable_strides());
  copy->numel = numel;
  copy->contiguous = contiguous;
  copy->data = data;
  copy->storage = storage;
  copy->payload = payload;
  copy->scales = scales;
  copy->flags = flags & ~uint32_t{kRecording | kParameter | kPersistable};
  return copy;
}

void TensorImpl::become(const TensorImpl& other) {
  constexpr uint32_t kOwn = kRecording | kParameter | kPersistable;
  reserve_rank(other.ndim);
  std::copy_n(other.shape, ndim, sizes_);
  std::copy_n(other.strides, ndim, mutable_strides());
  numel = other.numel;
  contiguous = other.contiguous;
  data = other.data;
  dtype = other.dtype;
  kind = other.kind;
  device_type = other.device_type;
  device_index = other.device_index;
  storage = other.storage;
  payload = other.payload;
  scales = other.scales;
  flags = (flags & kOwn) | (other.flags & ~kOwn);
}

Tensor Tensor::empty(Dims shape, DType dtype, Device device) {
  const size_t bytes = bytes_of(shape, dtype).size();
  Tensor t(make_intrusive<TensorImpl>(shape, dtype, device, Kind::Dense));
  t->storage = Storage::allocate(bytes, device);
  t->data = t->storage->data();
  return t;
}

Tensor Tensor::meta(Dims shape, DType dtype, Device device) {
  return Tensor(make_intrusive<TensorImpl>(shape, dtype, device, Kind::Meta));
}

// Flattened: a slice costs hardly more than this.
[[gnu::flatten]] Tensor Tensor::view_of(const StoragePtr& storage, Dims shape, Ints strides,
                                        void* data, DType dtype) {
  Tensor t(make_intrusive<TensorImpl>(Dims{}, dtype, storage->device(), Kind::Dense));
  t->set_layout(shape, strides);
  if (is_packed(dtype) && !t->contiguous) [[unlikely]]
    fail(
        ErrorKind::InvalidArgument,
        "{} elements share bytes, so a view of them must be contiguous; one of shape {} with strides "
        "{} is not.\nhint: Cast it first, for example x.astype('{}').",
        name_of(dtype), to_string(shape), to_string(strides),
        dtype == DType::Float4E2M1FN ? "float32" : "int8");
  t->storage = storage;
  t->data = data;
  return t;
}

Tensor Tensor::with_payload(Kind kind, Dims shape, DType dtype, Device device, uint32_t flags,
                            Intrusive<Payload> payload) {
  Tensor t(make_intrusive<TensorImpl>(shape, dtype, device, kind));
  t->flags |= flags | flag_of(kind);
  t->payload = std::move(payload);
  return t;
}

Tensor Tensor::scalar(double value, DType dtype, bool weak) {
  Tensor t = empty(Dims{}, dtype);
  store_element(t->data, dtype, std::complex<double>(value, 0));
  if (weak) t->flags |= kWeakScalar;
  return t;
}

Tensor Tensor::scalar(int64_t value, DType dtype, bool weak) {
  Tensor t = empty(Dims{}, dtype);
  if (dtype == DType::Int64)
    *t.data<int64_t>() = value;
  else
    store_element(t->data, dtype, std::complex<double>(static_cast<double>(value), 0));
  if (weak) t->flags |= kWeakScalar;
  return t;
}

namespace {
template <class T>
double real_part(const T& value) {
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return value.real();
  else
    return static_cast<double>(value);
}
}  // namespace

template <class T>
Tensor Tensor::from_vector(const std::vector<T>& values, Dims shape, DType dtype) {
  Tensor t = empty(shape, dtype);
  user_check(t->numel == static_cast<int64_t>(values.size()), ErrorKind::InvalidArgument,
             "{} values do not fill a tensor of shape {}.", values.size(), to_string(shape));
  auto* bytes = static_cast<char*>(t->data);
  if (is_packed(dtype) && t->numel > 0)
    std::memset(bytes, 0, static_cast<size_t>(byte_count(t->numel, dtype)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_packed(dtype))
      store_packed(bytes, dtype, static_cast<int64_t>(i), real_part(values[i]));
    else if constexpr (std::is_same_v<T, int64_t>)
      store_integer(bytes + i * size_of(dtype), dtype, values[i]);
    else
      store_element(bytes + i * size_of(dtype), dtype, std::complex<double>(values[i]));
  }
  return t;
}
template Tensor Tensor::from_vector(const std::vector<double>&, Dims, DType);
template Tensor Tensor::from_vector(const std::vector<float>&, Dims, DType);
template Tensor Tensor::from_vector(const std::vector<int64_t>&, Dims, DType);
template Tensor Tensor::from_vector(const std::vector<std::complex<double>>&, Dims, DType);

Dim Tensor::dim(int64_t axis) const {
  return dims()[static_cast<size_t>(normalise_axis(axis, rank()))];
}

Dim Tensor::numel() const { return impl_->numel >= 0 ? Dim(impl_->numel) : shape().numel(); }

namespace {
const char* element_at(const Tensor& t, int64_t index) {
  int64_t offset = 0;
  for (int axis = t.rank() - 1; axis >= 0; --axis) {
    const int64_t size = t->shape[axis];
    offset += index % size * t->strides[axis];
    index /= size;
  }
  return static_cast<const char*>(t->data) + offset * static_cast<int64_t>(size_of(t.dtype()));
}
void check_readable(const Tensor& t) {
  note_read(t);
  user_check(t.defined() && t.is_dense() && t.device().is_cpu(), ErrorKind::Runtime,
             "the values of {} cannot be read here.\nhint: Only dense CPU tensors outside capture, "
             "jvp and vmap have values.",
             t.describe());
}
}  // namespace

thread_local ReadHook t_read_hook = nullptr;
std::atomic<const QueueHooks*> g_queue_hooks{nullptr};

double Tensor::item_double() const {
  check_readable(*this);
  user_check(impl_->numel == 1, ErrorKind::InvalidArgument,
             "only a tensor with one element becomes a number; this one is {}.", describe());
  return load_element(impl_->data, dtype()).real();
}

int64_t Tensor::item_int() const {
  check_readable(*this);
  user_check(impl_->numel == 1, ErrorKind::InvalidArgument,
             "only a tensor with one element becomes a number; this one is {}.", describe());
  return load_integer(impl_->data, dtype());
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  check_readable(*this);
  std::vector<T> values(static_cast<size_t>(impl_->numel));
  for (int64_t i = 0; i < impl_->numel; ++i) {
    if (is_packed(dtype())) {  // always contiguous
      values[static_cast<size_t>(i)] = static_cast<T>(load_packed(impl_->data, dtype(), i));
      continue;
    }
    const char* element = element_at(*this, i);
    if constexpr (std::is_same_v<T, int64_t>)
      values[static_cast<size_t>(i)] = load_integer(element, dtype());
    else if constexpr (std::is_same_v<T, std::complex<double>>)
      values[static_cast<size_t>(i)] = load_element(element, dtype());
    else
      values[static_cast<size_t>(i)] = static_cast<T>(load_element(element, dtype()).real());
  }
  return values;
}
template std::vector<double> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<int64_t> Tensor::to_vector() const;
template std::vector<std::complex<double>> Tensor::to_vector() const;

std::string Tensor::describe() const {
  if (!defined()) return "None";
  return format("{}{}", name_of(dtype()), to_string(dims()));
}

SmallVector<int64_t, 6> contiguous_strides(Dims shape) {
  SmallVector<int64_t, 6> strides;
  strides.resize(shape.size());
  Count step = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = step.value();
    step = step_over(step, shape[i].value());
  }
  return strides;
}

int64_t normalise_axis(int64_t axis, int64_t rank, const char* argument) {
  user_check(axis >= -rank && axis < rank, ErrorKind::OutOfRange,
             "{} {} does not fit a tensor of rank {}.\nhint: Pass a value from {} to {}.", argument,
             axis, rank, -rank, rank - 1);
  return axis < 0 ? axis + rank : axis;
}

}  // namespace oar
