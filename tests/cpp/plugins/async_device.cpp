// A device plug-in written against the C interface alone, for tests: two devices with memory that the
// host cannot read, streams that are worker threads, and kernels that fail late. It knows a handful
// of ops; the others run through their decompositions or are declined.
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "async_queues.h"

namespace {

// ---- Tensors, copied out of the call because it no longer exists when the work begins.

template <class F>
void with_type(int dtype, F&& f) {
  switch (dtype) {
    case OAR_BOOL:
      return f(bool{});
    case OAR_UINT8:
      return f(uint8_t{});
    case OAR_INT8:
      return f(int8_t{});
    case OAR_INT16:
      return f(int16_t{});
    case OAR_INT32:
      return f(int32_t{});
    case OAR_INT64:
      return f(int64_t{});
    case OAR_FLOAT32:
      return f(float{});
    case OAR_FLOAT64:
      return f(double{});
    default:
      std::abort();  // `accepts` has seen to that
  }
}
size_t size_of(int dtype) {
  size_t size = 0;
  with_type(dtype, [&](auto zero) { size = sizeof(zero); });
  return size;
}
bool is_float(int dtype) { return dtype == OAR_FLOAT32 || dtype == OAR_FLOAT64; }

struct View {
  explicit View(const oar_tensor& t)
      : shape(t.shape, t.shape + t.ndim),
        strides(t.strides, t.strides + t.ndim),
        numel(t.numel),
        dtype(t.dtype) {
    if (t.device_type == 0 && t.numel > 0) {  // a host scalar is passed by value
      std::memcpy(scalar, t.data, size_of(dtype));
      std::fill(strides.begin(), strides.end(), 0);
    } else {
      data = real(t.data);
    }
  }
  int64_t offset(int64_t index) const {
    int64_t at = 0;
    for (size_t axis = shape.size(); axis-- > 0;) {
      at += index % shape[axis] * strides[axis];
      index /= shape[axis];
    }
    return at;
  }
  const char* start() const { return data == nullptr ? scalar : data; }
  template <class N>
  N load_at(int64_t offset) const {
    N value{};
    with_type(dtype, [&](auto zero) {
      decltype(zero) element;
      std::memcpy(&element, start() + offset * static_cast<int64_t>(sizeof(element)),
                  sizeof(element));
      value = static_cast<N>(element);
    });
    return value;
  }
  template <class N>
  N load(int64_t index) const {
    return load_at<N>(offset(index));
  }
  template <class N>
  void store(int64_t index, N value) const {
    with_type(dtype, [&](auto zero) {
      const auto element = static_cast<decltype(zero)>(value);
      std::memcpy(data + offset(index) * static_cast<int64_t>(sizeof(element)), &element,
                  sizeof(element));
    });
  }

