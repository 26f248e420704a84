// Loops that return a bool, conversions, and `where`.
#include "oar/backend/cpu/simd/loops.h"

namespace oar::cpu::simd {
namespace {

// As wide as the operand, so that a vector of operands gives a vector of results.
template <int kBytes>
struct Unsigned;
template <>
struct Unsigned<1> {
  using type = uint8_t;
};
template <>
struct Unsigned<4> {
  using type = uint32_t;
};
template <>
struct Unsigned<8> {
  using type = uint64_t;
};
template <class T>
using Answer = typename Unsigned<sizeof(T)>::type;

#define OAR_SIMD_QUESTION_2(Functor, question)                \
  template <class T>                                          \
  struct Functor {                                            \
    Answer<T> operator()(T a, T b) const { return question; } \
  };
OAR_SIMD_QUESTION_2(Equal, a == b)
OAR_SIMD_QUESTION_2(NotEqual, a != b)
OAR_SIMD_QUESTION_2(Less, a < b)
OAR_SIMD_QUESTION_2(LessEqual, a <= b)
OAR_SIMD_QUESTION_2(Greater, a > b)
OAR_SIMD_QUESTION_2(GreaterEqual, a >= b)
OAR_SIMD_QUESTION_2(LogicalAnd, (a != 0) & (b != 0))
OAR_SIMD_QUESTION_2(LogicalOr, (a != 0) | (b != 0))
OAR_SIMD_QUESTION_2(LogicalXor, (a != 0) != (b != 0))
#undef OAR_SIMD_QUESTION_2

#define OAR_SIMD_QUESTION_1(Functor, question)           \
  template <class T>                                     \
  struct Functor {                                       \
    Answer<T> operator()(T a) const { return question; } \
  };
OAR_SIMD_QUESTION_1(IsNan, a != a)
OAR_SIMD_QUESTION_1(IsInf, magnitude(a) == kInfinity<T>)
OAR_SIMD_QUESTION_1(IsFinite, magnitude(a) < kInfinity<T>)
OAR_SIMD_QUESTION_1(LogicalNot, a == 0)
#undef OAR_SIMD_QUESTION_1

template <class To, class From>
struct Convert {
  To operator()(From v) const { return static_cast<To>(v); }
};
template <class From>
struct ConvertToBool {
  Answer<From> operator()(From v) const { return v != 0; }
};
// Not from double, which would be rounded twice by way of float: that conversion to 16-bit floats is
// elsewhere.
template <Type kTo, class To, Type kFrom, class From>
constexpr Function conversion() {
  using FromCompute = ComputeOf<From>;
  using ToCompute = ComputeOf<To>;
  if constexpr ((sizeof(To) == 2 && sizeof(From) == 8) ||
                ((kHere >> kTo & kHere >> kFrom) & 1) == 0)
    return nullptr;
  else if constexpr (sizeof(To) == 1)
    return run1<ConvertToBool<FromCompute>, Truth, From>;
  else
    return run1<Convert<ToCompute, FromCompute>, To, From>;
}
#define OAR_SIMD_CONVERSIONS(kFrom, From)                                                    \
  {conversion<kFloat32, float, kFrom, From>(),  conversion<kFloat64, double, kFrom, From>(), \
   conversion<kBFloat16, Brain, kFrom, From>(), conversion<kFloat16, Half, kFrom, From>(),   \
   conversion<kInt32, int32_t, kFrom, From>(),  conversion<kInt64, int64_t, kFrom, From>(),  \
   conversion<kBool, Truth, kFrom, From>()}

template <class Word>
struct Select {
  Word operator()(uint8_t condition, Word a, Word b) const { return condition != 0 ? a : b; }
};

}  // namespace

namespace OAR_SIMD_SET {
const Function kQuestion[][kTypes] = {OAR_SIMD_QUESTION(OAR_SIMD_ASKING_ROW, )};
const Function kConvert[kTypes][kTypes] = {
    OAR_SIMD_CONVERSIONS(kFloat32, float),  OAR_SIMD_CONVERSIONS(kFloat64, double),
    OAR_SIMD_CONVERSIONS(kBFloat16, Brain), OAR_SIMD_CONVERSIONS(kFloat16, Half),
    OAR_SIMD_CONVERSIONS(kInt32, int32_t),  OAR_SIMD_CONVERSIONS(kInt64, int64_t),
    OAR_SIMD_CONVERSIONS(kBool, Truth)};
const Function kSelect[4] = {run3<Select<uint8_t>, uint8_t, uint8_t, uint8_t, uint8_t>,
                             run3<Select<uint16_t>, uint16_t, uint8_t, uint16_t, uint16_t>,
                             run3<Select<uint32_t>, uint32_t, uint8_t, uint32_t, uint32_t>,
                             run3<Select<uint64_t>, uint64_t, uint8_t, uint64_t, uint64_t>};
}  // namespace OAR_SIMD_SET

}  // namespace oar::cpu::simd
