// Values between Python and tensors: numbers, nested lists, NumPy arrays, buffers.
#include <bit>
#include <cstring>

#include "collate.h"
#include "common.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/element.h"
#include "oar/tensor/exposed.h"
#include "oar/tensor/hooks.h"

namespace oar::python {
namespace {

// PEP 3118 format characters; NumPy has no bfloat16 and float8, whose bits travel as integers.
const char* format_of(DType t) {
  switch (t) {
    case DType::Bool:
      return "?";
    case DType::UInt8:
      return "B";
    case DType::Int8:
      return "b";
    case DType::Int16:
      return "h";
    case DType::Int32:
      return "i";
    case DType::Int64:
      return "q";
    case DType::UInt32:
      return "I";
    case DType::UInt64:
      return "Q";
    case DType::Float16:
      return "e";
    case DType::BFloat16:
      return "H";
    case DType::Float32:
      return "f";
    case DType::Float64:
      return "d";
    case DType::Complex64:
      return "Zf";
    case DType::Complex128:
      return "Zd";
    default:
      return "B";
  }
}

std::optional<DType> dtype_of_format(const char* format, Py_ssize_t size) {
  const std::string_view f =
      *format == '<' || *format == '=' || *format == '@' ? format + 1 : format;
  if (f == "?") return DType::Bool;
  if (f == "Zf") return DType::Complex64;
  if (f == "Zd") return DType::Complex128;
  if (f == "e") return DType::Float16;
  if (f == "f") return DType::Float32;
  if (f == "d") return DType::Float64;
  if (f == "H") return DType::BFloat16;
  if (f == "B") return DType::UInt8;
  if (f == "I" || f == "L" || f == "Q" || f == "N") {
    if (size == 4) return DType::UInt32;
    return size == 8 ? std::optional(DType::UInt64) : std::nullopt;
  }
  if (f == "b" || f == "h" || f == "i" || f == "l" || f == "q" || f == "n") {
    switch (size) {
      case 1:
        return DType::Int8;
      case 2:
        return DType::Int16;
      case 4:
        return DType::Int32;
      case 8:
        return DType::Int64;
      default:
        return std::nullopt;
    }
  }
  return std::nullopt;
}

PyObject* numpy_function(const char* name) {
  static PyObject* module = PyImport_ImportModule("numpy");
  if (!module) throw PythonError{};
  return checked(PyObject_GetAttrString(module, name)).release();
}

struct BufferHold {
  Py_buffer view;
};

void drop_adopted(void* context, void*, size_t) {
  auto* hold = static_cast<BufferHold*>(context);
  if (Py_IsInitialized()) {
    const GilHold gil;
    PyBuffer_Release(&hold->view);
  }
  delete hold;
}

void drop_shared(void* context, void* data, size_t bytes) {
  conceal(data);
  drop_adopted(context, data, bytes);
}

[[noreturn]] void refuse_uneven(const std::vector<int64_t>& shape, size_t depth, int64_t length) {
  const auto told = [](int64_t n) {
    return n < 0 ? std::string("a number") : oar::format("a list of {}", n);
  };
  fail(
      ErrorKind::InvalidArgument,
      "the rows have different lengths: at depth {} the first is {}, another is {}.\nhint: A tensor "
      "needs rows of equal length; pad them first.",
      depth, told(depth < shape.size() ? shape[depth] : -1), told(length));
}

// Shape of nested lists; checks that they are even.
void measure(PyObject* object, std::vector<int64_t>& shape, size_t depth, bool& number_met) {
  const bool nested = PyList_Check(object) || PyTuple_Check(object);
  const int64_t length = nested ? PySequence_Fast_GET_SIZE(object) : -1;
  if (shape.size() == depth && nested && !number_met)
    shape.push_back(length);
  else if (nested ? shape.size() == depth || shape[depth] != length : shape.size() != depth)
    refuse_uneven(shape, depth, length);
  number_met |= !nested;
  if (!nested || (length > 0 && !PyList_Check(PySequence_Fast_GET_ITEM(object, 0)) &&
                  !PyTuple_Check(PySequence_Fast_GET_ITEM(object, 0)) &&
                  depth + 1 == shape.size() && depth > 8))
    return;
  for (int64_t i = 0; i < length; ++i)
    measure(PySequence_Fast_GET_ITEM(object, i), shape, depth + 1, number_met);
}

enum class NumberKind { Bool, Int, Float, Complex };

struct Leaves {
  std::vector<std::complex<double>> values;
  std::vector<int64_t> integers;
  NumberKind kind = NumberKind::Bool;
  bool empty = true;
};

void collect(PyObject* object, Leaves& leaves) {
  if (PyList_Check(object) || PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      collect(PySequence_Fast_GET_ITEM(object, i), leaves);
    return;
  }
  const Scalar s = to_scalar(object);
  leaves.empty = false;
  leaves.kind = std::max(leaves.kind, static_cast<NumberKind>(s.kind()));
  leaves.values.push_back(s.to_complex());
  leaves.integers.push_back(s.kind() <= Scalar::Int ? s.to_int() : 0);
}

// Lists that hold tensors or arrays are left to NumPy.
bool holds_arrays(PyObject* object) {
  if (PyList_Check(object) || PyTuple_Check(object)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i)
      if (holds_arrays(PySequence_Fast_GET_ITEM(object, i))) return true;
    return false;
  }
  return !PyFloat_Check(object) && !PyLong_Check(object) && !PyComplex_Check(object);
}

Tensor from_lists(PyObject* object, std::optional<DType> dtype) {
  std::vector<int64_t> shape;
  bool number_met = false;
  measure(object, shape, 0, number_met);
  Leaves leaves;
  collect(object, leaves);
  DType natural = default_dtype();
  if (!leaves.empty) {
    switch (leaves.kind) {
      case NumberKind::Bool:
        natural = DType::Bool;
        break;
      case NumberKind::Int:
        natural = DType::Int64;
        break;
      case NumberKind::Float:
        natural = default_dtype();
        break;
      case NumberKind::Complex:
        natural = complex_type_of(default_dtype());
        break;
    }
  }
  const DType type = dtype.value_or(natural);
  const bool whole = leaves.kind <= NumberKind::Int;
  return whole ? Tensor::from_vector(leaves.integers, as_dims(shape), type)
               : Tensor::from_vector(leaves.values, as_dims(shape), type);
}

}  // namespace

