// A device plug-in written against the C interface alone, for tests: two devices with memory that the
// host cannot read, streams that are worker threads and now and then late, and kernels that fail late. It knows
// some thirty ops, enough to train; the others run through their decompositions or are declined.
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
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
  worker(call->device_index, call->stream).push([work = std::move(work), failure = take_failure()] {
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

// ---- Elementwise. One function for each number of operands; what it computes is the kernel's context.

struct Function {
  double (*real)(double a, double b);
  int64_t (*integer)(int64_t a, int64_t b);  // null: floats only
};

const Function& function_of(const oar_kernel_call* call) {
  return *static_cast<const Function*>(call->context);
}

const char* accepts_function(const oar_kernel_call* call) {
  return function_of(call).integer == nullptr ? accepts_floats(call) : accepts(call);
}

void apply(const Function& f, const View& a, const View& b, const View& out) {
  for (int64_t i = 0; i < out.numel; ++i) {
    if (is_float(a.dtype))
      out.store(i, f.real(a.load<double>(i), b.load<double>(i)));
    else
      out.store(i, f.integer(a.load<int64_t>(i), b.load<int64_t>(i)));
  }
}

int32_t unary(oar_kernel_call* call) {
  return enqueue(call, [f = function_of(call), a = input(call, 0), out = output(call)] {
    apply(f, a, a, out);
  });
}
int32_t binary(oar_kernel_call* call) {
  return enqueue(call, [f = function_of(call), a = input(call, 0), b = input(call, 1),
                        out = output(call)] { apply(f, a, b, out); });
}

template <class F>
int64_t wrapping(int64_t a, int64_t b) {  // sums of integers wrap, which signed ones may not
  return static_cast<int64_t>(F{}(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}
template <class F>
constexpr Function arithmetic() {
  return {[](double a, double b) { return F{}(a, b); }, wrapping<F>};
}
template <class F>
constexpr Function comparison() {
  return {[](double a, double b) { return F{}(a, b) ? 1.0 : 0.0; },
          [](int64_t a, int64_t b) { return int64_t{F{}(a, b)}; }};
}
template <double (*kFunction)(double)>
constexpr Function of_one() {
  return {[](double a, double) { return kFunction(a); }, nullptr};
}

Function kAdd = arithmetic<std::plus<>>(), kSubtract = arithmetic<std::minus<>>(),
         kMultiply = arithmetic<std::multiplies<>>(),
         kDivide = {[](double a, double b) { return a / b; }, nullptr},
         kPow = {[](double a, double b) { return std::pow(a, b); }, nullptr},
         kMaximum = {[](double a, double b) { return a >= b || std::isnan(a) ? a : b; },
                     [](int64_t a, int64_t b) { return std::max(a, b); }},
         kMinimum = {[](double a, double b) { return a <= b || std::isnan(a) ? a : b; },
                     [](int64_t a, int64_t b) { return std::min(a, b); }},
         kLogicalAnd = comparison<std::logical_and<>>(), kEqual = comparison<std::equal_to<>>(),
         kNotEqual = comparison<std::not_equal_to<>>(), kLess = comparison<std::less<>>(),
         kLessEqual = comparison<std::less_equal<>>(), kGreater = comparison<std::greater<>>(),
         kGreaterEqual = comparison<std::greater_equal<>>(), kExp = of_one<std::exp>(),
         kLog = of_one<std::log>(), kSqrt = of_one<std::sqrt>(), kTanh = of_one<std::tanh>(),
         kSin = of_one<std::sin>(), kCos = of_one<std::cos>(),
         kNeg = {[](double a, double) { return -a; },
                 [](int64_t a, int64_t) { return wrapping<std::minus<>>(0, a); }},
         kRelu = {[](double a, double) { return a > 0 || std::isnan(a) ? a : 0.0; },
                  [](int64_t a, int64_t) { return std::max<int64_t>(a, 0); }},
         kReluGrad = {[](double out, double grad) { return out > 0 ? grad : 0.0; }, nullptr};

int32_t where(oar_kernel_call* call) {
  return enqueue(call, [condition = input(call, 0), a = input(call, 1), b = input(call, 2),
                        out = output(call)] {
    for (int64_t i = 0; i < out.numel; ++i) {
      const View& from = condition.load<bool>(i) ? a : b;
      if (is_float(from.dtype))
        out.store(i, from.load<double>(i));
      else
        out.store(i, from.load<int64_t>(i));
    }
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

template <class N>
using Sum = std::conditional_t<std::is_integral_v<N>, uint64_t, N>;

// Where each element of x goes in the result of a reduction.
int64_t place_of(const View& x, const std::vector<bool>& reduced, int64_t i) {
  int64_t place = 0, step = 1;
  for (size_t axis = x.shape.size(); axis-- > 0;) {
    const int64_t at = i % x.shape[axis];
    i /= x.shape[axis];
    if (reduced[axis]) continue;
    place += at * step;
    step *= x.shape[axis];
  }
  return place;
}

std::vector<bool> reduced_axes(const oar_kernel_call* call) {
  const int ndim = call->inputs[0].tensor->ndim;
  const oar_value& axes = call->inputs[1];
  const bool all = axes.tag == OAR_TAG_NONE || axes.count == 0;
  std::vector<bool> reduced(static_cast<size_t>(ndim), all);
  for (int i = 0; !all && ndim > 0 && i < axes.count; ++i)
    reduced[static_cast<size_t>((axes.integers[i] + ndim) % ndim)] = true;
  return reduced;
}

template <class N>
void sum_into(const View& x, const std::vector<bool>& reduced, const View& out, N divisor) {
  std::vector<Sum<N>> sums(static_cast<size_t>(out.numel), 0);
  for (int64_t i = 0; i < x.numel; ++i)
    sums[static_cast<size_t>(place_of(x, reduced, i))] += static_cast<Sum<N>>(x.load<N>(i));
  for (int64_t i = 0; i < out.numel; ++i)
    out.store(i, static_cast<N>(sums[static_cast<size_t>(i)]) / divisor);
}

int32_t sum(oar_kernel_call* call) {
  return enqueue(call, [reduced = reduced_axes(call), x = input(call, 0), out = output(call)] {
    if (is_float(out.dtype))
      sum_into<double>(x, reduced, out, 1);
    else
      sum_into<int64_t>(x, reduced, out, 1);  // elements are converted, then summed
  });
}

int32_t mean(oar_kernel_call* call) {
  return enqueue(call, [reduced = reduced_axes(call), x = input(call, 0), out = output(call)] {
    sum_into<double>(x, reduced, out,
                     static_cast<double>(x.numel) / static_cast<double>(out.numel));
  });
}

template <class N>
void largest_into(const View& x, const std::vector<bool>& reduced, const View& out) {
  std::vector<N> found(static_cast<size_t>(out.numel));
  std::vector<bool> seen(found.size(), false);
  for (int64_t i = 0; i < x.numel; ++i) {
    const auto at = static_cast<size_t>(place_of(x, reduced, i));
    const N value = x.load<N>(i);
    if (!seen[at] || value > found[at] || value != value) found[at] = value;
    seen[at] = true;
  }
  for (int64_t i = 0; i < out.numel; ++i) out.store(i, found[static_cast<size_t>(i)]);
}

int32_t largest(oar_kernel_call* call) {
  return enqueue(call, [reduced = reduced_axes(call), x = input(call, 0), out = output(call)] {
    if (is_float(x.dtype))
      largest_into<double>(x, reduced, out);
    else
      largest_into<int64_t>(x, reduced, out);
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

// A plan for products: the function for the dtype. The queue shares it, so it lives as long as work needs it.
using Multiply = void (*)(const View&, const View&, const View&);
struct Product {
  Multiply multiply;
};
using SharedProduct = std::shared_ptr<const Product>;
std::atomic<int64_t> g_live_plans{0};

int32_t prepare_product(const oar_kernel_call* call, oar_plan** plan) {
  const bool floats = is_float(call->inputs[0].tensor->dtype);
  *plan = reinterpret_cast<oar_plan*>(new SharedProduct(std::make_shared<const Product>(
      Product{floats ? multiply_matrices<double> : multiply_matrices<int64_t>})));
  ++g_live_plans;
  return OAR_OK;
}
void destroy_product(void*, oar_plan* plan) {
  delete reinterpret_cast<SharedProduct*>(plan);
  --g_live_plans;
}
int32_t matmul_core(oar_kernel_call* call) {
  return enqueue(call, [product = *reinterpret_cast<SharedProduct*>(call->plan), x = input(call, 0),
                        y = input(call, 1), out = output(call)] { product->multiply(x, y, out); });
}

// Numbers in [min, max): of the host's random stream, one for each element.
int32_t uniform(oar_kernel_call* call) {
  uint64_t seed = 0, offset = 0;
  call->api->next_random(call, static_cast<uint64_t>(call->outputs[0]->numel), &seed, &offset);
  const double low = call->inputs[2].real, high = call->inputs[3].real;
  return enqueue(call, [=, out = output(call)] {
    for (int64_t i = 0; i < out.numel; ++i) {
      uint64_t bits = (seed + 4 * offset + static_cast<uint64_t>(i)) * 0x9E3779B97F4A7C15u;
      bits = (bits ^ bits >> 32) * 0xD6E8FEB86659FD93u;
      out.store(i, low + (high - low) * static_cast<double>(bits >> 11) * 0x1p-53);
    }
  });
}

const oar_kernel kKernels[] = {
    {"add", 1, "async:plain", accepts_function, binary, &kAdd},
    {"logical_and", 1, "async:plain", accepts_function, binary, &kLogicalAnd},
    {"subtract", 1, "async:plain", accepts_function, binary, &kSubtract},
    {"multiply", 1, "async:plain", accepts_function, binary, &kMultiply},
    {"divide", 1, "async:plain", accepts_function, binary, &kDivide},
    {"pow", 1, "async:plain", accepts_function, binary, &kPow},
    {"maximum", 1, "async:plain", accepts_function, binary, &kMaximum},
    {"minimum", 1, "async:plain", accepts_function, binary, &kMinimum},
    {"equal", 1, "async:plain", accepts_function, binary, &kEqual},
    {"not_equal", 1, "async:plain", accepts_function, binary, &kNotEqual},
    {"less_than", 1, "async:plain", accepts_function, binary, &kLess},
    {"less_equal", 1, "async:plain", accepts_function, binary, &kLessEqual},
    {"greater_than", 1, "async:plain", accepts_function, binary, &kGreater},
    {"greater_equal", 1, "async:plain", accepts_function, binary, &kGreaterEqual},
    {"relu_grad", 1, "async:plain", accepts_function, binary, &kReluGrad},
    {"exp", 1, "async:plain", accepts_function, unary, &kExp},
    {"log", 1, "async:plain", accepts_function, unary, &kLog},
    {"sqrt", 1, "async:plain", accepts_function, unary, &kSqrt},
    {"tanh", 1, "async:plain", accepts_function, unary, &kTanh},
    {"sin", 1, "async:plain", accepts_function, unary, &kSin},
    {"cos", 1, "async:plain", accepts_function, unary, &kCos},
    {"neg", 1, "async:plain", accepts_function, unary, &kNeg},
    {"relu", 1, "async:plain", accepts_function, unary, &kRelu},
    {"where", 1, "async:plain", accepts, where},
    {"assign", 1, "async:plain", accepts, assign},
    {"cast", 1, "async:plain", accepts, assign},
    {"copy_into", 1, "async:plain", accepts, copy_into},
    {"full", 1, "async:plain", accepts, full},
    {"sum", 1, "async:plain", accepts, sum},
    {"mean", 1, "async:plain", accepts_floats, mean},
    {"max", 1, "async:plain", accepts, largest},
    {"matmul_core", 1, "async:plain", accepts, matmul_core, nullptr, prepare_product,
     destroy_product},
    {"uniform", 1, "async:plain", accepts, uniform},
};

const char* supports(const char* op, uint32_t version) {
  for (const oar_kernel& kernel : kKernels)
    if (std::strcmp(kernel.op, op) == 0 && kernel.op_version == version) return nullptr;
  return "the test device knows some thirty ops only";
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

int64_t oar_async_live_plans(void) { return g_live_plans; }
int64_t oar_async_unknown_streams(void) { return g_unknown_streams; }
int64_t oar_async_peer_copies(void) { return g_peer_copies; }

const oar_device_api* oar_device_init(const oar_host_api* host, const char** why) {
  static oar_device_api device{};
  if (host->abi_version != OAR_ABI_VERSION) {
    *why = "the host has another version of the device interface";
    return nullptr;
  }
  device.struct_size = sizeof(device);
  device.abi_version = OAR_ABI_VERSION;
  device.type_name = "async";
  device.device_count = [] { return int32_t{kDevices}; };
  device.query = query;
  device.allocate = allocate;
  device.free = release;
  device.copy = copy;
  device.copy_peer = copy_peer;
  device.stream_create = stream_create;
  device.stream_destroy = stream_destroy;
  device.stream_synchronize = stream_synchronize;
  device.stream_take_error = stream_take_error;
  device.event_create = event_create;
  device.event_destroy = event_destroy;
  device.event_record = event_record;
  device.event_query = event_query;
  device.event_wait = event_wait;
  device.supports = supports;
  device.kernels = kKernels;
  device.kernel_count = static_cast<int32_t>(sizeof(kKernels) / sizeof(kKernels[0]));
  device.kernel_size = sizeof(oar_kernel);
  return &device;
}

}  // extern "C"
