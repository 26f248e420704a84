// Does a device behave like the CPU? Runs every op's samples on it, compares with the CPU, and tests the device's
// own services: memory, copies, streams, events, failures.
#pragma once

#include <string>
#include <vector>

#include "oar/tensor/storage.h"

namespace oar::cts {

enum class Outcome { Pass, Fail, Unsupported };

struct Finding {
  std::string what;  // "exp sample 2 float32", or "device: copies"
  Outcome outcome = Outcome::Pass;
  std::string text;  // what differs, or why not
};

struct Options {
  std::string only_op;  // one op instead of all
};

std::vector<Finding> run_conformance(Device device, const Options& options = {});

// "1204 passed, 0 failed, 310 unsupported", then the failures and, once each, what is unsupported.
std::string summary(const std::vector<Finding>& findings);

}  // namespace oar::cts
