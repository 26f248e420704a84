// Which builds of Oar's libraries are loaded.
#pragma once

#include <string>

namespace oar::codegen {

// The linker's identities of the library and of this code generator; empty if one has none.
std::string build_ids();

}  // namespace oar::codegen
