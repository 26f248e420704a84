// functions.cpp and functions_wide.cpp as clang translated them, as data of this library.
#pragma once

#include <string_view>

namespace oar::codegen {

std::string_view functions_bitcode();
std::string_view wide_functions_bitcode();

}  // namespace oar::codegen