  char* data = nullptr;
  char scalar[16] = {};
  std::vector<int64_t> shape, strides;
  int64_t numel;
  int dtype;
};

// ---- Kernels.

std::mutex g_fail_mutex;
std::string g_fail_next;

std::string take_failure() {
  const std::lock_guard lock(g_fail_mutex);
  return std::exchange(g_fail_next, std::string());
}

int32_t enqueue(oar_kernel_call* call, std::function<void()> work) {
  worker(call->outputs[0]->device_index, call->stream)
      .push([work = std::move(work), failure = take_failure()] {
        if (failure.empty()) work();
        return failure;
      });
  return OAR_OK;
}

bool knows(int dtype) { return dtype <= OAR_INT64 || is_float(dtype); }

const char* accepts(const oar_kernel_call* call) {
  for (int32_t i = 0; i < call->input_count; ++i)
    if (call->inputs[i].tag == OAR_TAG_TENSOR && !knows(call->inputs[i].tensor->dtype))
      return "no 16-bit floats, no complex numbers";
  return knows(call->outputs[0]->dtype) ? nullptr : "no 16-bit floats, no complex numbers";
}
const char* accepts_floats(const oar_kernel_call* call) {
  const char* why = accepts(call);
  return why == nullptr && !is_float(call->inputs[0].tensor->dtype) ? "floats only" : why;
}

View input(const oar_kernel_call* call, int i) { return View(*call->inputs[i].tensor); }
View output(const oar_kernel_call* call) { return View(*call->outputs[0]); }

struct Add {
  template <class N>
  N operator()(N a, N b) const {
    return a + b;
  }
};
struct Subtract {
  template <class N>
  N operator()(N a, N b) const {
    return a - b;
  }
};
struct Multiply {
  template <class N>
  N operator()(N a, N b) const {
    return a * b;
  }
};
struct Divide {
  template <class N>
  N operator()(N a, N b) const {
    return a / b;
  }
};

template <class F>
int32_t binary(oar_kernel_call* call) {
  return enqueue(call, [a = input(call, 0), b = input(call, 1), out = output(call)] {
    for (int64_t i = 0; i < out.numel; ++i) {
      if (is_float(a.dtype))
        out.store(i, F{}(a.load<double>(i), b.load<double>(i)));
      else if constexpr (!std::is_same_v<F, Divide>)
        out.store(i, static_cast<int64_t>(F{}(static_cast<uint64_t>(a.load<int64_t>(i)),
                                              static_cast<uint64_t>(b.load<int64_t>(i)))));
    }
  });
}

int32_t exp_kernel(oar_kernel_call* call) {
  return enqueue(call, [a = input(call, 0), out = output(call)] {
    for (int64_t i = 0; i < out.numel; ++i) out.store(i, std::exp(a.load<double>(i)));
  });
}

void convert(const View& from, const View& to) {
  for (int64_t i = 0; i < to.numel; ++i) {
    if (is_float(from.dtype))
      to.store(i, from.load<double>(i));
    else
      to.store(i, from.load<int64_t>(i));
  }
}
int32_t assign(oar_kernel_call* call) {  // and cast
  return enqueue(call, [a = input(call, 0), out = output(call)] { convert(a, out); });
}
int32_t copy_into(oar_kernel_call* call) {
  return enqueue(call, [a = input(call, 1), out = output(call)] { convert(a, out); });
}

int32_t full(oar_kernel_call* call) {
  const oar_value& v = call->inputs[1];
  const bool integral = v.tag == OAR_TAG_INT || v.tag == OAR_TAG_BOOL;
  const double number = v.tag == OAR_TAG_DOUBLE    ? v.real
                        : v.tag == OAR_TAG_COMPLEX ? v.doubles[0]
                                                   : 0;
  const int64_t integer = integral ? v.integer : 0;
  return enqueue(call, [=, out = output(call)] {
    for (int64_t i = 0; i < out.numel; ++i) {
      if (integral)
        out.store(i, integer);
      else
        out.store(i, number);
    }
  });
}

// Sums of integers wrap, which signed ones may not.
template <class N>
using Sum = std::conditional_t<std::is_integral_v<N>, uint64_t, N>;

template <class N>
void sum_into(const View& x, const std::vector<bool>& reduced, const View& out) {
  std::vector<Sum<N>> sums(static_cast<size_t>(out.numel), 0);
  for (int64_t i = 0; i < x.numel; ++i) {
    int64_t rest = i, place = 0, step = 1;
    for (size_t axis = x.shape.size(); axis-- > 0;) {
      const int64_t at = rest % x.shape[axis];
      rest /= x.shape[axis];
      if (reduced[axis]) continue;
      place += at * step;
      step *= x.shape[axis];
    }
    sums[static_cast<size_t>(place)] += static_cast<Sum<N>>(x.load<N>(i));
  }
  for (int64_t i = 0; i < out.numel; ++i)
    out.store(i, static_cast<N>(sums[static_cast<size_t>(i)]));
}

int32_t sum(oar_kernel_call* call) {
  const int ndim = call->inputs[0].tensor->ndim;
  const oar_value& axes = call->inputs[1];
  const bool all = axes.tag == OAR_TAG_NONE || axes.count == 0;
  std::vector<bool> reduced(static_cast<size_t>(ndim), all);
  for (int i = 0; !all && ndim > 0 && i < axes.count; ++i)
    reduced[static_cast<size_t>((axes.integers[i] + ndim) % ndim)] = true;
  return enqueue(call, [reduced, x = input(call, 0), out = output(call)] {
    if (is_float(out.dtype))
      sum_into<double>(x, reduced, out);
    else
      sum_into<int64_t>(x, reduced, out);  // elements are converted, then summed
  });
}

template <class N>
void multiply_matrices(const View& x, const View& y, const View& out) {
  const size_t rank = x.shape.size();
  const int64_t n = y.shape[rank - 1], k = x.shape[rank - 1], m = x.shape[rank - 2];
  for (int64_t i = 0; i < out.numel; ++i) {
    const int64_t column = i % n, row = i / n % m, batch = i / n / m;
    Sum<N> total(0);
    for (int64_t p = 0; p < k; ++p)
      total += static_cast<Sum<N>>(x.load<N>((batch * m + row) * k + p)) *
               static_cast<Sum<N>>(y.load<N>((batch * k + p) * n + column));
    out.store(i, static_cast<N>(total));
  }
}

int32_t matmul_core(oar_kernel_call* call) {
  return enqueue(call, [x = input(call, 0), y = input(call, 1), out = output(call)] {
    if (is_float(x.dtype))
      multiply_matrices<double>(x, y, out);
    else
      multiply_matrices<int64_t>(x, y, out);
  });
}

const oar_kernel kKernels[] = {
    {"add", 1, "async:plain", accepts, binary<Add>},
    {"subtract", 1, "async:plain", accepts, binary<Subtract>},
    {"multiply", 1, "async:plain", accepts, binary<Multiply>},
    {"divide", 1, "async:plain", accepts_floats, binary<Divide>},
    {"exp", 1, "async:plain", accepts_floats, exp_kernel},
    {"assign", 1, "async:plain", accepts, assign},
    {"cast", 1, "async:plain", accepts, assign},
    {"copy_into", 1, "async:plain", accepts, copy_into},
    {"full", 1, "async:plain", accepts, full},
    {"sum", 1, "async:plain", accepts, sum},
    {"matmul_core", 1, "async:plain", accepts, matmul_core},
};

const char* supports(const char* op, uint32_t version) {
  for (const oar_kernel& kernel : kKernels)
    if (std::strcmp(kernel.op, op) == 0 && kernel.op_version == version) return nullptr;
  return "the test device knows a handful of ops only";
}

}  // namespace

