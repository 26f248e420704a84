// What the language around the library provides. Python's bindings install it when they are imported; a C++ program has
// none.
#pragma once

#include <vector>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"

namespace OAR_API oar {

// A line of the user's code. The name of the file lives for ever.
struct SourceLine {
  const char* file = nullptr;
  int line = 0;
};

// A function may be null.
struct HostLanguage {
  // Has the user interrupted the program? `poll_interrupt` calls it.
  bool (*interrupted)() = nullptr;
  // Calls `block`, which waits for a lock, without the lock of the language: whoever holds the former may need the latter.
  void (*block)(FunctionRef<void()> block) = nullptr;
  // The line that runs. May return nothing; then the line before counts.
  SourceLine (*current_line)() = nullptr;
  // The lines of the user's code that run, outermost first.
  std::vector<SourceLine> (*current_lines)() = nullptr;
  // Inside a handler: adds a text to the error that is handled, if it is the language's own.
  void (*add_note)(const char* text) = nullptr;
  // Prints the lines that run to fd, inside a signal handler: it must not allocate or lock.
  void (*print_lines)(int fd) = nullptr;
};

// It must outlive its use. Null removes it.
void install_host_language(const HostLanguage* language);
const HostLanguage& host_language();

}  // namespace oar
