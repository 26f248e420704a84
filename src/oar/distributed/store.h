// The rendezvous: a few small values that all processes of a job see. They find each other through it, and say in it what they
// wait for when something goes wrong. No data of tensors passes through it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace distributed {

using Milliseconds = std::chrono::milliseconds;

class Store {
 public:
  virtual ~Store() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  // The value if there is one.
  virtual std::optional<std::string> find(const std::string& key) = 0;
  // Adds to a counter, which begins at 0; returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  virtual void remove(const std::string& key) = 0;
  // The address of this machine that the others reach, as far as the store knows; else empty.
  virtual std::string own_address() { return {}; }
  virtual std::string describe() const = 0;

  // Waits until there is a value; an Error that names the key after the time-out.
  std::string get(const std::string& key, Milliseconds timeout);
};

}  // namespace distributed
}  // namespace oar