extern "C" {

// Holds the streams before their next task, and lets them go.
void oar_async_pause(int paused) {
  {
    const std::lock_guard lock(g_pause_mutex);
    g_paused = paused != 0;
  }
  g_pause_changed.notify_all();
}
// The next kernel that is queued fails when its turn comes.
void oar_async_fail_next(const char* text) {
  const std::lock_guard lock(g_fail_mutex);
  g_fail_next = text;
}
int64_t oar_async_live_blocks(void) { return g_live_blocks; }
int64_t oar_async_damaged_blocks(void) { return g_damaged_blocks; }

int32_t oar_plugin_init(const oar_host_api* host, oar_device_api* device) {
  if (host->abi_version != OAR_ABI_VERSION) return 1;
  device->abi_version = OAR_ABI_VERSION;
  device->type_name = "async";
  device->device_count = [] { return int32_t{kDevices}; };
  device->describe = [](int32_t) { return "a test device with queues"; };
  device->allocate = allocate;
  device->free = release;
  device->copy = copy;
  device->stream_create = stream_create;
  device->stream_destroy = stream_destroy;
  device->stream_synchronize = stream_synchronize;
  device->stream_take_error = stream_take_error;
  device->event_create = event_create;
  device->event_destroy = event_destroy;
  device->event_record = event_record;
  device->event_query = event_query;
  device->event_wait = event_wait;
  device->supports = supports;
  device->kernels = kKernels;
  device->kernel_count = static_cast<int32_t>(sizeof(kKernels) / sizeof(kKernels[0]));
  return 0;
}

}  // extern "C"
