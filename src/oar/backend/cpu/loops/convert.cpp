// Conversions of elements between any two dtypes. The usual ones are vectorised in simd/units/question.cpp.
#include "oar/backend/cpu/loops/compact.h"
#include "oar/tensor/element.h"

namespace oar::cpu {
namespace {

template <class To, class From>
void convert_run(const std::array<char*, 2>& p, const std::array<int64_t, 2>& s, int64_t n) {
  if (s[0] == sizeof(To) && s[1] == sizeof(From)) {
    auto* o = reinterpret_cast<To*>(p[0]);
    const auto* a = reinterpret_cast<const From*>(p[1]);
    for (int64_t i = 0; i < n; ++i) o[i] = convert_element<To>(a[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<To*>(p[0] + i * s[0]) =
        convert_element<To>(*reinterpret_cast<const From*>(p[1] + i * s[1]));
}

}  // namespace

ConvertRun conversion(DType to, DType from) {
  return visit_dtype(to, [&](auto to_tag) {
    return visit_dtype(from, [](auto from_tag) -> ConvertRun {
      return convert_run<typename decltype(to_tag)::type, typename decltype(from_tag)::type>;
    });
  });
}

}  // namespace oar::cpu
