// What a user sees when native code crashes: the signal, the op, the Python line and the native stack.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT: prints a report to standard error, then passes
// the signal to the previous handler (or the default). Does nothing if the flag
// "crash_handler" is off. Calling it again never displaces a handler that others installed since.
void install_crash_handler();

// Restores the previous handlers where ours are still installed.
void remove_crash_handler();

// Signal stacks belong to threads. Gives the calling thread one, until it ends, so that the report
// also works when its own stack has overflowed. The thread that installs the handler has one.
void use_crash_stack();

}  // namespace oar
