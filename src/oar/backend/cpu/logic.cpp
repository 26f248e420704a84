// Logic and bits.
#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kBits = kBools | kIntegers;

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
  int64_t operator()(int64_t v) const { return ~v; }
};

void bitwise_not(KernelCall& call) {
  if (is_bool(call.dtype())) return unary_question<kBools, LogicalNot>(call);
  unary<kIntegers, BitwiseNot>(call);
}

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

// A shift by as many bits as there are, or by a negative number, shifts everything out.
template <class T>
bool shifts_out(T by) {
  return by < 0 || by >= static_cast<T>(8 * sizeof(T));
}

struct ShiftLeft {
  template <class T>
  T operator()(T a, T by) const {
    using U = std::make_unsigned_t<T>;
    return shifts_out(by) ? T(0) : static_cast<T>(static_cast<U>(static_cast<U>(a) << by));
  }
};
struct ShiftRight {
  bool arithmetic;
  template <class T>
  T operator()(T a, T by) const {
    using U = std::make_unsigned_t<T>;
    if (!arithmetic) return shifts_out(by) ? T(0) : static_cast<T>(static_cast<U>(a) >> by);
    if (shifts_out(by)) return a < 0 ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> by);
  }
};

void bitwise_right_shift(KernelCall& call) {
  const ShiftRight shift{call.arg(2).as_bool()};
  visit<kIntegers>(call.dtype(), [&](auto tag) {  // the sign bit is that of the dtype itself
    using T = typename decltype(tag)::type;
    map_binary<T, T>(call.out(), call.in(0), call.in(1), shift);
  });
}

}  // namespace

KernelList logic_kernels() {
  static const oar_kernel list[] = {
      {"logical_not", 1, "cpu:generic", nullptr,
       kernel_entry<unary_question<kAllTypes, LogicalNot>>},
      {"logical_and", 1, "cpu:generic", nullptr,
       kernel_entry<binary_question<kAllTypes, LogicalAnd>>},
      {"logical_or", 1, "cpu:generic", nullptr,
       kernel_entry<binary_question<kAllTypes, LogicalOr>>},
      {"logical_xor", 1, "cpu:generic", nullptr,
       kernel_entry<binary_question<kAllTypes, LogicalXor>>},
      {"bitwise_not", 1, "cpu:generic", nullptr, kernel_entry<bitwise_not>},
      {"bitwise_and", 1, "cpu:generic", nullptr, kernel_entry<binary<kBits, BitwiseAnd>>},
      {"bitwise_or", 1, "cpu:generic", nullptr, kernel_entry<binary<kBits, BitwiseOr>>},
      {"bitwise_xor", 1, "cpu:generic", nullptr, kernel_entry<binary<kBits, BitwiseXor>>},
      {"bitwise_left_shift", 1, "cpu:generic", nullptr, kernel_entry<binary<kIntegers, ShiftLeft>>},
      {"bitwise_right_shift", 1, "cpu:generic", nullptr, kernel_entry<bitwise_right_shift>},
  };
  return list;
}

}  // namespace oar::cpu