bool is_number(PyObject* object) {
  return PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object) ||
         (!is_tensor(object) && PyNumber_Check(object) &&
          !PyObject_HasAttrString(object, "__len__") && PyObject_HasAttrString(object, "dtype"));
}

Scalar to_scalar(PyObject* object) {
  if (PyBool_Check(object)) return Scalar(object == Py_True);
  if (PyFloat_Check(object)) return Scalar(PyFloat_AS_DOUBLE(object));
  if (PyLong_Check(object)) {
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return Scalar(PyLong_AsDouble(object));
    }
    return Scalar(int64_t{value});
  }
  if (PyComplex_Check(object)) {
    const Py_complex c = PyComplex_AsCComplex(object);
    return Scalar(std::complex<double>(c.real, c.imag));
  }
  if (PyObject_HasAttrString(object, "item")) {  // NumPy scalars, tensors
    const Ref number = checked(PyObject_CallMethod(object, "item", nullptr));
    return to_scalar(number.get());
  }
  fail(ErrorKind::InvalidType, "a number is expected, not {}.", Py_TYPE(object)->tp_name);
}

Tensor weak_scalar(PyObject* object) {
  const Scalar s = to_scalar(object);
  if (s.kind() == Scalar::Double) return Tensor::scalar(s.to_double(), DType::Float64, true);
  if (s.kind() <= Scalar::Int) return Tensor::scalar(s.to_int(), s.natural_dtype(), true);
  Tensor t = Tensor::empty(Dims{}, DType::Complex128);
  store_element(t->data, t.dtype(), s.to_complex());
  t->flags |= kWeakScalar;
  return t;
}

