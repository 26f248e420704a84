// Sparse tensors: creation, parts and conversions. Ops on them need nothing here.
#include "oar/ops/families/sparse.h"

#include "common.h"

namespace oar::python {
namespace {

Shape shape_of(PyObject* list) {
  const Ref items = checked(PySequence_Fast(list, "a shape must be a list of sizes"));
  Shape shape;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i)
    shape.push_back(to_dim(PySequence_Fast_GET_ITEM(items.get(), i)));
  return shape;
}

// sparse_coo(indices, values, shape, coalesced, checked): with `checked` the coordinates are known to be inside.
PyObject* sparse_coo(PyObject*, PyObject* args) {
  PyObject *indices, *values, *shape;
  int coalesced, is_checked;
  if (!PyArg_ParseTuple(args, "OOOpp", &indices, &values, &shape, &coalesced, &is_checked))
    return nullptr;
  return guarded([&] {
    const Tensor t =
        make_coo(tensor_of(indices), tensor_of(values), shape_of(shape), coalesced != 0);
    if (!is_checked) check_places(t);
    return wrap(t);
  });
}

PyObject* sparse_csr(PyObject*, PyObject* args) {
  PyObject *crows, *cols, *values, *shape;
  int is_checked;
  if (!PyArg_ParseTuple(args, "OOOOp", &crows, &cols, &values, &shape, &is_checked)) return nullptr;
  return guarded([&] {
    const Tensor t =
        make_csr(tensor_of(crows), tensor_of(cols), tensor_of(values), shape_of(shape));
    if (!is_checked) check_places(t);
    return wrap(t);
  });
}

// sparse_parts(t): the index tensors, the values, and whether it is known to be coalesced.
PyObject* sparse_parts(PyObject*, PyObject* tensor) {
  return guarded([&] {
    const Sparse& parts = sparse(tensor_of(tensor));
    const Ref places(wrap_list(parts.places)), values(wrap(parts.values));
    return Py_BuildValue("(OOO)", places.get(), values.get(), parts.coalesced ? Py_True : Py_False);
  });
}

PyObject* sparse_dim_function(PyObject*, PyObject* tensor) {
  return guarded([&] { return PyLong_FromLong(sparse_dim(tensor_of(tensor))); });
}

template <Tensor (*kFunction)(const Tensor&)>
PyObject* of_one(PyObject*, PyObject* tensor) {
  return guarded([&] { return wrap(kFunction(tensor_of(tensor))); });
}

template <Tensor (*kFunction)(const Tensor&, const Tensor&)>
PyObject* of_two(PyObject*, PyObject* args) {
  PyObject *first, *second;
  if (!PyArg_ParseTuple(args, "OO", &first, &second)) return nullptr;
  return guarded([&] { return wrap(kFunction(tensor_of(first), tensor_of(second))); });
}

PyObject* sparse_to_coo(PyObject*, PyObject* args) {
  PyObject* tensor;
  int axes;
  if (!PyArg_ParseTuple(args, "Oi", &tensor, &axes)) return nullptr;
  return guarded([&] { return wrap(to_coo(tensor_of(tensor), axes)); });
}

PyObject* sparse_masked_matmul(PyObject*, PyObject* args) {
  PyObject *x, *y, *mask;
  if (!PyArg_ParseTuple(args, "OOO", &x, &y, &mask)) return nullptr;
  return guarded([&] { return wrap(masked_matmul(tensor_of(x), tensor_of(y), tensor_of(mask))); });
}

PyMethodDef kFunctions[] = {{"sparse_coo", sparse_coo, METH_VARARGS, nullptr},
                            {"sparse_csr", sparse_csr, METH_VARARGS, nullptr},
                            {"sparse_parts", sparse_parts, METH_O, nullptr},
                            {"sparse_dim", sparse_dim_function, METH_O, nullptr},
                            {"sparse_coalesce", of_one<coalesce>, METH_O, nullptr},
                            {"sparse_to_dense", of_one<to_dense>, METH_O, nullptr},
                            {"sparse_to_coo", sparse_to_coo, METH_VARARGS, nullptr},
                            {"sparse_to_csr", of_one<to_csr>, METH_O, nullptr},
                            {"sparse_mask_as", of_two<mask_as>, METH_VARARGS, nullptr},
                            {"sparse_with_values", of_two<with_values>, METH_VARARGS, nullptr},
                            {"sparse_masked_matmul", sparse_masked_matmul, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_sparse(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
