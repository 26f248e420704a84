#include "frames.h"

#include <algorithm>
#include <unordered_set>

#include "oar/ops/core/registry.h"

namespace oar::python {
namespace {

struct Folders {
  std::string package, library;  // with a slash at the end
};

std::string text_of(PyObject* object) {
  const char* text = object ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) throw PythonError{};
  return text;
}

// As the import system spells them, because code objects have their paths from it.
Folders find_folders() {
  const Ref package = checked(PyImport_ImportModule("oar"));
  const Ref path = checked(PyObject_GetAttrString(package.get(), "__path__"));
  const Ref folder = checked(PySequence_GetItem(path.get(), 0));
  const Ref os = checked(PyImport_ImportModule("os"));
  const Ref file = checked(PyObject_GetAttrString(os.get(), "__file__"));
  const std::string library = text_of(file.get());
  return {text_of(folder.get()) + "/", library.substr(0, library.rfind('/') + 1)};
}

Folders g_folders;

// Names of source files are few, so they are kept.
const char* kept_name(const char* path) {
  static auto* const names = new std::unordered_set<std::string>();
  return names->emplace(path).first->c_str();
}

PyObject* is_users_file_function(PyObject*, PyObject* path) {
  Py_ssize_t size;
  const char* text = PyUnicode_AsUTF8AndSize(path, &size);
  if (!text) return nullptr;
  return PyBool_FromLong(is_users_file({text, static_cast<size_t>(size)}));
}

PyMethodDef kFunctions[] = {{"is_users_file", is_users_file_function, METH_O,
                             "Whether code of this file is neither of the package nor of Python."},
                            {}};

}  // namespace

bool is_users_file(std::string_view path) {
  if (path.starts_with(g_folders.package) || path.starts_with("<frozen")) return false;
  return !path.starts_with(g_folders.library) ||
         path.find("/site-packages/") != std::string_view::npos;
}

namespace {

// Calls see(line) for the lines of the user, innermost first, until it returns false.
template <class F>
void walk_lines(F&& see) {
  Ref current = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (current) {
    auto* frame = reinterpret_cast<PyFrameObject*>(current.get());
    const Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const char* path = PyUnicode_AsUTF8(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
    if (!path) PyErr_Clear();  // a path that is no text
    if (path && is_users_file(path) &&
        !see(SourceLine{kept_name(path), PyFrame_GetLineNumber(frame)}))
      return;
    current = Ref(reinterpret_cast<PyObject*>(PyFrame_GetBack(frame)));
  }
}

}  // namespace

SourceLine users_line() {
  SourceLine found;
  if (!Py_IsInitialized() || !PyGILState_Check()) return found;
  walk_lines([&](SourceLine line) {
    found = line;
    return false;
  });
  return found;
}

std::vector<SourceLine> users_lines() {
  std::vector<SourceLine> lines;
  if (!Py_IsInitialized()) return lines;
  const GilHold gil;  // an op on large tensors has released it
  walk_lines([&](SourceLine line) {
    lines.push_back(line);
    return true;
  });
  std::reverse(lines.begin(), lines.end());
  return lines;
}

namespace {

// What oar._signature says; empty if it cannot.
CalledOp ask(const char* function, PyObject* about) {
  const Ref module(PyImport_ImportModule("oar._signature"));
  const Ref found(module ? PyObject_CallMethod(module.get(), function, "O", about) : nullptr);
  const char *name, *signature;
  if (found && PyArg_ParseTuple(found.get(), "ss", &name, &signature)) return {name, signature};
  PyErr_Clear();  // an error while reporting an error does not help
  return {};
}

}  // namespace

CalledOp called_as(const Op& op) {
  const Ref function(op_function(op));
  CalledOp called = ask("called_as", function.get());
  return called.name.empty() ? CalledOp{op.name(), op.schema().visible_str()} : called;
}

std::string called_function(const char* otherwise) {
  const std::string name = ask("called_function", Py_None).name;
  return name.empty() ? otherwise : name;
}

void init_frames(PyObject* module) {
  g_folders = find_folders();
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
