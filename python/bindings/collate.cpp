// The samples of a batch, stacked into memory that is already there.
#include "collate.h"

#include <algorithm>
#include <cstring>

#include "oar/base/parallel.h"

namespace oar::python {
namespace {

// Below this size taking the interpreter lock again costs more than others gain meanwhile.
constexpr Py_ssize_t kWorthReleasing = 1 << 16;
// What a thread copies at least.
constexpr Py_ssize_t kPieceBytes = 1 << 19;

// The buffers of a batch, given back at the end.
class Views {
 public:
  explicit Views(Py_ssize_t count) { views_.reserve(static_cast<size_t>(count)); }
  ~Views() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
  }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  // The buffer of an array or a tensor; null if it has none.
  const Py_buffer* add(PyObject* object, int flags) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, flags) < 0) {
      PyErr_Clear();
      return nullptr;
    }
    views_.push_back(view);
    return &views_.back();
  }
  const std::vector<Py_buffer>& all() const { return views_; }

 private:
  std::vector<Py_buffer> views_;
};

// The same element type; formats spell some integers in several ways.
bool same_elements(const Py_buffer& a, const Py_buffer& b) {
  if (a.itemsize != b.itemsize) return false;
  if (a.format && b.format && std::strcmp(a.format, b.format) == 0) return true;
  const auto type = dtype_of_buffer(a);
  return type && type == dtype_of_buffer(b);
}

bool same_shape(const Py_buffer& a, const Py_buffer& b) {
  return a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape);
}

template <size_t kSize>
void copy_line(char* to, const char* from, Py_ssize_t count, Py_ssize_t stride) {
  for (Py_ssize_t i = 0; i < count; ++i) std::memcpy(to + i * kSize, from + i * stride, kSize);
}

void copy_line(char* to, const char* from, Py_ssize_t count, Py_ssize_t stride, Py_ssize_t size) {
  if (stride == size) {
    std::memcpy(to, from, static_cast<size_t>(count * size));
    return;
  }
  switch (size) {
    case 1:
      return copy_line<1>(to, from, count, stride);
    case 2:
      return copy_line<2>(to, from, count, stride);
    case 4:
      return copy_line<4>(to, from, count, stride);
    case 8:
      return copy_line<8>(to, from, count, stride);
    default:
      for (Py_ssize_t i = 0; i < count; ++i)
        std::memcpy(to + i * size, from + i * stride, static_cast<size_t>(size));
  }
}

// The elements of `view` from axis `axis` on, in order. Returns the end of what was written.
char* copy_elements(char* to, const char* from, const Py_buffer& view, int axis) {
  const Py_ssize_t count = view.shape[axis], stride = view.strides[axis];
  if (axis == view.ndim - 1) {
    copy_line(to, from, count, stride, view.itemsize);
    return to + count * view.itemsize;
  }
  for (Py_ssize_t i = 0; i < count; ++i) to = copy_elements(to, from + i * stride, view, axis + 1);
  return to;
}

// Whether a view is [3, height, width] on pixels that lie one after the other, three values each: a
// photograph after transpose(2, 0, 1).
bool is_split_photograph(const Py_buffer& view) {
  const auto aligned =
      reinterpret_cast<uintptr_t>(view.buf) % static_cast<size_t>(view.itemsize) == 0;
  return view.ndim == 3 && view.shape[0] == 3 && view.strides[0] == view.itemsize && aligned &&
         view.strides[2] == 3 * view.itemsize && view.strides[1] == view.shape[2] * view.strides[2];
}

// The planes are arguments, and the inner loop has a constant number of steps, so that the compiler vectorises it.
template <class Word>
void split_channels(Word* __restrict red, Word* __restrict green, Word* __restrict blue,
                    const Word* __restrict pixel, Py_ssize_t pixels) {
  constexpr Py_ssize_t kBlock = 64;
  Py_ssize_t start = 0;
  for (; start + kBlock <= pixels; start += kBlock) {
    for (Py_ssize_t k = 0; k < kBlock; ++k) {
      red[start + k] = pixel[3 * (start + k)];
      green[start + k] = pixel[3 * (start + k) + 1];
      blue[start + k] = pixel[3 * (start + k) + 2];
    }
  }
  for (; start < pixels; ++start) {
    red[start] = pixel[3 * start];
    green[start] = pixel[3 * start + 1];
    blue[start] = pixel[3 * start + 2];
  }
}

