#include "oar/cli/commands.h"
#include "oar/cli/run_python.h"

namespace oar::cli {

int board(const std::vector<std::string>& words) {
  std::vector<std::string> command{"-m", "oar.board"};
  command.insert(command.end(), words.begin(), words.end());
  return run_python("board: the dashboard is part of the Python package", command);
}

}  // namespace oar::cli
