// Errors of a conversion name the node that failed.
#pragma once

#include <string>

#include "oar/base/error.h"

namespace oar::interop {

// Calls the converter of a node. describe() names the node; an error that names one already, of a part of it, goes through.
template <class Describe, class Convert>
auto naming_node(Describe&& describe, Convert&& convert) {
  try {
    return convert();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted ||
        error.text().find("cannot be imported") != std::string::npos)
      throw;
    fail(error.kind(), "{} cannot be imported: {}", describe(), error.what());
  }
}

}  // namespace oar::interop
