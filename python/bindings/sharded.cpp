// Sharded tensors: meshes, placements and pieces. Ops on them need nothing here.
#include "oar/autograd/sharded.h"

#include "common.h"

namespace oar::python {
namespace {

template <class T, class F>
std::vector<T> list_of(PyObject* given, F read) {
  const Ref items = checked(PySequence_Fast(given, "a list is expected"));
  std::vector<T> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    list.push_back(read(PySequence_Fast_GET_ITEM(items.get(), i)));
  return list;
}

int64_t number_of(PyObject* given) {
  const long long number = PyLong_AsLongLong(given);
  if (number == -1 && PyErr_Occurred()) throw PythonError{};
  return number;
}

std::string text_of(PyObject* given) {
  const char* text = PyUnicode_AsUTF8(given);
  if (!text) throw PythonError{};
  return text;
}

// mesh_make(name, axes, sizes, place, groups): its number.
PyObject* mesh_make(PyObject*, PyObject* args) {
  const char* name;
  PyObject *axes, *sizes, *place, *groups;
  if (!PyArg_ParseTuple(args, "sOOOO", &name, &axes, &sizes, &place, &groups)) return nullptr;
  return guarded([&] {
    return PyLong_FromLongLong(
        add_mesh({name, list_of<std::string>(axes, text_of), list_of<int64_t>(sizes, number_of),
                  list_of<int64_t>(place, number_of), list_of<int64_t>(groups, number_of)}));
  });
}

// lay_out(tensor, mesh, placements)
PyObject* lay_out_function(PyObject*, PyObject* args) {
  PyObject* x;
  long long mesh;
  const char* placements;
  if (!PyArg_ParseTuple(args, "OLs", &x, &mesh, &placements)) return nullptr;
  return guarded([&] {
    const Tensor& t = tensor_of(x);
    return wrap(lay_out(t, mesh, read_placement(placements, mesh, t.rank())));
  });
}

// from_pieces(tensor, mesh, placements, shape)
PyObject* from_pieces_function(PyObject*, PyObject* args) {
  PyObject *x, *shape;
  long long mesh;
  const char* placements;
  if (!PyArg_ParseTuple(args, "OLsO", &x, &mesh, &placements, &shape)) return nullptr;
  return guarded([&] {
    Shape whole;
    for (const int64_t size : list_of<int64_t>(shape, number_of)) whole.push_back(size);
    return wrap(
        from_pieces(tensor_of(x), mesh, read_placement(placements, mesh, whole.rank()), whole));
  });
}

// own_piece(tensor): records its gradient.
PyObject* own_piece_function(PyObject*, PyObject* x) {
  return guarded([&] { return wrap(piece_here(tensor_of(x))); });
}

// sharded_parts(tensor): mesh, placements and the piece itself; None for a tensor that is not sharded.
PyObject* sharded_parts(PyObject*, PyObject* x) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(x);
    if (!is_sharded(t)) Py_RETURN_NONE;
    const Sharded& s = sharded(t);
    const Ref piece(wrap(s.local));
    return Py_BuildValue("(LsO)", static_cast<long long>(s.mesh),
                         placement_text(s.placement).c_str(), piece.get());
  });
}

PyMethodDef kFunctions[] = {{"mesh_make", mesh_make, METH_VARARGS, nullptr},
                            {"lay_out", lay_out_function, METH_VARARGS, nullptr},
                            {"from_pieces", from_pieces_function, METH_VARARGS, nullptr},
                            {"own_piece", own_piece_function, METH_O, nullptr},
                            {"sharded_parts", sharded_parts, METH_O, nullptr},
                            {}};

}  // namespace

void init_sharded(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
