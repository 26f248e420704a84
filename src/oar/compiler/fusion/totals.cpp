#include "oar/compiler/fusion/totals.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "oar/base/error.h"
#include "oar/tensor/element.h"

namespace oar::fusion {
namespace {

template <class Work>
void visit_type(DType type, Work work) {
  if (type == DType::Float32) return work(float{});
  if (type == DType::Float64) return work(double{});
  internal_check(type == DType::Int64, "Totals of {} are not joined.", name_of(type));
  work(int64_t{});
}

template <class T>
T neutral(ScalarFn joins) {
  using Limits = std::numeric_limits<T>;
  if (joins == ScalarFn::Add) return T(0);
  if (joins == ScalarFn::Multiply) return T(1);
  if (std::is_floating_point_v<T>)
    return joins == ScalarFn::Min ? Limits::infinity() : -Limits::infinity();
  return joins == ScalarFn::Min ? Limits::max() : Limits::lowest();
}

// Integers wrap, a NaN stays, and of two zeros the negative one is the smaller, as in the kernel.
template <class T>
T join_two(ScalarFn joins, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    if (joins == ScalarFn::Add) return static_cast<T>(x + y);
    if (joins == ScalarFn::Multiply) return static_cast<T>(x * y);
    return joins == ScalarFn::Min ? std::min(a, b) : std::max(a, b);
  } else {
    if (joins == ScalarFn::Add) return a + b;
    if (joins == ScalarFn::Multiply) return a * b;
    if (a != a) return a;
    if (a == b) return __builtin_signbit(a) == (joins == ScalarFn::Min) ? a : b;
    return (joins == ScalarFn::Min ? a < b : a > b) ? a : b;
  }
}

}  // namespace

TotalBuffers::TotalBuffers(const std::vector<TotalOutput>& totals,
                           const std::vector<int64_t>& sizes, const Kernel& kernel) {
  for (size_t t = 0; t < totals.size(); ++t) {
    const Port& port = kernel.outputs[totals[t].output];
    Buffer& made = buffers_.emplace_back();
    made.total = totals[t];
    made.joins = port.joins;
    made.type = port.dtype;
    made.size = sizes[t];
    made.bytes.resize(static_cast<size_t>(sizes[t]) * size_of(port.dtype));
  }
  clear();
}

int64_t TotalBuffers::largest() const {
  int64_t made = 1;
  for (const Buffer& buffer : buffers_) made = std::max(made, buffer.size);
  return made;
}

void TotalBuffers::clear() {
  for (Buffer& buffer : buffers_)
    visit_type(buffer.type, [&]<class T>(T) {
      std::fill_n(reinterpret_cast<T*>(buffer.bytes.data()), buffer.size, neutral<T>(buffer.joins));
    });
}

void TotalBuffers::join(const TotalBuffers& other) {
  for (size_t t = 0; t < buffers_.size(); ++t)
    visit_type(buffers_[t].type, [&]<class T>(T) {
      Buffer& buffer = buffers_[t];
      auto* const mine = reinterpret_cast<T*>(buffer.bytes.data());
      const auto* const more = reinterpret_cast<const T*>(other.buffers_[t].bytes.data());
      if (std::is_floating_point_v<T> &&
          buffer.joins == ScalarFn::Add)  // mostly; a loop of vectors
        for (int64_t i = 0; i < buffer.size; ++i) mine[i] += more[i];
      else
        for (int64_t i = 0; i < buffer.size; ++i)
          mine[i] = join_two(buffer.joins, mine[i], more[i]);
    });
}

void TotalBuffers::redirect(SmallVector<char*, 12>& ports, size_t inputs) {
  for (Buffer& buffer : buffers_) ports[inputs + buffer.total.output] = buffer.bytes.data();
}

void TotalBuffers::finish(const SmallVector<char*, 12>& ports, size_t inputs) const {
  for (const Buffer& buffer : buffers_)
    visit_type(buffer.type, [&]<class T>(T) {
      const TotalOutput& total = buffer.total;
      const auto* const all = reinterpret_cast<const T*>(buffer.bytes.data());
      char* const out = ports[inputs + total.output];
      const size_t bytes = size_of(total.dtype);
      if (total.dtype == buffer.type && !total.is_mean) {
        std::memcpy(out, all, buffer.bytes.size());
        return;
      }
      for (int64_t i = 0; i < buffer.size; ++i) {
        const T value = total.is_mean ? all[i] / static_cast<T>(total.count) : all[i];
        char* const at = out + static_cast<size_t>(i) * bytes;
        if constexpr (std::is_integral_v<T>)
          store_integer(at, total.dtype, value);
        else
          store_element(at, total.dtype, value);
      }
    });
}

}  // namespace oar::fusion
