// Pooling over windows of image planes, and the reverse ways.
#include <limits>

#include "oar/backend/cpu/compact.h"
#include "oar/backend/cpu/kernels.h"

namespace oar::cpu {
namespace {

// A window along one axis, cut off at the image; `extent` counts padding too.
struct Span {
  int64_t begin, end, extent;
};
using Spans = SmallVector<Span, 32>;

Spans sliding(int64_t size, int64_t count, int64_t window, int64_t stride, int64_t before,
              int64_t after) {
  Spans spans;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = i * stride - before;
    const int64_t stop = std::min(start + window, size + after);
    const int64_t begin = std::clamp<int64_t>(start, 0, size);
    spans.push_back({begin, std::clamp(stop, begin, size), stop - start});
  }
  return spans;
}

Spans adaptive(int64_t size, int64_t count) {
  Spans spans;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * size / count, end = ((i + 1) * size + count - 1) / count;
    spans.push_back({begin, end, end - begin});
  }
  return spans;
}

struct Windows {
  Spans rows, columns;
  int64_t planes, height, width;  // of the image

  int64_t image() const { return height * width; }
  int64_t count() const { return static_cast<int64_t>(rows.size() * columns.size()); }
  // body(plane) over planes in parallel.
  template <class Body>
  void for_each_plane(Body&& body) const {
    const int64_t work = std::max<int64_t>(1, std::max(image(), count()));
    parallel_for(0, planes, std::max<int64_t>(1, kGrain / 4 / work),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t p = begin; p < end; ++p) body(p);
                 });
  }
  // body(index of the result, row span, column span).
  template <class Body>
  void for_each(Body&& body) const {
    int64_t index = 0;
    for (const Span& y : rows)
      for (const Span& x : columns) body(index++, y, x);
  }
};

// Arguments from `first` on: kernel_size, stride, padding.
Windows sliding_windows(const KernelCall& call, int first, const oar_tensor& image,
                        const oar_tensor& out) {
  const Ints window = call.arg(first).as_ints(), stride = call.arg(first + 1).as_ints();
  const Ints padding = call.arg(first + 2).as_ints();
  return {sliding(image.shape[2], out.shape[2], window[0], stride[0], padding[0], padding[1]),
          sliding(image.shape[3], out.shape[3], window[1], stride[1], padding[2], padding[3]),
          image.shape[0] * image.shape[1], image.shape[2], image.shape[3]};
}

Windows adaptive_windows(const oar_tensor& image, const oar_tensor& out) {
  return {adaptive(image.shape[2], out.shape[2]), adaptive(image.shape[3], out.shape[3]),
          image.shape[0] * image.shape[1], image.shape[2], image.shape[3]};
}

// The lowest finite value: what a window without pixels answers, as in Paddle.
template <class T>
compute_t<T> lowest() {
  if constexpr (std::is_same_v<T, float16>)
    return -65504.0f;
  else if constexpr (std::is_same_v<T, bfloat16>)
    return -0x1.fep127f;
  else if constexpr (std::is_same_v<T, float8_e4m3fn>)
    return -448.0f;
  else if constexpr (std::is_same_v<T, float8_e5m2>)
    return -57344.0f;
  else
    return std::numeric_limits<T>::lowest();
}

// The largest elements of kCount windows of one size, side by side in a row, and their places in the
// plane. NaN counts as larger than anything. There are no branches, since which element wins cannot be
// predicted, and several windows, since each is a chain of comparisons.
template <int kCount, class T>
void max_windows(const T* plane, int64_t width, const Span& y, const Span* x, T* values,
                 int32_t* places) {
  using C = compute_t<T>;
  C best[kCount];
  int32_t at[kCount];
  for (int i = 0; i < kCount; ++i) {
    at[i] = static_cast<int32_t>(y.begin * width + x[i].begin);
    best[i] = static_cast<C>(plane[at[i]]);
  }
  const auto columns = static_cast<int32_t>(x[0].end - x[0].begin);
  for (int64_t r = y.begin; r < y.end; ++r)
    for (int32_t c = 0; c < columns; ++c)
      for (int i = 0; i < kCount; ++i) {
        const auto place = static_cast<int32_t>(r * width + x[i].begin) + c;
        const C v = static_cast<C>(plane[place]);
        const bool better =
            static_cast<int>(!(v <= best[i])) & static_cast<int>(best[i] == best[i]);
        best[i] = better ? v : best[i];
        at[i] = better ? place : at[i];
      }
  for (int i = 0; i < kCount; ++i) {
    values[i] = static_cast<T>(best[i]);
    places[i] = at[i];
  }
}