namespace {

// Objects, text, dates and records in an array; kinds are NumPy's letters.
[[noreturn]] void refuse_array(PyObject* array) {
  const Ref dtype = checked(PyObject_GetAttrString(array, "dtype"));
  const Ref name = checked(PyObject_Str(dtype.get()));
  const Ref kind = checked(PyObject_GetAttrString(dtype.get(), "kind"));
  const char* text = PyUnicode_AsUTF8(name.get());
  const char* letter = PyUnicode_AsUTF8(kind.get());
  if (!text || !letter) throw PythonError{};
  const char* way_out = "Convert it first, for example with array.astype('float32').";
  if (*letter == 'O')
    way_out =
        "Such an array comes from None, text or rows of different lengths; pass numbers in rows of "
        "one length, or convert it with array.astype('float32').";
  else if (*letter == 'U' || *letter == 'S')
    way_out = "A tensor holds numbers; turn text into numbers first.";
  fail(ErrorKind::InvalidType, "an array of dtype {} cannot become a tensor.\nhint: {}", text,
       way_out);
}

// What NumPy converts to an array: containers of elements, and objects with an array interface.
bool has_elements(PyObject* object) {
  if (PyUnicode_Check(object) || PyBytes_Check(object)) return false;
  if (PyNumber_Check(object) || PySequence_Check(object) || PyObject_CheckBuffer(object))
    return true;
  return PyObject_HasAttrString(object, "__array__") ||
         PyObject_HasAttrString(object, "__array_interface__");
}

// NumPy's conversion. Uneven rows are reported with our own message.
Ref as_array(PyObject* object) {
  const Ref function(numpy_function("asarray"));
  Ref array(PyObject_CallOneArg(function.get(), object));
  if (array) return array;
  const bool listed = PyList_Check(object) || PyTuple_Check(object);
  if (!listed || !PyErr_ExceptionMatches(PyExc_ValueError)) throw PythonError{};
  PyErr_Clear();
  fail(ErrorKind::InvalidArgument,
       "the elements of the list have different shapes, or some are not numbers.\nhint: Pass "
       "elements of one shape, or pad them first.");
}

}  // namespace

std::optional<DType> dtype_of_buffer(const Py_buffer& view) {
  return dtype_of_format(view.format ? view.format : "B", view.itemsize);
}

// The same bits as another dtype of their width.
static Tensor with_dtype(const Tensor& t, DType dtype) {
  return Tensor::view_of(t->storage, t.dims(), t.strides(), t->data, dtype);
}

// On the memory of the array where its elements allow that. `exposed`: others may use that memory too.
static Tensor over_array(PyObject* array, bool exposed) {
  auto hold = std::make_unique<BufferHold>();
  Ref exporter = Ref::borrow(array);
  if (PyObject_GetBuffer(array, &hold->view, PyBUF_RECORDS_RO) < 0) {
    // ml_dtypes and other extension types export no buffer: their bits do.
    PyErr_Clear();
    const Ref dtype = checked(PyObject_GetAttrString(array, "dtype"));
    const Ref name = checked(PyObject_GetAttrString(dtype.get(), "name"));
    const auto type = dtype_from_name(PyUnicode_AsUTF8(name.get()));
    if (!type) refuse_array(array);
    const Ref bits =
        checked(PyObject_CallMethod(array, "view", "s", bits_of(*type) == 16 ? "uint16" : "uint8"));
    const Tensor raw = from_array(bits.get(), true);
    if (is_packed(*type)) return with_dtype(cast(raw, DType::UInt4), *type);
    return Tensor::view_of(raw->storage, raw.dims(), raw.strides(), raw->data, *type);
  }
  const Py_buffer& view = hold->view;
  const auto type = dtype_of_buffer(view);
  if (!type) {
    PyBuffer_Release(&hold->view);
    refuse_array(array);
  }
  std::vector<int64_t> shape, strides;
  bool even = true;
  for (int i = 0; i < view.ndim; ++i) {
    shape.push_back(view.shape[i]);
    even &= view.strides[i] % view.itemsize == 0;
    strides.push_back(view.strides[i] / view.itemsize);
  }
  const bool aligned =
      reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) == 0;
  if (!even || !aligned) {
    PyBuffer_Release(&hold->view);
    // A copy: NumPy's fresh memory is aligned. (ascontiguousarray returns an unaligned array as it is.)
    const Ref function(numpy_function("array"));
    const Ref fresh = checked(PyObject_CallOneArg(function.get(), array));
    return over_array(fresh.get(), exposed);
  }
  const bool readonly = view.readonly;
  void* data = view.buf;
  const StoragePtr storage = Storage::adopt(data, static_cast<size_t>(view.len), {},
                                            exposed ? drop_shared : drop_adopted, hold.release());
  if (exposed) expose(data);
  if (readonly) storage->set_readonly();
  return Tensor::view_of(storage, as_dims(shape), strides, data, *type);
}

