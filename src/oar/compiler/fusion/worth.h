// Does generated code pay? Estimates by sizes alone: a choice by times or by the number of runs so far would let the same program
// return other last bits in its next run.
#pragma once

#include "oar/compiler/fusion/loop.h"

namespace oar::fusion {

// What an element of a call costs more in a generated loop than in the call's own kernel, in seconds.
double extra_seconds(const FusedLoop& loop);
// From here on a call is a burden for the loop that it is in.
inline constexpr double kBurden = 0.1e-9;

// Seconds that a run on one thread saves if calls are one loop; below 0 if their own kernels are faster.
double seconds_saved(double bytes_saved, size_t calls, double extra_seconds);

// Is the flag fusion_runs 0? Then whatever can be is fused.
bool fuses_all();
// Do runs pay for the compilation of a loop, as many as the flag says?
bool pays(double seconds_saved_by_run);
// Do all loops of a program together pay for loading the code generator, too?
bool pays_to_load(double seconds_saved_by_run, size_t loops);

}  // namespace oar::fusion
