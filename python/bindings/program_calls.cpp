#include "program_calls.h"

#include "frames.h"
#include "oar/autograd/node.h"

namespace oar::python {
namespace {

// The first operand: a tensor, or the first of a list.
const Tensor* first_operand(PyObject* object) {
  if ((PyList_Check(object) || PyTuple_Check(object)) && PySequence_Fast_GET_SIZE(object) > 0)
    object = PySequence_Fast_GET_ITEM(object, 0);
  return is_tensor(object) ? &tensor_of(object) : nullptr;
}

// The first pair of different dtypes in a list of tensors, in words; empty if they are equal or casts are on.
std::string mixed_dtypes(PyObject* object) {
  if (!(PyList_Check(object) || PyTuple_Check(object)) || (t_layers.on & kAutocast)) return {};
  const Tensor* first = first_operand(object);
  for (Py_ssize_t i = 1; first && i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* entry = PySequence_Fast_GET_ITEM(object, i);
    if (is_tensor(entry) && tensor_of(entry).dtype() != first->dtype())
      return oar::format("{} and {}", name_of(first->dtype()), name_of(tensor_of(entry).dtype()));
  }
  return {};
}

bool is_a_dtype(PyObject* object) {
  DType dtype;
  if (PyLong_Check(object) || is_tensor(object)) return false;
  if (to_dtype(object, &dtype)) return true;
  PyErr_Clear();
  return false;
}

// The argument `dtype`; null if there is none.
PyObject* given_dtype(PyObject* const* args, size_t count, PyObject* keywords) {
  for (size_t i = 1; i < count; ++i)
    if (args[i] != Py_None && is_a_dtype(args[i])) return args[i];
  for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k) {
    PyObject* value = args[count + static_cast<size_t>(k)];
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, k), "dtype") == 0 &&
        value != Py_None && is_a_dtype(value))
      return value;
  }
  return nullptr;
}

bool called_by_package() {
  auto* frame = PyEval_GetFrame();
  if (!frame) return true;
  const Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const char* path = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
  if (!path) PyErr_Clear();
  return !path || is_package_file(path);
}

}  // namespace

void check_call_in_program(const char* function, PyObject* const* args, size_t count,
                           PyObject* keywords) {
  const size_t total =
      count + (keywords ? static_cast<size_t>(PyTuple_GET_SIZE(keywords)) : size_t{0});
  const Tensor* operand = total > 0 ? first_operand(args[0]) : nullptr;
  if (const std::string mixed = operand ? mixed_dtypes(args[0]) : ""; !mixed.empty()) {
    if (called_by_package()) return;
    const OpScope scope(function);
    fail(ErrorKind::InvalidType,
         "the list holds tensors of {}, which Paddle does not mix in static mode.\nhint: Cast them "
         "first, for example x.astype('float32').",
         mixed);
  }
  PyObject* wanted = given_dtype(args, count, keywords);
  if (!wanted && (!operand || is_floating(operand->dtype()))) return;
  if (called_by_package()) return;
  const Ref module = checked(PyImport_ImportModule("oar.static._refusals"));
  if (wanted) {  // operands are cast to it
    checked(PyObject_CallMethod(module.get(), "check_dtype_argument", "sO", function, wanted));
    return;
  }
  const Ref dtype = checked(wrap_dtype(operand->dtype()));
  checked(PyObject_CallMethod(module.get(), "check_operand", "sO", function, dtype.get()));
}

void name_result(Tensor& result, PyObject* name) {
  const Ref names = checked(PyImport_ImportModule("oar.framework.unique_name"));
  const Ref stem = checked(PyUnicode_FromFormat("%U.tmp", name));
  const Ref made = checked(PyObject_CallMethod(names.get(), "generate", "O", stem.get()));
  const char* text = PyUnicode_AsUTF8(made.get());
  if (!text) throw PythonError{};
  History& history = history_of(result);
  if (history.name.empty()) history.name = text;
}

}  // namespace oar::python
