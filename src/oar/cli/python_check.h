// Checks whether Python finds the package.
#pragma once

#include <string>

namespace oar::cli {

struct PythonCheck {
  enum State { NoPython, NotInstalled, Broken, Works } state = NoPython;
  std::string interpreter;  // its path, if there is one
  std::string detail;       // the package's version, or why importing it failed
};

// Asks the interpreter OAR_PYTHON, else python3.
PythonCheck check_python();

// The package of the build tree this program belongs to, if it does; else empty.
std::string staged_package();

}  // namespace oar::cli
