// An error that is thrown inside the library must arrive here as the type that it is, text included.
#include <cstdio>
#include <cstring>

#include "oar/base/error.h"

int main() {
  try {
    oar::fail(oar::ErrorKind::OutOfRange, "axis {} is outside a tensor of rank {}", 3, 2);
  } catch (const oar::Error& error) {
    std::puts(error.what());
    const bool whole = std::strstr(error.what(), "axis 3 is outside a tensor of rank 2") != nullptr;
    return whole && error.kind() == oar::ErrorKind::OutOfRange ? 0 : 1;
  }
  return 1;
}