// One row of the result. A window that lies wholly in the padding has no place: -1.
template <class T>
void max_row(const T* plane, int64_t width, const Span& y, const Spans& x, T* values,
             int32_t* places) {
  constexpr size_t kSide = 4;
  const auto size = [&](size_t i) { return x[i].end - x[i].begin; };
  for (size_t i = 0; i < x.size();) {
    const bool alike = i + kSide <= x.size() && size(i) == size(i + 1) && size(i) == size(i + 2) &&
                       size(i) == size(i + 3);
    if (y.begin == y.end || size(i) == 0) {
      values[i] = static_cast<T>(lowest<T>());
      places[i++] = -1;
    } else if (alike) {
      max_windows<kSide>(plane, width, y, &x[i], values + i, places + i);
      i += kSide;
    } else {
      max_windows<1>(plane, width, y, &x[i], values + i, places + i);
      ++i;
    }
  }
}

void max_pool(KernelCall& call, const Windows& windows) {
  user_check(windows.image() <= std::numeric_limits<int32_t>::max(), ErrorKind::InvalidArgument,
             "an image of {} x {} has more pixels than its mask can number.", windows.height,
             windows.width);
  auto* mask = static_cast<int32_t*>(call.out(1).data);
  visit<kIntegers | kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Copied<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out(0).data);
    windows.for_each_plane([&](int64_t p) {
      const T* plane = x.data() + p * windows.image();
      const auto columns = static_cast<int64_t>(windows.columns.size());
      int64_t at = p * windows.count();
      for (const Span& y : windows.rows) {
        max_row(plane, windows.width, y, windows.columns, out + at, mask + at);
        at += columns;
      }
    });
  });
}

void max_pool2d_with_index(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool(call, sliding_windows(call, 1, call.in(0), call.out()));
}
void adaptive_max_pool2d_with_index(KernelCall& call) {
  if (call.out().numel == 0) return;
  max_pool(call, adaptive_windows(call.in(0), call.out()));
}

// body(plane, place in the plane, place in the mask) for every entry of the mask that is not -1.
template <class Body>
void for_each_place(const oar_tensor& mask, const int32_t* places, int64_t pixels, Body&& body) {
  const int64_t planes = mask.shape[0] * mask.shape[1];
  const int64_t count = planes == 0 ? 0 : mask.numel / planes;
  parallel_for(0, planes, std::max<int64_t>(1, kGrain / std::max<int64_t>(count, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = begin; p < end; ++p)
                   for (int64_t i = p * count; i < (p + 1) * count; ++i) {
                     if (places[i] == -1) continue;
                     user_check(places[i] >= 0 && places[i] < pixels, ErrorKind::OutOfRange,
                                "the mask names pixel {} of a plane with {} pixels.", places[i],
                                pixels);
                     body(p, places[i], i);
                   }
               });
}

void max_pool2d_scatter(KernelCall& call) {
  const Copied<int32_t> mask(call.in(1));
  const oar_tensor& out = call.out();
  const int64_t pixels = out.shape[2] * out.shape[3];
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    std::fill(result.data(), result.data() + out.numel, compute_t<T>(0));
    for_each_place(call.in(1), mask.data(), pixels, [&](int64_t plane, int64_t pixel, int64_t i) {
      compute_t<T>& to = result.data()[plane * pixels + pixel];
      to = static_cast<compute_t<T>>(to + grad.data()[i]);
    });
    result.finish();
  });
}

