#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "oar/base/error.h"
#include "oar/cli/commands.h"
#include "oar/cli/python_check.h"

namespace oar::cli {
namespace {

// The interpreter that imports the package; an error says how to get there.
std::string interpreter() {
  const PythonCheck check = check_python();
  const std::string staged = staged_package();
  switch (check.state) {
    case PythonCheck::Works:
      return check.interpreter;
    case PythonCheck::NoPython:
      fail(ErrorKind::NotFound,
           "board: the dashboard is part of the Python package, and {} cannot be run.\nhint: "
           "Install Python 3.9 or later, or set OAR_PYTHON to the one that has the package.",
           check.detail);
    case PythonCheck::NotInstalled:
      fail(ErrorKind::NotFound,
           "board: the dashboard is part of the Python package, which {} does not find.\nhint: {}",
           check.interpreter,
           staged.empty() ? std::string("Set OAR_PYTHON to the Python that has it, or install it "
                                        "with pip.")
                          : format("It is in the build tree: export PYTHONPATH={}", staged));
    case PythonCheck::Broken:
      break;
  }
  fail(ErrorKind::NotFound,
       "board: {} cannot import the package: {}\nhint: Rebuild with `make build`, or reinstall it "
       "with pip, for this interpreter.",
       check.interpreter, check.detail);
}

}  // namespace

int board(const std::vector<std::string>& words) {
  const std::string python = interpreter();
  std::vector<std::string> command{python, "-m", "oar.board"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(python.c_str(), arguments.data());
  fail(ErrorKind::NotFound, "board: {} cannot be run: {}", python, std::strerror(errno));
}

}  // namespace oar::cli