Tensor from_array(PyObject* array, bool copy) {
  const Tensor t = over_array(array, true);
  return copy ? assign(t) : t;
}

Tensor adopt(PyObject* array) { return over_array(array, false); }

Tensor to_tensor(PyObject* object, std::optional<DType> dtype) {
  const auto cast_to = [&](Tensor t) { return dtype && t.dtype() != *dtype ? cast(t, *dtype) : t; };
  if (is_tensor(object)) return cast_to(assign(tensor_of(object)));
  // NumPy's float64 and complex128 are Python numbers too, but say their dtype.
  const bool number = PyFloat_CheckExact(object) || PyLong_Check(object) ||
                      PyComplex_CheckExact(object) ||
                      ((PyFloat_Check(object) || PyComplex_Check(object)) &&
                       !PyObject_HasAttrString(object, "dtype"));
  if (number || ((PyList_Check(object) || PyTuple_Check(object)) && !holds_arrays(object)))
    return from_lists(object, dtype);
  if (!has_elements(object))
    fail(
        ErrorKind::InvalidType,
        "{} cannot become a tensor.\nhint: Pass numbers, nested lists of numbers, a NumPy array or "
        "a tensor.",
        object == Py_None ? "None" : Py_TYPE(object)->tp_name);
  const Ref array = as_array(object);
  Tensor t = from_array(array.get(), true);
  // Python floats inside lists of arrays come as float64; literals are of the default type.
  if (!dtype && (PyList_Check(object) || PyTuple_Check(object)) && t.dtype() == DType::Float64)
    return cast(t, default_dtype());
  return cast_to(t);
}

namespace {

// The content of t is needed; queued calls for it run without the interpreter lock.
void read_content(const Tensor& t) {
  if (!t_launch_queue) return note_read(t);
  const GilRelease release;
  note_read(t);
}

// The data of an exported buffer.
struct Lent {
  std::unique_ptr<Py_ssize_t[]> sizes;
  const void* memory;
};

}  // namespace

int fill_buffer(PyObject* exporter, const Tensor& t, Py_buffer* view, int flags) {
  read_content(t);
  if (!t.is_dense() || !t.device().is_cpu()) {
    PyErr_SetString(PyExc_BufferError, "only a dense CPU tensor has a buffer.");
    return -1;
  }
  if (is_packed(t.dtype())) {
    PyErr_SetString(PyExc_BufferError, "elements that share bytes have no buffer; use x.numpy().");
    return -1;
  }
  lend(*t->storage);
  const auto item = static_cast<Py_ssize_t>(size_of(t.dtype()));
  auto* sizes = new Py_ssize_t[static_cast<size_t>(2 * t.rank() + 1)];
  for (int i = 0; i < t.rank(); ++i) {
    sizes[i] = t->shape[i];
    sizes[t.rank() + i] = t->strides[i] * item;
  }
  view->buf = t->data;
  view->len = t->numel * item;
  view->itemsize = item;
  view->readonly = t->storage->is_readonly();
  view->ndim = t.rank();
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format_of(t.dtype())) : nullptr;
  view->shape = sizes;
  view->strides = sizes + t.rank();
  view->suboffsets = nullptr;
  // The buffer keeps the address of the memory: the tensor may have become another by then.
  auto* lent = new Lent{std::unique_ptr<Py_ssize_t[]>(sizes), t->storage->data()};
  view->internal = lent;
  Py_INCREF(exporter);
  view->obj = exporter;
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  const std::unique_ptr<Lent> lent(static_cast<Lent*>(view->internal));
  conceal(lent->memory);
}