void max_pool2d_gather(KernelCall& call) {
  const Copied<int32_t> mask(call.in(1));
  const int64_t pixels = call.in(0).shape[2] * call.in(0).shape[3];
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Copied<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    std::fill(out, out + call.out().numel, T(0));
    for_each_place(call.in(1), mask.data(), pixels, [&](int64_t plane, int64_t pixel, int64_t i) {
      out[i] = x.data()[plane * pixels + pixel];
    });
  });
}

// What a window's sum is divided by: its pixels, or its pixels and the padding.
template <class R>
R divisor(const Span& y, const Span& x, bool exclusive) {
  return static_cast<R>(exclusive ? (y.end - y.begin) * (x.end - x.begin) : y.extent * x.extent);
}

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

void average(KernelCall& call, const Windows& windows, bool exclusive) {
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> x(call.in(0));
    auto* out = static_cast<T*>(call.out().data);
    windows.for_each_plane([&](int64_t p) {
      const C* plane = x.data() + p * windows.image();
      windows.for_each([&](int64_t i, const Span& y, const Span& c) {
        C sum(0);
        for (int64_t r = y.begin; r < y.end; ++r) {
          C line(0);
          for (int64_t s = c.begin; s < c.end; ++s) line += plane[r * windows.width + s];
          sum += line;
        }
        out[p * windows.count() + i] =
            static_cast<T>(sum / divisor<typename RealOf<C>::type>(y, c, exclusive));
      });
    });
  });
}

// Every window's cotangent, divided, goes to each of its pixels.
void spread(KernelCall& call, const Windows& windows, bool exclusive) {
  visit<kFloats | kComplexes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Compact<T> grad(call.in(0));
    const Result<T> result(call.out());
    windows.for_each_plane([&](int64_t p) {
      C* plane = result.data() + p * windows.image();
      std::fill(plane, plane + windows.image(), C(0));
      windows.for_each([&](int64_t i, const Span& y, const Span& c) {
        if (y.begin == y.end || c.begin == c.end) return;
        const C share = grad.data()[p * windows.count() + i] /
                        divisor<typename RealOf<C>::type>(y, c, exclusive);
        for (int64_t r = y.begin; r < y.end; ++r)
          for (int64_t s = c.begin; s < c.end; ++s) plane[r * windows.width + s] += share;
      });
    });
    result.finish();
  });
}

void avg_pool2d_core(KernelCall& call) {
  if (call.out().numel == 0) return;
  average(call, sliding_windows(call, 1, call.in(0), call.out()), call.arg(5).as_bool());
}
void avg_pool2d_grad(KernelCall& call) {
  if (call.out().numel == 0) return;
  spread(call, sliding_windows(call, 2, call.out(), call.in(0)), call.arg(6).as_bool());
}
void adaptive_avg_pool2d_core(KernelCall& call) {
  if (call.out().numel == 0) return;
  average(call, adaptive_windows(call.in(0), call.out()), true);
}
void adaptive_avg_pool2d_grad(KernelCall& call) {
  if (call.out().numel == 0) return;
  spread(call, adaptive_windows(call.out(), call.in(0)), true);
}

}  // namespace

KernelList pool_kernels() {
  static const oar_kernel list[] = {
      {"max_pool2d_with_index", 1, "cpu:ref", nullptr, kernel_entry<max_pool2d_with_index>},
      {"adaptive_max_pool2d_with_index", 1, "cpu:ref", nullptr,
       kernel_entry<adaptive_max_pool2d_with_index>},
      {"max_pool2d_scatter", 1, "cpu:ref", nullptr, kernel_entry<max_pool2d_scatter>},
      {"max_pool2d_gather", 1, "cpu:ref", nullptr, kernel_entry<max_pool2d_gather>},
      {"avg_pool2d_core", 1, "cpu:ref", nullptr, kernel_entry<avg_pool2d_core>},
      {"avg_pool2d_grad", 1, "cpu:ref", nullptr, kernel_entry<avg_pool2d_grad>},
      {"adaptive_avg_pool2d_core", 1, "cpu:ref", nullptr, kernel_entry<adaptive_avg_pool2d_core>},
      {"adaptive_avg_pool2d_grad", 1, "cpu:ref", nullptr, kernel_entry<adaptive_avg_pool2d_grad>},
  };
  return list;
}

}  // namespace oar::cpu