template <class Word>
void split_photograph(char* to, const Py_buffer& view) {
  const Py_ssize_t pixels = view.shape[1] * view.shape[2];
  auto* red = reinterpret_cast<Word*>(to);
  split_channels(red, red + pixels, red + 2 * pixels, static_cast<const Word*>(view.buf), pixels);
}

bool copy_photograph(char* to, const Py_buffer& view) {
  if (!is_split_photograph(view)) return false;
  switch (view.itemsize) {
    case 1:
      split_photograph<uint8_t>(to, view);
      return true;
    case 4:
      split_photograph<uint32_t>(to, view);
      return true;
    default:
      return false;
  }
}

void copy_row(char* to, const Py_buffer& view) {
  if (view.ndim == 0 || PyBuffer_IsContiguous(&view, 'C'))
    std::memcpy(to, view.buf, static_cast<size_t>(view.len));
  else if (!copy_photograph(to, view))
    copy_elements(to, static_cast<const char*>(view.buf), view, 0);
}

void copy_all(void* to, const std::vector<Py_buffer>& rows) {
  const Py_ssize_t length = rows[0].len, count = static_cast<Py_ssize_t>(rows.size());
  const auto copy = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      copy_row(static_cast<char*>(to) + i * length, rows[static_cast<size_t>(i)]);
  };
  if (length * count < kWorthReleasing) return copy(0, count);
  const GilRelease release;
  parallel_for(0, count, std::max<int64_t>(kPieceBytes / length, 1), copy);
}

// Takes the buffers of samples. Returns -1, or the position of the first one that has no buffer, or another
// shape or dtype than the first.
Py_ssize_t view_samples(PyObject* samples, Views& rows) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(samples); ++i) {
    const Py_buffer* row = rows.add(PyList_GET_ITEM(samples, i), PyBUF_RECORDS_RO);
    if (!row || !same_shape(*row, rows.all()[0]) || !same_elements(*row, rows.all()[0])) return i;
  }
  return -1;
}

// stack_into(samples, out): copies a list of arrays or tensors into the rows of `out`, a writable array. Returns
// -1, or, with nothing written, the position of a sample that does not fit.
PyObject* stack_into(PyObject*, PyObject* args) {
  PyObject *samples, *out;
  if (!PyArg_ParseTuple(args, "O!O", &PyList_Type, &samples, &out)) return nullptr;
  return guarded([&]() -> PyObject* {
    Views target(1), rows(PyList_GET_SIZE(samples));
    const Py_ssize_t odd = view_samples(samples, rows);
    if (odd >= 0 || rows.all().empty()) return PyLong_FromSsize_t(std::max<Py_ssize_t>(odd, 0));
    const Py_buffer* to =
        target.add(out, PyBUF_ND | PyBUF_FORMAT | PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS);
    const Py_buffer& row = rows.all()[0];
    if (!to || !same_elements(*to, row) || to->len != row.len * PyList_GET_SIZE(samples))
      return PyLong_FromLong(0);
    copy_all(to->buf, rows.all());
    return PyLong_FromLong(-1);
  });
}

// stack_samples(samples): a tensor with the samples as rows, or the position of one that does not fit.
PyObject* stack_samples(PyObject*, PyObject* samples) {
  return guarded([&]() -> PyObject* {
    if (!PyList_Check(samples) || PyList_GET_SIZE(samples) == 0) return PyLong_FromLong(0);
    Views rows(PyList_GET_SIZE(samples));
    const Py_ssize_t odd = view_samples(samples, rows);
    if (odd >= 0) return PyLong_FromSsize_t(odd);
    const Py_buffer& row = rows.all()[0];
    PyObject* first = PyList_GET_ITEM(samples, 0);
    const auto type =
        is_tensor(first) ? std::optional(tensor_of(first).dtype()) : dtype_of_buffer(row);
    if (!type) return PyLong_FromLong(0);
    Shape shape{PyList_GET_SIZE(samples)};
    for (int i = 0; i < row.ndim; ++i) shape.push_back(row.shape[i]);
    const Tensor stacked = Tensor::empty(shape, *type);
    copy_all(stacked->data, rows.all());
    return wrap(stacked);
  });
}

// adopt_array(array): a tensor on the memory of an array that nobody else uses.
PyObject* adopt_array(PyObject*, PyObject* array) {
  return guarded([&] { return wrap(adopt(array)); });
}

PyMethodDef kFunctions[] = {{"stack_into", stack_into, METH_VARARGS, nullptr},
                            {"stack_samples", stack_samples, METH_O, nullptr},
                            {"adopt_array", adopt_array, METH_O, nullptr},
                            {}};

}  // namespace

void init_collate(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
