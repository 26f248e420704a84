#include "oar/cli/python_check.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"

extern char** environ;

namespace oar::cli {
namespace {

// The last line is the result; a package may print something while it is imported.
constexpr const char* kScript = R"(
import importlib.util, sys
print(sys.executable)
if importlib.util.find_spec("oar") is None:
    print("missing")
else:
    try:
        import oar
        print("version " + oar.__version__)
    except BaseException as error:
        print("broken " + type(error).__name__ + ": " + " ".join(str(error).split()))
)";

// The one the user names, that of the checkout whose build this is, or the first on the path.
std::string python_to_check() {
  namespace fs = std::filesystem;
  const char* chosen = std::getenv("OAR_PYTHON");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  const std::string staged = staged_package();
  const fs::path own = fs::path(staged).parent_path().parent_path() / ".venv/bin/python";
  std::error_code error;
  return !staged.empty() && fs::exists(own, error) ? own.string() : "python3";
}

}  // namespace

int run_program(const std::vector<std::string>& command, int stream, std::string& output) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return -1;
  const ScopeGuard close_reader([&] { ::close(pipe[0]); });
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const ScopeGuard destroy_actions([&] { posix_spawn_file_actions_destroy(&actions); });
  const int other = stream == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;
  posix_spawn_file_actions_adddup2(&actions, pipe[1], stream);
  posix_spawn_file_actions_addopen(&actions, other, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawnp(&child, command[0].c_str(), &actions, nullptr, arguments.data(), environ);
  ::close(pipe[1]);
  if (failed != 0) return -1;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t got = ::read(pipe[0], piece.data(), piece.size());
    if (got > 0) output.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) break;
  }
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

PythonCheck check_python() {
  PythonCheck result;
  const std::string python = python_to_check();
  std::string output;
  if (run_program({python, "-c", kScript}, STDOUT_FILENO, output) != 0) {
    result.detail = python;
    return result;
  }
  const std::vector<std::string_view> lines = split(trim(output), '\n');
  result.interpreter = lines.front();
  const std::string_view answer = lines.back();
  const std::size_t space = answer.find(' ');
  const std::string_view word = answer.substr(0, space);
  if (space != std::string_view::npos) result.detail = answer.substr(space + 1);
  result.state = word == "version"   ? PythonCheck::Works
                 : word == "missing" ? PythonCheck::NotInstalled
                                     : PythonCheck::Broken;
  return result;
}

std::string staged_package() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  const fs::path folder = program.parent_path().parent_path() / "python";
  return fs::exists(folder / "oar", error) ? folder.string() : std::string();
}

}  // namespace oar::cli
