// What a user sees when native code dies: the signal, the op, the Python line and the native stack.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {

// Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT: prints a report to standard error, then lets
// the handler that was there before (or the default) have the signal. Does nothing if the flag
// "crash_handler" is off. Calling it again never displaces a handler that others installed since.
void install_crash_handler();

// Puts back what was there before, where ours still stands.
void remove_crash_handler();

// Prints the Python line to fd. Called inside the signal handler: it must not allocate or lock.
void set_crash_python_hook(void (*hook)(int fd));

// Signal stacks belong to threads. Gives the calling thread one, until it ends, so that the report
// also works when its own stack has overflowed. The thread that installs the handler has one.
void use_crash_stack();

}  // namespace oar
