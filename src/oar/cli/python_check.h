// Checks whether Python finds the package.
#pragma once

#include <string>
#include <vector>

namespace oar::cli {

struct PythonCheck {
  enum State { NoPython, NotInstalled, Broken, Works } state = NoPython;
  std::string interpreter;  // its path, if there is one
  std::string detail;       // the package's version, or why importing it failed
};

// Asks the interpreter OAR_PYTHON, else python3.
PythonCheck check_python();

// Runs a program to its end and captures what it writes to one of its streams, 1 or 2; the other one goes nowhere. Returns its status,
// or -1 if it could not be run.
int run_program(const std::vector<std::string>& command, int stream, std::string& output);

// The package of the build tree this program belongs to, if it does; else empty.
std::string staged_package();

}  // namespace oar::cli
