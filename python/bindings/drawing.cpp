// Pictures of programs and of other graphs, and the checksum of log files: what the dashboard needs.
#include "drawing.h"

#include "oar/base/crc32c.h"
#include "oar/ir/draw.h"
#include "oar/ir/parse.h"

namespace oar::python {
namespace {

// A program to look at: values that its text omits do not matter.
Program read_program(PyObject* text) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (!utf8) throw PythonError{};
  return parse_program(std::string_view(utf8, static_cast<size_t>(size)),
                       {[](const std::string&, const ValueType& type) {
                         return Tensor::meta(type.shape, type.dtype);
                       }});
}

PyObject* as_text(const std::string& s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

// draw_program(text): the picture as SVG.
PyObject* draw_program(PyObject*, PyObject* text) {
  return guarded([&] { return as_text(to_svg(read_program(text))); });
}

// program_boxes(text): the boxes of the picture, for graphs in other formats.
PyObject* program_boxes(PyObject*, PyObject* text) {
  return guarded([&] { return box_rows(read_program(text)); });
}

GraphBox box_of(PyObject* row) {
  const char *title, *detail, *tooltip, *style;
  PyObject* reads;
  if (!PyArg_ParseTuple(row, "ssssO", &title, &detail, &tooltip, &style, &reads))
    throw PythonError{};
  GraphBox box{title, detail, tooltip, style, {}, {}};
  const Ref list = checked(PySequence_Fast(reads, "a list of the numbers of boxes is expected"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    const size_t from = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(list.get(), i));
    if (PyErr_Occurred()) throw PythonError{};
    box.reads.push_back(from);
  }
  return box;
}

// draw_graph(title, [(title, detail, tooltip, style, [numbers of earlier boxes that it reads])])
PyObject* draw_graph(PyObject*, PyObject* args) {
  const char* title;
  PyObject* rows;
  if (!PyArg_ParseTuple(args, "sO!", &title, &PyList_Type, &rows)) return nullptr;
  return guarded([&] {
    std::vector<GraphBox> graph;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); ++i)
      graph.push_back(box_of(PyList_GET_ITEM(rows, i)));
    return as_text(to_svg(title, std::move(graph)));
  });
}

// crc32c(bytes)
PyObject* checksum(PyObject*, PyObject* object) {
  Py_buffer view;
  if (PyObject_GetBuffer(object, &view, PyBUF_SIMPLE) < 0) return nullptr;
  const uint32_t value =
      crc32c({static_cast<const char*>(view.buf), static_cast<size_t>(view.len)});
  PyBuffer_Release(&view);
  return PyLong_FromUnsignedLong(value);
}

PyMethodDef kFunctions[] = {{"draw_program", draw_program, METH_O, nullptr},
                            {"program_boxes", program_boxes, METH_O, nullptr},
                            {"draw_graph", draw_graph, METH_VARARGS, nullptr},
                            {"crc32c", checksum, METH_O, nullptr},
                            {}};

}  // namespace

// [(title, detail, tooltip, style, [reads], layer)]
PyObject* box_rows(const Program& program) {
  Ref rows = checked(PyList_New(0));
  for (const GraphBox& box : boxes_of(program)) {
    Ref reads = checked(PyList_New(0));
    for (size_t from : box.reads) {
      const Ref number = checked(PyLong_FromSize_t(from));
      check(PyList_Append(reads.get(), number.get()));
    }
    const Ref row = checked(Py_BuildValue("(ssssOs)", box.title.c_str(), box.detail.c_str(),
                                          box.tooltip.c_str(), box.style.c_str(), reads.get(),
                                          box.layer.c_str()));
    check(PyList_Append(rows.get(), row.get()));
  }
  return rows.release();
}

void init_drawing(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
