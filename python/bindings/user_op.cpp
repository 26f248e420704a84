// Ops registered at run time from Python: the same record, with Python callables as rules.
#include "common.h"
#include "oar/extension/extension.h"
#include "oar/ops/core/dispatcher.h"

namespace oar::python {

namespace {

Ref call_rule(const Callable& rule, Args args, const char* op) {
  Ref arguments = checked(PyTuple_New(static_cast<Py_ssize_t>(args.size())));
  for (size_t i = 0; i < args.size(); ++i)
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), from_value(args[i]));
  Ref result(PyObject_CallObject(rule.get(), arguments.get()));
  if (!result) throw_python_error();
  static_cast<void>(op);
  return result;
}

MakeRule make_rule(PyObject* function) {
  return [rule = Callable(function)](const Args& args) -> Made {
    const GilHold gil;
    const Ref result = call_rule(rule, args, "");
    Made made;
    for (Tensor& t : tensors_of(result.get())) made.push_back(std::move(t));
    return made;
  };
}

// vjp(args…, outputs, cotangents) -> one gradient per tensor operand, None for none.
VjpRule vjp_rule(PyObject* function) {
  return [rule = Callable(function)](const VjpCall& call) -> Grads {
    const GilHold gil;
    const auto n = static_cast<Py_ssize_t>(call.args.size());
    Ref arguments = checked(PyTuple_New(n + 2));
    for (Py_ssize_t i = 0; i < n; ++i)
      PyTuple_SET_ITEM(arguments.get(), i, from_value(call.args[static_cast<size_t>(i)]));
    PyTuple_SET_ITEM(arguments.get(), n, wrap_list(call.outputs));
    PyTuple_SET_ITEM(arguments.get(), n + 1, wrap_list(call.cotangents));
    const Ref result(PyObject_CallObject(rule.get(), arguments.get()));
    if (!result) throw_python_error();
    Grads grads;
    for (Tensor& t : tensors_of(result.get(), true)) grads.push_back(std::move(t));
    return grads;
  };
}

// infer(args…) -> list of (shape, dtype); tensors arrive without content.
InferRule infer_rule(PyObject* function) {
  return [rule = Callable(function)](const Args& args) -> Metas {
    const GilHold gil;
    const Ref result = call_rule(rule, args, "");
    const Ref rows =
        checked(PySequence_Fast(result.get(), "infer must return a list of (shape, dtype)"));
    Metas metas;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(rows.get()); ++i) {
      PyObject *shape, *dtype;
      if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(rows.get(), i), "OO", &shape, &dtype))
        throw_python_error();
      TensorMeta meta;
      if (!to_dtype(dtype, &meta.dtype)) throw_python_error();
      const Ref sizes = checked(PySequence_Fast(shape, "a shape is a list"));
      for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(sizes.get()); ++k)
        meta.shape.push_back(to_dim(PySequence_Fast_GET_ITEM(sizes.get(), k)));
      metas.push_back(std::move(meta));
    }
    return metas;
  };
}

const char* text_or(PyObject* object, const char* otherwise) {
  return object && object != Py_None ? PyUnicode_AsUTF8(object) : otherwise;
}

// register_op(schema, brief, compute, infer, vjp, saves, shard, numpy, python)
PyObject* register_op(PyObject*, PyObject* args) {
  PyObject *schema, *brief, *compute, *infer, *vjp, *saves, *shard, *numpy, *traits;
  if (!PyArg_ParseTuple(args, "OOOOOOOOO", &schema, &brief, &compute, &infer, &vjp, &saves, &shard,
                        &numpy, &traits))
    return nullptr;
  return guarded([&] {
    OpDef def;
    def.schema = text_or(schema, nullptr);
    def.brief = text_or(brief, "");
    def.saves = text_or(saves, "");
    def.shard = text_or(shard, nullptr);
    def.numpy = text_or(numpy, nullptr);
    def.traits = static_cast<Trait>(PyLong_AsUnsignedLong(traits));
    if (compute != Py_None) def.decompose = make_rule(compute);
    if (infer != Py_None) def.infer = infer_rule(infer);
    if (vjp != Py_None) def.vjp = vjp_rule(vjp);
    return op_function(Registry::get().add(std::move(def), "user"));
  });
}

// load_extension(path) -> [(name, function)]
PyObject* load_extension(PyObject*, PyObject* path) {
  const char* text = PyUnicode_AsUTF8(path);
  if (!text) return nullptr;
  return guarded([&] {
    const std::vector<extension::Function>& functions = extension::load(text);
    Ref list = checked(PyList_New(0));
    for (const extension::Function& f : functions) {
      const Ref function = checked(op_function(*f.op));
      const Ref pair = checked(Py_BuildValue("(sO)", f.name.c_str(), function.get()));
      check(PyList_Append(list.get(), pair.get()));
    }
    return list.release();
  });
}

PyMethodDef kFunctions[] = {{"load_extension", load_extension, METH_O, nullptr},
                            {"register_op", register_op, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_user_ops(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
