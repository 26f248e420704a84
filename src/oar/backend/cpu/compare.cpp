// Comparison, predicates, logic, bits, and `where`.
#include <cmath>

#include "oar/backend/cpu/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kOrdered = kBools | kIntegers | kFloats;
constexpr unsigned kBits = kBools | kIntegers;

struct Equal {
  template <class T>
  bool operator()(T a, T b) const {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a != b;
  }
};
struct Less {
  template <class T>
  bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  bool operator()(T a, T b) const {
    return a >= b;
  }
};

struct IsNan {
  template <class T>
  bool operator()(T v) const {
    return v != v;
  }
};
struct IsInf {
  template <class T>
  bool operator()(T v) const {
    if constexpr (is_complex_type<T>)
      return std::isinf(v.real()) || std::isinf(v.imag());
    else if constexpr (std::is_integral_v<T>)
      return false;
    else
      return std::isinf(v);
  }
};
struct IsFinite {
  template <class T>
  bool operator()(T v) const {
    return !IsNan{}(v) && !IsInf{}(v);
  }
};

struct LogicalNot {
  template <class T>
  bool operator()(T v) const {
    return v == T(0);
  }
};
struct LogicalAnd {
  template <class T>
  bool operator()(T a, T b) const {
    return a != T(0) && b != T(0);
  }
};
struct LogicalOr {
  template <class T>
  bool operator()(T a, T b) const {
    return a != T(0) || b != T(0);
  }
};
struct LogicalXor {
  template <class T>
  bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};

struct BitwiseNot {
  template <class T>
  T operator()(T v) const {
    if constexpr (std::is_same_v<T, bool>)
      return !v;
    else
      return static_cast<T>(~v);
  }
};
struct BitwiseAnd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};

// Which of the two operands repeats one element along the run is known when the loop is compiled.
// Both are read before the choice, which is then no branch that could be mispredicted.
template <bool kWholeX, bool kWholeY, class Word>
void select_run(Word* out, const bool* condition, const Word* x, const Word* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const Word a = x[kWholeX ? i : 0], b = y[kWholeY ? i : 0];
    out[i] = condition[i] ? a : b;
  }
}

// Only the width of an element matters.
template <class Word>
void select(KernelCall& call) {
  StridedLoop<4>({&call.out(), &call.in(0), &call.in(1), &call.in(2)})
      .run([](const auto& p, const auto& s, int64_t n) {
        constexpr int64_t kWord = sizeof(Word);
        auto* o = reinterpret_cast<Word*>(p[0]);
        const auto* c = reinterpret_cast<const bool*>(p[1]);
        const auto* x = reinterpret_cast<const Word*>(p[2]);
        const auto* y = reinterpret_cast<const Word*>(p[3]);
        if (s[0] == kWord && s[1] == 1 && s[2] == kWord && s[3] == kWord)
          return select_run<true, true>(o, c, x, y, n);
        if (s[0] == kWord && s[1] == 1 && s[2] == kWord && s[3] == 0)
          return select_run<true, false>(o, c, x, y, n);
        if (s[0] == kWord && s[1] == 1 && s[2] == 0 && s[3] == kWord)
          return select_run<false, true>(o, c, x, y, n);
        for (int64_t i = 0; i < n; ++i)
          *reinterpret_cast<Word*>(p[0] + i * s[0]) =
              c[i * s[1]] ? *reinterpret_cast<const Word*>(p[2] + i * s[2])
                          : *reinterpret_cast<const Word*>(p[3] + i * s[3]);
      });
}

void where(KernelCall& call) {
  struct Wide {
    uint64_t words[2];
  };
  switch (size_of(call.dtype(1))) {
    case 1:
      return select<uint8_t>(call);
    case 2:
      return select<uint16_t>(call);
    case 4:
      return select<uint32_t>(call);
    case 8:
      return select<uint64_t>(call);
    default:
      return select<Wide>(call);
  }
}

}  // namespace

KernelList compare_kernels() {
  static const oar_kernel list[] = {
      {"equal", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kAllTypes, Equal>>},
      {"not_equal", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kAllTypes, NotEqual>>},
      {"less_than", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kOrdered, Less>>},
      {"less_equal", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kOrdered, LessEqual>>},
      {"greater_than", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kOrdered, Greater>>},
      {"greater_equal", 1, "cpu:ref", nullptr,
       kernel_entry<binary_question<kOrdered, GreaterEqual>>},
      {"isnan", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kAllTypes, IsNan>>},
      {"isinf", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kAllTypes, IsInf>>},
      {"isfinite", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kAllTypes, IsFinite>>},
      {"logical_not", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kAllTypes, LogicalNot>>},
      {"logical_and", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kAllTypes, LogicalAnd>>},
      {"logical_or", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kAllTypes, LogicalOr>>},
      {"logical_xor", 1, "cpu:ref", nullptr, kernel_entry<binary_question<kAllTypes, LogicalXor>>},
      {"bitwise_not", 1, "cpu:ref", nullptr, kernel_entry<unary<kBits, BitwiseNot>>},
      {"bitwise_and", 1, "cpu:ref", nullptr, kernel_entry<binary<kBits, BitwiseAnd>>},
      {"bitwise_or", 1, "cpu:ref", nullptr, kernel_entry<binary<kBits, BitwiseOr>>},
      {"bitwise_xor", 1, "cpu:ref", nullptr, kernel_entry<binary<kBits, BitwiseXor>>},
      {"where", 1, "cpu:ref", nullptr, kernel_entry<where>},
  };
  return list;
}

}  // namespace oar::cpu
