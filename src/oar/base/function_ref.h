// FunctionRef<R(Args...)>: a view of a callable, two words, no allocation. It does not own: use it
// for parameters, never for members that outlive the call.
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "oar/base/api.h"

namespace OAR_API oar {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
             std::is_invocable_r_v<R, F&, Args...>)
  FunctionRef(F&& callable) {  // implicit, so that a lambda can be passed as it is
    using Callable = std::remove_reference_t<F>;
    if constexpr (std::is_function_v<Callable>) {
      // A function has no object address to keep: keep the function pointer itself.
      target_.function = reinterpret_cast<void (*)()>(std::addressof(callable));
      call_ = [](Target target, Args... args) -> R {
        return invoke(*reinterpret_cast<Callable*>(target.function), std::forward<Args>(args)...);
      };
    } else {
      target_.object = const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
      call_ = [](Target target, Args... args) -> R {
        return invoke(*static_cast<Callable*>(target.object), std::forward<Args>(args)...);
      };
    }
  }

  R operator()(Args... args) const { return call_(target_, std::forward<Args>(args)...); }

 private:
  union Target {
    void* object;
    void (*function)();
  };

  template <class F>
  static R invoke(F& callable, Args... args) {
    if constexpr (std::is_void_v<R>) {
      std::invoke(callable, std::forward<Args>(args)...);
    } else {
      return std::invoke(callable, std::forward<Args>(args)...);
    }
  }

  Target target_;
  R (*call_)(Target, Args...);
};

}  // namespace oar
