// Comparisons of two operands.
#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kOrdered = kBools | kIntegers | kFloats;

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

}  // namespace

KernelList compare_kernels() {
  static const oar_kernel list[] = {
      {"equal", 1, "cpu:generic", nullptr, kernel_entry<binary_question<kAllTypes, Equal>>},
      {"not_equal", 1, "cpu:generic", nullptr, kernel_entry<binary_question<kAllTypes, NotEqual>>},
      {"less_than", 1, "cpu:generic", nullptr, kernel_entry<binary_question<kOrdered, Less>>},
      {"less_equal", 1, "cpu:generic", nullptr, kernel_entry<binary_question<kOrdered, LessEqual>>},
      {"greater_than", 1, "cpu:generic", nullptr, kernel_entry<binary_question<kOrdered, Greater>>},
      {"greater_equal", 1, "cpu:generic", nullptr,
       kernel_entry<binary_question<kOrdered, GreaterEqual>>},
  };
  return list;
}

}  // namespace oar::cpu
