// GGUF files: their metadata and tensors.
#include "oar/formats/gguf.h"

#include "common.h"
#include "oar/base/error.h"

namespace oar::python {
namespace {

Ref text_object(const std::string& text) {
  return checked(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
}

Ref object_of(const StateTree& tree) {
  if (tree.is_none()) return Ref(Py_NewRef(Py_None));
  if (tree.is_text()) return text_object(tree.text());
  if (tree.is_list()) {
    Ref made = checked(PyList_New(0));
    for (const StateTree& item : tree.list())
      check(PyList_Append(made.get(), object_of(item).get()));
    return made;
  }
  if (tree.is_dict()) {
    Ref made = checked(PyDict_New());
    for (const auto& [key, item] : tree.dict())
      check(PyDict_SetItem(made.get(), text_object(key).get(), object_of(item).get()));
    return made;
  }
  const auto& content = tree.content();
  if (const auto* flag = std::get_if<bool>(&content)) return checked(PyBool_FromLong(*flag));
  if (const auto* integer = std::get_if<int64_t>(&content))
    return checked(PyLong_FromLongLong(*integer));
  if (const auto* word = std::get_if<uint64_t>(&content))
    return checked(PyLong_FromUnsignedLongLong(*word));
  return checked(PyFloat_FromDouble(tree.number()));
}

// The memory of a bytes object or a mapped file.
class Bytes {
 public:
  explicit Bytes(PyObject* object) { check(PyObject_GetBuffer(object, &buffer_, PyBUF_SIMPLE)); }
  ~Bytes() { PyBuffer_Release(&buffer_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::string_view view() const {
    return {static_cast<const char*>(buffer_.buf), static_cast<size_t>(buffer_.len)};
  }

 private:
  Py_buffer buffer_{};
};

// gguf_header(buffer): metadata, and (name, type, type's name, shape, place of the data, its size) of each tensor
PyObject* gguf_header(PyObject*, PyObject* object) {
  return guarded([&] {
    const Bytes bytes(object);
    const GgufFile file = parse_gguf(bytes.view());
    const Ref tensors = checked(PyList_New(0));
    for (const GgufTensor& tensor : file.tensors) {
      const Ref shape = checked(PyList_New(0));
      for (const int64_t size : tensor.shape)
        check(PyList_Append(shape.get(), checked(PyLong_FromLongLong(size)).get()));
      const auto place = tensor.data.data() ? tensor.data.data() - bytes.view().data() : 0;
      const Ref entry = checked(Py_BuildValue("(OIOOnn)", text_object(tensor.name).get(),
                                              tensor.type, text_object(tensor.type_name).get(),
                                              shape.get(), static_cast<Py_ssize_t>(place),
                                              static_cast<Py_ssize_t>(tensor.data.size())));
      check(PyList_Append(tensors.get(), entry.get()));
    }
    return PyTuple_Pack(2, object_of(file.metadata).get(), tensors.get());
  });
}

// gguf_tensor(buffer, name, type, type's name, shape, place, size): the last ones as gguf_header says
PyObject* gguf_tensor(PyObject*, PyObject* args) {
  PyObject *object, *sizes;
  const char *name, *type_name;
  unsigned type;
  Py_ssize_t place, size;
  if (!PyArg_ParseTuple(args, "OsIsOnn", &object, &name, &type, &type_name, &sizes, &place, &size))
    return nullptr;
  return guarded([&] {
    const Bytes bytes(object);
    GgufTensor tensor{name, type, type_name, {}, {}};
    const Ref list = checked(PySequence_Fast(sizes, "a list of sizes is expected"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i)
      tensor.shape.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(list.get(), i)));
    const auto whole = static_cast<Py_ssize_t>(bytes.view().size());
    user_check(place >= 0 && size >= 0 && place <= whole && size <= whole - place,
               ErrorKind::InvalidArgument, "the data of '{}' is not inside of the file.", name);
    tensor.data = bytes.view().substr(static_cast<size_t>(place), static_cast<size_t>(size));
    Tensor made;
    {
      const GilRelease release;
      made = read_gguf_tensor(tensor);
    }
    return wrap(made);
  });
}

PyMethodDef kGgufFunctions[] = {{"gguf_header", gguf_header, METH_O, nullptr},
                                {"gguf_tensor", gguf_tensor, METH_VARARGS, nullptr},
                                {}};

}  // namespace

void init_gguf(PyObject* module) { check(PyModule_AddFunctions(module, kGgufFunctions)); }

}  // namespace oar::python
