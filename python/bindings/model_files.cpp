// Files of models: what Python writes into them and reads from them.
#include <functional>
#include <limits>
#include <map>

#include "oar/formats/oar_file.h"
#include "oar/ir/print.h"
#include "oar/ir/region.h"
#include "programs.h"

namespace oar::python {
namespace {

// Constants with more elements are tensors of the file; the text has their types only.
constexpr int64_t kLargestConstant = 64;

void for_each_part(const Program& program, const std::function<void(const Program&)>& body) {
  body(program);
  for (const Instruction& call : program.body.instructions)
    for_each_program(call.attributes.args(),
                     [&](const Closure& c) { for_each_part(program_of(c), body); });
}

PyObject* text_of(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}
void put(const Ref& dict, const std::string& key, const Ref& value) {
  check(PyDict_SetItem(dict.get(), checked(text_of(key)).get(), value.get()));
}

// (dtype, [sizes]); an open size is its text.
Ref type_row(const ValueType& type) {
  Ref sizes = checked(PyList_New(0));
  for (const Dim d : type.shape) {
    const Ref size = checked(d.is_known() ? PyLong_FromLongLong(d.word()) : text_of(d.str()));
    check(PyList_Append(sizes.get(), size.get()));
  }
  return checked(Py_BuildValue("(sO)", name_of(type.dtype), sizes.get()));
}

Ref type_rows(const Program& program, const std::vector<ValueId>& ids) {
  Ref rows = checked(PyList_New(0));
  for (const ValueId id : ids)
    check(PyList_Append(rows.get(), type_row(program.type_of(id)).get()));
  return rows;
}

// saved_parts(program): its text, large constants by their labels, types of inputs and outputs, open sizes with their values at
// capture, and the versions of the ops that it calls.
PyObject* saved_parts(PyObject*, PyObject* object) {
  return guarded([&] {
    const Program& program = native_program(object);
    std::map<std::string, Tensor> large;
    std::map<std::string, int64_t> versions;
    bool distinct = true;  // a region may use a label of the outer program
    for_each_part(program, [&](const Program& part) {
      for (const Instruction& call : part.body.instructions)
        versions[call.op->name()] = call.op->schema().version;
      for (const Constant& c : part.constants)
        if (c.tensor.shape().numel().value() > kLargestConstant)
          distinct &= large.emplace(part.label(c.value).substr(1), c.tensor).second;
    });
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    const std::string text = to_text(
        program, {.locations = false, .largest_constant = distinct ? kLargestConstant : kAll});
    Ref constants = checked(PyDict_New()), ops = checked(PyDict_New()),
        sizes = checked(PyDict_New());
    if (distinct)
      for (const auto& [label, tensor] : large) put(constants, label, checked(wrap(tensor)));
    for (const auto& [name, version] : versions)
      put(ops, name, checked(PyLong_FromLongLong(version)));
    for (const Dim d : program.symbols) put(sizes, d.str(), checked(PyLong_FromLongLong(d.hint())));
    return checked(Py_BuildValue("{sNsOsOsOsOsO}", "text", text_of(text), "constants",
                                 constants.get(), "inputs",
                                 type_rows(program, program.inputs).get(), "outputs",
                                 type_rows(program, program.outputs).get(), "sizes", sizes.get(),
                                 "ops", ops.get()))
        .release();
  });
}

Ref bytes_of(const std::string& text) {
  return checked(PyBytes_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

// load_oar(path, verify): (header, {method: (program, training)}, {name: tensor}), texts as bytes.
PyObject* load_file(PyObject*, PyObject* args) {
  const char* path;
  int verify;
  if (!PyArg_ParseTuple(args, "sp", &path, &verify)) return nullptr;
  return guarded([&] {
    OarFile file;
    {
      const std::string copy = path;
      const GilRelease release;
      file = load_oar(copy, verify != 0);
    }
    const Ref methods = checked(PyDict_New()), tensors = checked(PyDict_New());
    for (const auto& [name, method] : file.methods)
      put(methods, name,
          checked(Py_BuildValue("(OO)", bytes_of(method.program).get(),
                                bytes_of(method.training).get())));
    for (const auto& [name, tensor] : file.tensors) put(tensors, name, checked(wrap(tensor)));
    return checked(
               Py_BuildValue("(OOO)", bytes_of(file.header).get(), methods.get(), tensors.get()))
        .release();
  });
}

PyMethodDef kFunctions[] = {{"saved_parts", saved_parts, METH_O, nullptr},
                            {"load_oar", load_file, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_model_files(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
