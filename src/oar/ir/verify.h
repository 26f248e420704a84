// Is a program well formed?
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// What is wrong, one line each; empty for a sound program. Checks that every value is defined once
// and before its use, that operands and attributes fit the schemas, that inference returns the types
// in the program, and that it assumes nothing that the program does not state.
std::vector<std::string> verify(const Program& program);

// Fails if the program is not sound, with the problems and their instructions: "<what> is not well formed: …".
// A region may use any open size: the outer program knows them.
enum class ProgramKind : uint8_t { Whole, Region };
void check_verified(const Program& program, ErrorKind kind, const std::string& what,
                    ProgramKind is = ProgramKind::Whole);

}  // namespace oar
