// The generic strided loop that most kernels stand on: any rank, any strides, all operands of one
// shape. Axes are merged where memory allows, so that the usual contiguous case is one flat run.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "oar/base/parallel.h"
#include "oar/device/device.h"
#include "oar/tensor/element.h"

namespace oar::cpu {

// Below this many elements another thread costs more than it brings.
inline constexpr int64_t kGrain = 32768;

template <size_t N>
class StridedLoop {
 public:
  using Pointers = std::array<char*, N>;
  using Strides = std::array<int64_t, N>;
  // Operands share the first one's shape. Strides are kept in bytes.
  explicit StridedLoop(const std::array<const oar_tensor*, N>& tensors) {
    const oar_tensor& first = *tensors[0];
    total_ = first.numel;
    for (size_t k = 0; k < N; ++k) data_[k] = static_cast<char*>(tensors[k]->data);
    for (int axis = 0; axis < first.ndim; ++axis) {
      const int64_t size = first.shape[axis];
      if (size == 1) continue;
      Strides stride;
      for (size_t k = 0; k < N; ++k)
        stride[k] = tensors[k]->strides[axis] *
                    static_cast<int64_t>(size_of(static_cast<DType>(tensors[k]->dtype)));
      push(size, stride);
    }
    if (rank_ == 0) {
      push(1, Strides{});
    }
  }

  // body(pointers, byte strides, count) over runs along the innermost axis.
  template <class Body>
  void run(Body&& body, int64_t grain = kGrain) const {
    if (total_ == 0) return;
    const auto row_by_row = [&](Pointers p, const Strides& s, int64_t n, const Strides& across,
                                int64_t rows) {
      for (int64_t row = 0; row < rows; ++row) {
        body(std::as_const(p), s, n);
        for (size_t k = 0; k < N; ++k) p[k] += across[k];
      }
    };
    parallel_for(0, total_, grain,
                 [&](int64_t begin, int64_t end) { range(begin, end, row_by_row); });
  }
  // The same with a body of its own for each piece of work: make() gives it, its finish() ends it. It
  // takes several runs at once: body(pointers, byte strides, count, byte strides across, rows).
  template <class Make>
  void run_pieces(Make&& make, int64_t grain = kGrain) const {
    if (total_ == 0) return;
    parallel_for(0, total_, grain, [&](int64_t begin, int64_t end) {
      auto piece = make();
      range(begin, end, piece);
      piece.finish();
    });
  }
  int64_t size() const { return total_; }

 private:
  void push(int64_t size, const Strides& stride) {
    if (rank_ > 0) {  // does the previous axis simply continue this one?
      bool merges = true;
      for (size_t k = 0; k < N; ++k) merges &= strides_[rank_ - 1][k] == stride[k] * size;
      if (merges) {
        shape_[rank_ - 1] *= size;
        strides_[rank_ - 1] = stride;
        return;
      }
    }
    internal_check(rank_ < kMaxRank, "a tensor has more than {} axes", kMaxRank);
    shape_[rank_] = size;
    strides_[rank_++] = stride;
  }

  template <class Body>
  void range(int64_t begin, int64_t end, Body&& body) const {
    const size_t inner = rank_ - 1;
    const int64_t length = shape_[inner];
    const Strides across = inner > 0 ? strides_[inner - 1] : Strides{};
    std::array<int64_t, kMaxRank> index;
    int64_t rest = begin / length;
    for (size_t axis = inner; axis-- > 0;) {
      index[axis] = rest % shape_[axis];
      rest /= shape_[axis];
    }
    int64_t at = begin % length;
    while (begin < end) {
      Pointers p;
      for (size_t k = 0; k < N; ++k) {
        p[k] = data_[k] + at * strides_[inner][k];
        for (size_t axis = 0; axis < inner; ++axis) p[k] += index[axis] * strides_[axis][k];
      }
      const int64_t count = std::min(end - begin, length - at);
      const int64_t rows =
          count < length || inner == 0
              ? 1
              : std::min((end - begin) / length, shape_[inner - 1] - index[inner - 1]);
      body(p, strides_[inner], count, across, rows);
      begin += count * rows;
      at = 0;
      int64_t step = rows;
      for (size_t axis = inner; axis-- > 0; step = 1) {
        if ((index[axis] += step) < shape_[axis]) break;
        index[axis] = 0;
      }
    }
  }

