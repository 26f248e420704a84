// Lets a long native loop notice that the user wants it to stop.
#pragma once

namespace oar {

// A language binding installs a check that returns true once the user has interrupted.
using InterruptCheck = bool (*)();
void set_interrupt_check(InterruptCheck check);
// Throws an Error of kind Interrupted if the user has. Cheap, but not free: every few hundred steps.
void poll_interrupt();

}  // namespace oar
