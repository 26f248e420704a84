// functions.cpp as clang translated it, as data of this library.
#pragma once

#include <string_view>

namespace oar::codegen {

std::string_view functions_bitcode();

}  // namespace oar::codegen