  static constexpr size_t kMaxRank = 32;
  size_t rank_ = 0;
  int64_t total_ = 0;
  Pointers data_{};
  std::array<int64_t, kMaxRank> shape_;
  std::array<Strides, kMaxRank> strides_;
};

// out[i] = f(in[i]) with elements converted to their compute types.
template <class Out, class In, class F>
void map_unary(const oar_tensor& out, const oar_tensor& in, F f) {
  StridedLoop<2>({&out, &in}).run([&](const auto& p, const auto& s, int64_t n) {
    if (s[0] == sizeof(Out) && s[1] == sizeof(In)) {
      auto* o = reinterpret_cast<Out*>(p[0]);
      const auto* a = reinterpret_cast<const In*>(p[1]);
      for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(f(static_cast<compute_t<In>>(a[i])));
      return;
    }
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<Out*>(p[0] + i * s[0]) = static_cast<Out>(
          f(static_cast<compute_t<In>>(*reinterpret_cast<const In*>(p[1] + i * s[1]))));
  });
}

// out[i] = f(a[i], b[i]); a scalar operand (stride 0) is read once per run.
template <class Out, class In, class F>
void map_binary(const oar_tensor& out, const oar_tensor& x, const oar_tensor& y, F f) {
  using C = compute_t<In>;
  StridedLoop<3>({&out, &x, &y}).run([&](const auto& p, const auto& s, int64_t n) {
    auto* o = reinterpret_cast<Out*>(p[0]);
    const auto* a = reinterpret_cast<const In*>(p[1]);
    const auto* b = reinterpret_cast<const In*>(p[2]);
    constexpr int64_t kOut = sizeof(Out), kIn = sizeof(In);
    if (s[0] == kOut && s[1] == kIn && s[2] == kIn) {
      for (int64_t i = 0; i < n; ++i)
        o[i] = static_cast<Out>(f(static_cast<C>(a[i]), static_cast<C>(b[i])));
    } else if (s[0] == kOut && s[1] == kIn && s[2] == 0) {
      const C constant = static_cast<C>(*b);
      for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(f(static_cast<C>(a[i]), constant));
    } else if (s[0] == kOut && s[1] == 0 && s[2] == kIn) {
      const C constant = static_cast<C>(*a);
      for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(f(constant, static_cast<C>(b[i])));
    } else {
      for (int64_t i = 0; i < n; ++i)
        *reinterpret_cast<Out*>(p[0] + i * s[0]) =
            static_cast<Out>(f(static_cast<C>(*reinterpret_cast<const In*>(p[1] + i * s[1])),
                               static_cast<C>(*reinterpret_cast<const In*>(p[2] + i * s[2]))));
    }
  });
}

// visit_dtype for a subset: calls body with the type, or returns false.
enum Types : unsigned {
  kBools = 1,
  kIntegers = 2,
  kFloats = 4,
  kComplexes = 8,
  kNumbers = 14,
  kAllTypes = 15
};
template <unsigned kTypes, class F>
void visit(DType dtype, F&& body) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr unsigned kind = std::is_same_v<T, bool>                              ? kBools
                              : is_complex_type<T>                                 ? kComplexes
                              : (is_small_float<T> || std::is_floating_point_v<T>) ? kFloats
                                                                                   : kIntegers;
    if constexpr ((kTypes & kind) != 0)
      body(tag);
    else
      fail(ErrorKind::InvalidType, "the CPU kernel does not take {}.", name_of(dtype));
  });
}

using KernelList = std::span<const oar_kernel>;

}  // namespace oar::cpu
