// Text in images.
#include "common.h"
#include "oar/media/png.h"
#include "oar/ocr/draw.h"
#include "oar/ocr/pages.h"
#include "oar/ocr/reader.h"

namespace oar::python {
namespace {

struct PyReader {
  PyObject_HEAD std::shared_ptr<const ocr::Reader> reader;
};
PyTypeObject* g_type = nullptr;

void dealloc(PyObject* self) {
  reinterpret_cast<PyReader*>(self)->reader.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

Tensor image_of(PyObject* object) {
  return is_tensor(object) ? tensor_of(object) : from_array(object, false);
}

// (text, score, ((x, y), ... of the four corners), whether it is upside down)
Ref entry_of(const ocr::Line& line) {
  const auto at = [&](size_t i) { return line.box[i]; };
  return checked(Py_BuildValue("(s#d((ff)(ff)(ff)(ff))O)", line.text.data(),
                               static_cast<Py_ssize_t>(line.text.size()), line.score, at(0).x,
                               at(0).y, at(1).x, at(1).y, at(2).x, at(2).y, at(3).x, at(3).y,
                               line.turned ? Py_True : Py_False));
}

PyObject* read(PyObject* self, PyObject* image) {
  return guarded([&] {
    const std::shared_ptr<const ocr::Reader> reader = reinterpret_cast<PyReader*>(self)->reader;
    const Tensor pixels = image_of(image);
    std::vector<ocr::Line> lines;
    {
      const GilRelease release;
      lines = reader->read(pixels);
    }
    Ref made = checked(PyList_New(0));
    for (const ocr::Line& line : lines) check(PyList_Append(made.get(), entry_of(line).get()));
    return made.release();
  });
}

PyMethodDef kMethods[] = {{"read", read, METH_O, "The lines of an image."}, {}};
PyType_Slot kSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)}, {Py_tp_methods, kMethods}, {0, nullptr}};
PyType_Spec kSpec = {"oar._C.OcrReader", sizeof(PyReader), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots};

// ocr_reader(folder of models, language, least score of a box, of a line)
PyObject* ocr_reader(PyObject*, PyObject* args) {
  const char *folder, *language;
  ocr::Options options;
  if (!PyArg_ParseTuple(args, "ssdd", &folder, &language, &options.detect.box_threshold,
                        &options.recognise.threshold))
    return nullptr;
  return guarded([&] {
    auto reader = std::make_shared<const ocr::Reader>(
        ocr::Reader::load(ocr::find_models(folder, language), options));
    auto* self = PyObject_New(PyReader, g_type);
    if (!self) throw PythonError{};
    new (&self->reader) std::shared_ptr<const ocr::Reader>(std::move(reader));
    return reinterpret_cast<PyObject*>(self);
  });
}

PyObject* ocr_models_folder(PyObject*, PyObject* args) {
  const char* language;
  if (!PyArg_ParseTuple(args, "s", &language)) return nullptr;
  return guarded([&] { return PyUnicode_DecodeFSDefault(ocr::models_folder(language).c_str()); });
}

// ocr_pages(path): the pages of an image or PDF file, as arrays.
PyObject* ocr_pages(PyObject*, PyObject* args) {
  PyObject* path;
  if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) return nullptr;
  const Ref owned(path);
  return guarded([&] {
    std::vector<Tensor> pages;
    {
      const std::string name = PyBytes_AS_STRING(path);
      const GilRelease release;
      pages = ocr::read_pages(name);
    }
    Ref made = checked(PyList_New(0));
    for (const Tensor& page : pages) {
      const Ref array = checked(to_array(page, false));
      check(PyList_Append(made.get(), array.get()));
    }
    return made.release();
  });
}

// ocr_drawn(image, [corners of a box as eight numbers, ...]): a PNG file with the boxes.
PyObject* ocr_drawn(PyObject*, PyObject* args) {
  PyObject *image, *boxes;
  if (!PyArg_ParseTuple(args, "OO", &image, &boxes)) return nullptr;
  return guarded([&] {
    std::vector<ocr::Line> lines;
    const Ref list = checked(PySequence_Fast(boxes, "a list of boxes is expected"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      ocr::Line line;
      const Ref box = checked(PySequence_Tuple(PySequence_Fast_GET_ITEM(list.get(), i)));
      if (!PyArg_ParseTuple(box.get(), "ffffffff", &line.box[0].x, &line.box[0].y, &line.box[1].x,
                            &line.box[1].y, &line.box[2].x, &line.box[2].y, &line.box[3].x,
                            &line.box[3].y))
        throw PythonError{};
      lines.push_back(line);
    }
    const std::string file = media::encode_png(ocr::drawn(image_of(image), lines));
    return PyBytes_FromStringAndSize(file.data(), static_cast<Py_ssize_t>(file.size()));
  });
}

PyMethodDef kFunctions[] = {{"ocr_reader", ocr_reader, METH_VARARGS, nullptr},
                            {"ocr_models_folder", ocr_models_folder, METH_VARARGS, nullptr},
                            {"ocr_pages", ocr_pages, METH_VARARGS, nullptr},
                            {"ocr_drawn", ocr_drawn, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_ocr(PyObject* module) {
  const Ref type = checked(PyType_FromSpec(&kSpec));
  g_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
