// The generic strided loop that most kernels use: any rank, any strides, all operands of one
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

// Below this many elements another thread costs more than it gains.
inline constexpr int64_t kGrain = 32768;

template <size_t N>
class StridedLoop {
 public:
  using Pointers = std::array<char*, N>;
  using Strides = std::array<int64_t, N>;
  // Operands share the first one's shape. Strides are kept in bytes.
  explicit StridedLoop(const std::array<const oar_tensor*, N>& tensors);
  // body(pointers, byte strides, count) over runs along the innermost axis. The walk is compiled once
  // for each N, not for each body: what a kernel adds is its inner loop.
  void run(FunctionRef<void(const Pointers&, const Strides&, int64_t)> body,
           int64_t grain = kGrain) const;
  // The same with a separate body for each piece of work: make() creates it, its finish() ends it. It
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
  using Rows = void(const Pointers&, const Strides&, int64_t, const Strides&, int64_t);
  void push(int64_t size, const Strides& stride);
  void range(int64_t begin, int64_t end, FunctionRef<Rows> body) const;

  static constexpr size_t kMaxRank = 32;
  size_t rank_ = 0;
  int64_t total_ = 0;
  Pointers data_{};
  std::array<int64_t, kMaxRank> shape_;
  std::array<Strides, kMaxRank> strides_;
};

extern template class StridedLoop<1>;
extern template class StridedLoop<2>;
extern template class StridedLoop<3>;
extern template class StridedLoop<4>;
extern template class StridedLoop<5>;

// visit_dtype for a subset of the types; the others are rejected.
enum Types : unsigned {
  kBools = 1,
  kIntegers = 2,
  kFloats = 4,
  kComplexes = 8,
  kNumbers = 14,
  kAllTypes = 15,
  kStored = 16  // uint32, uint64: nothing computes in them
};
template <unsigned kTypes, class F>
void visit(DType dtype, F&& body) {
  visit_dtype(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr unsigned kind = std::is_same_v<T, bool>                              ? kBools
                              : is_complex_type<T>                                 ? kComplexes
                              : (std::is_unsigned_v<T> && sizeof(T) >= 4)          ? kStored
                              : (is_small_float<T> || std::is_floating_point_v<T>) ? kFloats
                                                                                   : kIntegers;
    if constexpr ((kTypes & kind) != 0)
      body(tag);
    else
      fail(ErrorKind::InvalidType, "the CPU kernel does not take {}.", name_of(dtype));
  });
}

// The same in fewer types: integers of any width come as int64, floats below 32 bits as float. It is
// for kernels that convert what they read and write (compact.h, apply.h), and keeps what is compiled
// small: 5 types instead of 14.
template <unsigned kTypes, class F>
void visit_wide(DType dtype, F&& body) {
  const auto with = [&](auto kinds, auto tag) {
    if constexpr ((kTypes & decltype(kinds)::value) != 0)
      body(tag);
    else
      fail(ErrorKind::InvalidType, "the CPU kernel does not take {}.", name_of(dtype));
  };
  using Floats = std::integral_constant<unsigned, kFloats>;
  using Complexes = std::integral_constant<unsigned, kComplexes>;
  switch (dtype) {
    case DType::Float64:
      return with(Floats{}, TypeTag<double>{});
    case DType::Complex64:
      return with(Complexes{}, TypeTag<std::complex<float>>{});
    case DType::Complex128:
      return with(Complexes{}, TypeTag<std::complex<double>>{});
    case DType::Bool:
      return with(std::integral_constant<unsigned, kBools>{}, TypeTag<int64_t>{});
    default:
      if (is_floating(dtype)) return with(Floats{}, TypeTag<float>{});
      return with(std::integral_constant<unsigned, kIntegers>{}, TypeTag<int64_t>{});
  }
}

// visit_wide, but int32 and uint8 come as themselves: for loops that are bound by memory, not by arithmetic.
template <unsigned kTypes, class F>
void visit_common(DType dtype, F&& body) {
  if constexpr ((kTypes & kIntegers) != 0) {
    if (dtype == DType::Int32) return body(TypeTag<int32_t>{});
    if (dtype == DType::UInt8) return body(TypeTag<uint8_t>{});
  }
  visit_wide<kTypes>(dtype, std::forward<F>(body));
}

using KernelList = std::span<const oar_kernel>;
// The entry of a kernel that only training calls: a deployed library leaves out its row, and with it its code. Files of which all
// kernels are like that are left out by CMake (OAR_TRAINING_KERNELS).
template <void (*kFunction)(KernelCall&)>
#if defined(OAR_DEPLOY)
inline constexpr int32_t (*training_entry)(oar_kernel_call*) = nullptr;
#else
inline constexpr int32_t (*training_entry)(oar_kernel_call*) = kernel_entry<kFunction>;
#endif
// The name of kernels whose loops are compiled for several instruction sets: after the one that was
// chosen on this machine. cpu.cpp has the other names.
const char* vector_name();

}  // namespace oar::cpu
