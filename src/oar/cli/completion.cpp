#include "oar/cli/completion.h"

#include "oar/base/error.h"
#include "oar/base/string_util.h"

namespace oar::cli {
namespace {

// In single quotes, for every shell.
std::string quoted(const std::string& text) {
  std::string made = "'";
  for (const char c : text) made += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return made + "'";
}

std::string names_of(const CommandWords& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) names.push_back(option.name);
  return join(names, " ");
}

constexpr const char* kBash =
    R"sh(# Completion of oar for bash. In ~/.bashrc:  eval "$(oar completion bash)"
_oar() {
  local current="${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "@names@ --help --version" -- "$current"))
    return
  fi
  case "${COMP_WORDS[1]}" in
@cases@  esac
  if [[ "$current" == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _oar oar
)sh";

constexpr const char* kZsh = R"sh(#compdef oar
# Completion of oar for zsh: write it to a file called _oar in a folder of $fpath.
_oar() {
  local -a commands
  commands=(
@names@  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
@cases@  esac
}
if [ "$funcstack[1]" = _oar ]; then _oar "$@"; else compdef _oar oar; fi
)sh";

std::string filled(std::string script, const std::string& names, const std::string& cases) {
  script.replace(script.find("@cases@"), 7, cases);
  return script.replace(script.find("@names@"), 7, names);
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::string names, cases;
  for (const CommandWords& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    cases += format("    {}) words=\"{}\" ;;\n", command.name, names_of(command));
  }
  return filled(kBash, names, cases);
}

// In a description, brackets and colons have a meaning.
std::string zsh_text(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') made += '\\';
    made += c;
  }
  return made;
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string list, cases;
  for (const CommandWords& command : commands) {
    list += "    " + quoted(command.name + ":" + zsh_text(command.about)) + "\n";
    cases += format("    {}) _arguments", command.name);
    for (const auto& option : command.options)
      cases += " " + quoted(format("*{}[{}]{}", option.name, zsh_text(option.about),
                                   option.takes_value ? ":value:_files" : ""));
    cases += " '*:file:_files' ;;\n";
  }
  return filled(kZsh, list, cases);
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string script =
      "# Completion of oar for fish: write it to ~/.config/fish/completions/oar.fish\n";
  for (const CommandWords& command : commands) {
    script += format("complete -c oar -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                     quoted(command.about));
    for (const auto& option : command.options)
      if (option.name.starts_with("--"))
        script += format("complete -c oar -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                         command.name, option.name.substr(2), option.takes_value ? " -r" : "",
                         quoted(option.about));
  }
  return script;
}

}  // namespace

std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  fail(ErrorKind::InvalidArgument,
       "there is no completion for the shell '{}'.\nhint: There is one for bash, zsh and fish.",
       shell);
}

}  // namespace oar::cli
