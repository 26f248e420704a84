// Is a program well formed?
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// What is wrong, one line each; empty for a sound program. Checks that every value is defined once
// and before its use, that operands and attributes fit the schemas, that inference gives the types
// that are written down, and that it takes nothing for granted that the program does not state.
std::vector<std::string> verify(const Program& program);

// Fails if the program is not sound, with what is wrong and the instructions that are: "<what> is not well formed: …".
// A region may use any open size: the program around it knows them.
enum class ProgramKind : uint8_t { Whole, Region };
void check_verified(const Program& program, ErrorKind kind, const std::string& what,
                    ProgramKind is = ProgramKind::Whole);

}  // namespace oar
