// Images: decoding, sizes and colours. Arrays in, arrays out; the interpreter lock is free while pixels are computed.
#include "common.h"
#include "oar/base/flags.h"
#include "oar/media/decode.h"
#include "oar/media/pixels.h"
#include "oar/media/resample.h"
#include "oar/media/resize.h"
#include "oar/media/warp.h"

namespace oar::python {
namespace {

// The bytes of a file, for as long as this lives.
class FileBytes {
 public:
  explicit FileBytes(PyObject* object) {
    check(PyObject_GetBuffer(object, &view_, PyBUF_C_CONTIGUOUS));
  }
  ~FileBytes() { PyBuffer_Release(&view_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;
  std::string_view view() const {
    return {static_cast<const char*>(view_.buf), static_cast<size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

Tensor image_of(PyObject* object) {
  return is_tensor(object) ? tensor_of(object) : from_array(object, false);
}

// The result of `compute`, as an array that shares its memory.
template <class F>
PyObject* array_from(F&& compute) {
  Tensor result;
  {
    GilRelease release;
    result = compute();
  }
  return to_array(result, false);
}

media::Channels channels_of(std::string_view mode) {
  if (mode == "gray") return media::Channels::Gray;
  return mode == "rgb" ? media::Channels::Rgb : media::Channels::AsInFile;
}

// image_info(file): (format, height, width, channels, whether it can be decoded), or None for other formats.
PyObject* image_info(PyObject*, PyObject* file) {
  return guarded([&]() -> PyObject* {
    const FileBytes bytes(file);
    const media::Format format = media::format_of(bytes.view());
    if (format == media::Format::Other) Py_RETURN_NONE;
    const media::ImageInfo info = media::image_info(bytes.view());
    return Py_BuildValue("(sLLiO)", format == media::Format::Jpeg ? "jpeg" : "png",
                         static_cast<long long>(info.height), static_cast<long long>(info.width),
                         info.channels, info.readable ? Py_True : Py_False);
  });
}

// image_decode(file, mode, window): the mode is 'unchanged', 'gray' or 'rgb'; the window (top, left, height, width) or None.
PyObject* image_decode(PyObject*, PyObject* args) {
  PyObject *file, *window;
  const char* mode;
  if (!PyArg_ParseTuple(args, "OsO", &file, &mode, &window)) return nullptr;
  return guarded([&] {
    std::optional<media::Window> part;
    if (window != Py_None) {
      long long top, left, height, width;
      if (!PyArg_ParseTuple(window, "LLLL", &top, &left, &height, &width)) throw PythonError{};
      part = media::Window{top, left, height, width};
    }
    const FileBytes bytes(file);
    return array_from([&] { return media::decode_image(bytes.view(), channels_of(mode), part); });
  });
}

// image_decode_resized(file, (top, left, height, width), height, width, filter)
PyObject* image_decode_resized(PyObject*, PyObject* args) {
  PyObject* file;
  long long top, left, rows, columns, height, width;
  const char* filter;
  if (!PyArg_ParseTuple(args, "O(LLLL)LLs", &file, &top, &left, &rows, &columns, &height, &width,
                        &filter))
    return nullptr;
  return guarded([&] {
    static const FlagHandle<bool> shrink("shrink_jpeg");
    const FileBytes bytes(file);
    const media::ResizedImage wanted{height, width, media::filter_of(filter), shrink.get()};
    return array_from(
        [&] { return media::decode_resized(bytes.view(), {top, left, rows, columns}, wanted); });
  });
}

// image_resample(image, height, width, filter): as Pillow.
PyObject* image_resample(PyObject*, PyObject* args) {
  PyObject* image;
  long long height, width;
  const char* filter;
  if (!PyArg_ParseTuple(args, "OLLs", &image, &height, &width, &filter)) return nullptr;
  return guarded([&] {
    const Tensor source = image_of(image);
    const media::Filter chosen = media::filter_of(filter);
    return array_from([&] { return media::resample(source, height, width, chosen); });
  });
}

// image_resize(image, height, width, interpolation): as OpenCV.
PyObject* image_resize(PyObject*, PyObject* args) {
  PyObject* image;
  long long height, width;
  const char* interpolation;
  if (!PyArg_ParseTuple(args, "OLLs", &image, &height, &width, &interpolation)) return nullptr;
  return guarded([&] {
    const Tensor source = image_of(image);
    const media::Interpolation chosen = media::interpolation_of(interpolation);
    return array_from([&] { return media::resize(source, height, width, chosen); });
  });
}

std::vector<double> numbers_of(PyObject* sequence) {
  const Ref items = checked(PySequence_Fast(sequence, "numbers are needed"));
  std::vector<double> numbers;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    numbers.push_back(PyFloat_AsDouble(PySequence_Fast_GET_ITEM(items.get(), i)));
    if (PyErr_Occurred()) throw PythonError{};
  }
  return numbers;
}

// image_warp(image, matrix, height, width, interpolation, fill): the matrix has nine numbers, fill one for each channel.
PyObject* image_warp(PyObject*, PyObject* args) {
  PyObject *image, *matrix, *fill;
  long long height, width;
  const char* interpolation;
  if (!PyArg_ParseTuple(args, "OOLLsO", &image, &matrix, &height, &width, &interpolation, &fill))
    return nullptr;
  return guarded([&] {
    const Tensor source = image_of(image);
    media::Warp how;
    const std::vector<double> entries = numbers_of(matrix);
    internal_check(entries.size() == how.matrix.size(), "a matrix has {} entries", entries.size());
    std::copy(entries.begin(), entries.end(), how.matrix.begin());
    how.height = height;
    how.width = width;
    how.interpolation = media::interpolation_of(interpolation);
    how.fill = numbers_of(fill);
    return array_from([&] { return media::warp(source, how); });
  });
}

PyObject* image_flip(PyObject*, PyObject* args) {
  PyObject* image;
  int horizontally;
  if (!PyArg_ParseTuple(args, "Op", &image, &horizontally)) return nullptr;
  return guarded([&] {
    const Tensor source = image_of(image);
    return array_from([&] { return media::flip(source, horizontally != 0); });
  });
}

PyObject* image_shift_hue(PyObject*, PyObject* args) {
  PyObject* image;
  int shift;
  if (!PyArg_ParseTuple(args, "Oi", &image, &shift)) return nullptr;
  return guarded([&] {
    const Tensor source = image_of(image);
    return array_from([&] { return media::shift_hue(source, shift); });
  });
}

// image_look_up(image, tables, channels_first): a tensor.
PyObject* image_look_up(PyObject*, PyObject* args) {
  PyObject *image, *tables;
  int channels_first;
  if (!PyArg_ParseTuple(args, "OOp", &image, &tables, &channels_first)) return nullptr;
  return guarded([&] {
    const Tensor source = image_of(image), entries = image_of(tables);
    Tensor result;
    {
      GilRelease release;
      result = media::look_up(source, entries, channels_first != 0);
    }
    return wrap(result);
  });
}

PyMethodDef kFunctions[] = {{"image_info", image_info, METH_O, nullptr},
                            {"image_decode", image_decode, METH_VARARGS, nullptr},
                            {"image_decode_resized", image_decode_resized, METH_VARARGS, nullptr},
                            {"image_resample", image_resample, METH_VARARGS, nullptr},
                            {"image_resize", image_resize, METH_VARARGS, nullptr},
                            {"image_warp", image_warp, METH_VARARGS, nullptr},
                            {"image_flip", image_flip, METH_VARARGS, nullptr},
                            {"image_shift_hue", image_shift_hue, METH_VARARGS, nullptr},
                            {"image_look_up", image_look_up, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_images(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
