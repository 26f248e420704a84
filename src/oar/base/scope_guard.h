// ScopeGuard: runs a function when the scope is left, unless dismissed.
#pragma once

#include <utility>

#include "oar/base/api.h"

namespace OAR_API oar {

template <class F>
class [[nodiscard]] ScopeGuard {
 public:
  explicit ScopeGuard(F on_exit) : on_exit_(std::move(on_exit)) {}
  ~ScopeGuard() {
    if (armed_) {
      on_exit_();
    }
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

  void dismiss() { armed_ = false; }

 private:
  F on_exit_;
  bool armed_ = true;
};

}  // namespace oar
