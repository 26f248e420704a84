#include "program_calls.h"

#include "oar/autograd/node.h"

namespace oar::python {

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
