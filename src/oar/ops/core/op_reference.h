// An op by its name, looked up when it is first called.
#pragma once

#include <atomic>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

// Each generated function has one. It needs neither a constructor that runs nor the guard of a local static, of which there
// would be hundreds.
class OpReference {
 public:
  explicit constexpr OpReference(const char* name) : name_(name) {}
  Outputs operator()(Args args);

 private:
  const char* name_;
  std::atomic<const Op*> op_ = nullptr;
};

}  // namespace oar
