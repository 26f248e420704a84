// Runs numbered cases in a child process, so that a case that crashes or hangs is reported with its
// description, and the run continues after it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace fuzz {

// What the current case does; the parent prints it if the case ends the process.
void describe(const std::string& text);

// Runs one case. It throws nothing; a text is a complaint, an empty one means that all is well.
using Case = std::function<std::string(uint64_t seed, uint64_t number)>;

// The main function of a fuzzer: reads the options (--help lists them), runs the cases, prints the
// complaints and the number of cases. The exit status is 1 where there was a complaint.
int survey(int argc, char** argv, const char* about, const Case& run);

// Counts a case under a heading; the sums are in the last lines of the run.
void count(const char* what);

}  // namespace fuzz
