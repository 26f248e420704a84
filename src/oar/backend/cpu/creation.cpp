// Filling and copying.
#include "oar/backend/cpu/copy.h"
#include "oar/backend/cpu/kernels.h"
#include "oar/backend/cpu/loops.h"

namespace oar::cpu {
namespace {

void full(KernelCall& call) {
  oar_tensor& out = call.out();
  const Scalar value = call.arg(1).as_scalar();
  visit_dtype(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T element = value.kind() <= Scalar::Int ? convert_element<T>(value.to_int())
                                                  : convert_element<T>(value.to_complex());
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, out.numel, kGrain,
                 [&](int64_t b, int64_t e) { std::fill(o + b, o + e, element); });
  });
}

void range(KernelCall& call) {
  oar_tensor& out = call.out();
  const Scalar start = call.arg(0).as_scalar(), step = call.arg(2).as_scalar();
  const bool integral = start.kind() <= Scalar::Int && step.kind() <= Scalar::Int;
  visit_dtype(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, out.numel, kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        o[i] =
            integral
                ? convert_element<T>(start.to_int() + i * step.to_int())
                : convert_element<T>(start.to_double() + static_cast<double>(i) * step.to_double());
    });
  });
}

void convert(const oar_tensor& out, const oar_tensor& in) {
  visit_dtype(static_cast<DType>(out.dtype), [&](auto to) {
    visit_dtype(static_cast<DType>(in.dtype), [&](auto from) {
      using To = typename decltype(to)::type;
      using From = typename decltype(from)::type;
      StridedLoop<2>({&out, &in}).run([](const auto& p, const auto& s, int64_t n) {
        if (s[0] == sizeof(To) && s[1] == sizeof(From)) {
          auto* o = reinterpret_cast<To*>(p[0]);
          const auto* a = reinterpret_cast<const From*>(p[1]);
          for (int64_t i = 0; i < n; ++i) o[i] = convert_element<To>(a[i]);
          return;
        }
        for (int64_t i = 0; i < n; ++i)
          *reinterpret_cast<To*>(p[0] + i * s[0]) =
              convert_element<To>(*reinterpret_cast<const From*>(p[1] + i * s[1]));
      });
    });
  });
}

// Only the element's width matters for a copy.
template <class Word>
void copy_words(const oar_tensor& out, const oar_tensor& in) {
  StridedLoop<2>({&out, &in}).run([](const auto& p, const auto& s, int64_t n) {
    if (s[0] == sizeof(Word) && s[1] == sizeof(Word)) {
      std::memcpy(p[0], p[1], static_cast<size_t>(n) * sizeof(Word));
      return;
    }
    for (int64_t i = 0; i < n; ++i) std::memcpy(p[0] + i * s[0], p[1] + i * s[1], sizeof(Word));
  });
}

void copy(const oar_tensor& out, const oar_tensor& in) {
  struct Wide {
    uint64_t words[2];
  };
  switch (size_of(static_cast<DType>(in.dtype))) {
    case 1:
      return copy_words<uint8_t>(out, in);
    case 2:
      return copy_words<uint16_t>(out, in);
    case 4:
      return copy_words<uint32_t>(out, in);
    case 8:
      return copy_words<uint64_t>(out, in);
    default:
      return copy_words<Wide>(out, in);
  }
}

void cast(KernelCall& call) {
  if (call.out().dtype == call.in(0).dtype) return copy(call.out(), call.in(0));
  convert(call.out(), call.in(0));
}

void assign(KernelCall& call) { copy(call.out(), call.in(0)); }

void copy_into(KernelCall& call) {
  if (call.in(0).dtype == call.in(1).dtype) return copy(call.out(), call.in(1));
  convert(call.out(), call.in(1));
}

}  // namespace

void copy_elements(const oar_tensor& to, const oar_tensor& from) {
  if (to.dtype == from.dtype) return copy(to, from);
  convert(to, from);
}

KernelList creation_kernels() {
  static const oar_kernel list[] = {
      {"full", 1, "cpu:ref", nullptr, kernel_entry<full>},
      {"range", 1, "cpu:ref", nullptr, kernel_entry<range>},
      {"cast", 1, "cpu:ref", nullptr, kernel_entry<cast>},
      {"assign", 1, "cpu:ref", nullptr, kernel_entry<assign>},
      {"copy_into", 1, "cpu:ref", nullptr, kernel_entry<copy_into>},
  };
  return list;
}

}  // namespace oar::cpu
