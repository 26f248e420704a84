// Fields of a record that a deployed library does not have: it runs programs, and neither differentiates, compiles nor tests them.
#pragma once

#include <type_traits>

#include "oar/base/api.h"

namespace OAR_API oar {

#if defined(OAR_DEPLOY)
inline constexpr bool kDeployed = true;
#else
inline constexpr bool kDeployed = false;
#endif

// A rule that a deployed library keeps, though its field is dropped: `.decompose = kept(run_switch)`. For calls that neither a
// kernel nor other calls can compute: branches and loops.
template <class F>
struct Kept {
  F function;
};
template <class F>
constexpr Kept<F> kept(F function) {
  return {function};
}

// Takes whatever a record says, keeps nothing and reads as empty. A function that is given to it is never called, so no code is
// generated for it, and a text that nobody refers to is not stored. That holds once the constructor is inlined, and clang does not
// inline by itself in what runs before main.
template <class T>
struct Dropped {
  constexpr Dropped() = default;
  template <class... A>
  [[gnu::always_inline]] constexpr Dropped(A&&...) {}
  constexpr explicit operator bool() const { return false; }
};
template <>
struct Dropped<const char*> {
  constexpr Dropped() = default;
  template <class... A>
  [[gnu::always_inline]] constexpr Dropped(A&&...) {}
  constexpr operator const char*() const { return ""; }
};

template <class T>
using FullOnly = std::conditional_t<kDeployed, Dropped<T>, T>;

}  // namespace oar
