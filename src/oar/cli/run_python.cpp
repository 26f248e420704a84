#include "oar/cli/run_python.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "oar/base/error.h"
#include "oar/cli/python_check.h"

namespace oar::cli {
namespace {

// The interpreter that imports the package; an error says how to get there.
std::string interpreter(const std::string& what) {
  const PythonCheck check = check_python();
  const std::string staged = staged_package();
  switch (check.state) {
    case PythonCheck::Works:
      return check.interpreter;
    case PythonCheck::NoPython:
      fail(ErrorKind::NotFound,
           "{}, and {} cannot be run.\nhint: Install Python 3.9 or later, or set OAR_PYTHON to the "
           "one that has the package.",
           what, check.detail);
    case PythonCheck::NotInstalled:
      fail(ErrorKind::NotFound, "{}, which {} does not find.\nhint: {}", what, check.interpreter,
           staged.empty() ? std::string("Set OAR_PYTHON to the Python that has it, or install it "
                                        "with pip.")
                          : format("It is in the build tree: export PYTHONPATH={}", staged));
    case PythonCheck::Broken:
      break;
  }
  fail(ErrorKind::NotFound,
       "{}, which {} cannot import: {}\nhint: Rebuild with `make build`, or reinstall it with pip, "
       "for this interpreter.",
       what, check.interpreter, check.detail);
}

}  // namespace

int run_python(const std::string& what, const std::vector<std::string>& words) {
  const std::string python = interpreter(what);
  std::vector<std::string> command{python};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(python.c_str(), arguments.data());
  fail(ErrorKind::NotFound, "{}; {} cannot be run: {}", what, python, std::strerror(errno));
}

}  // namespace oar::cli