// One element per byte, of ml_dtypes' types.
static PyObject* packed_to_array(const Tensor& t) {
  const Ref types = checked(PyImport_ImportModule("ml_dtypes"));
  const Ref type = checked(PyObject_GetAttrString(types.get(), name_of(t.dtype())));
  const Ref bits = checked(to_array(cast(with_dtype(t, DType::UInt4), DType::UInt8), true));
  return PyObject_CallMethod(bits.get(), "view", "O", type.get());
}

PyObject* to_array(const Tensor& t, bool copy) {
  read_content(t);
  if (t.kind() == Kind::Symbolic || t.kind() == Kind::Distributed)
    if (const Tensor known = known_value(t); known.is_dense()) return to_array(known, copy);
  user_check(t.is_dense() && t.device().is_cpu(), ErrorKind::Runtime,
             "the values of {} cannot be read here.\nhint: Only dense CPU tensors outside capture, "
             "jvp and vmap have values.",
             t.describe());
  if (is_packed(t.dtype())) return packed_to_array(t);
  static PyObject* asarray = numpy_function("asarray");
  static PyObject* array = numpy_function("array");
  const Ref tensor(wrap(t));
  const Ref memory = checked(PyMemoryView_FromObject(tensor.get()));
  return PyObject_CallOneArg(copy ? array : asarray, memory.get());
}

PyObject* item(const Tensor& given) {
  return guarded([&]() -> PyObject* {
    read_content(given);
    const bool elsewhere = given.kind() == Kind::Symbolic || given.kind() == Kind::Distributed;
    const Tensor t = elsewhere ? known_value(given) : given;
    user_check(
        t.is_dense() && t.device().is_cpu(), ErrorKind::Runtime,
        "the value of {} is not known here.\nhint: Inside capture, jvp or vmap a tensor has no "
        "single value; keep the computation in tensors.",
        t.describe());
    user_check(t->numel == 1, ErrorKind::InvalidArgument,
               "only a tensor with one element becomes a number; this one is {}.\nhint: Use "
               "x.tolist() or x.numpy() for all of them, or reduce it first, e.g. x.mean().",
               t.describe());
    if (is_bool(t.dtype())) return PyBool_FromLong(t.item_int() != 0);
    if (is_integral(t.dtype()) || t.dtype() == DType::Int4 || t.dtype() == DType::UInt4)
      return PyLong_FromLongLong(t.item_int());
    if (t.dtype() == DType::UInt32 || t.dtype() == DType::UInt64)  // the bits of 64 fit
      return PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(t.item_int()));
    const std::complex<double> value = load_element(t->data, t.dtype());
    return is_complex(t.dtype()) ? PyComplex_FromDoubles(value.real(), value.imag())
                                 : PyFloat_FromDouble(value.real());
  });
}

PyObject* to_list(const Tensor& t) {
  if (is_packed(t.dtype()))
    return to_list(cast(t, t.dtype() == DType::Float4E2M1FN ? DType::Float32 : DType::Int8));
  if (t.dtype() == DType::BFloat16 || size_of(t.dtype()) == 1) {
    if (is_floating(t.dtype())) return to_list(cast(t, DType::Float32));
  }
  const Ref array = checked(to_array(t, false));
  return PyObject_CallMethod(array.get(), "tolist", nullptr);
}

}  // namespace oar::python
