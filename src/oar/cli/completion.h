// Scripts that complete the words of the command in a shell.
#pragma once

#include <string>
#include <vector>

namespace oar::cli {

struct CommandWords {
  std::string name, about;
  struct Option {
    std::string name, about;  // "--threads"
    bool takes_value = false;
  };
  std::vector<Option> options;
};

// "bash", "zsh" or "fish"; an error for others.
std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace oar::cli
