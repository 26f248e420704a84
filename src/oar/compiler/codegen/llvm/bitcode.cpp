#include "oar/compiler/codegen/llvm/bitcode.h"

#include <cstddef>

namespace oar::codegen {
namespace {
alignas(16) constexpr unsigned char kBytes[] = {
#include "functions.inc"
};
alignas(16) constexpr unsigned char kWideBytes[] = {
#include "functions_wide.inc"
};
}  // namespace

std::string_view functions_bitcode() {
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}
std::string_view wide_functions_bitcode() {
  return {reinterpret_cast<const char*>(kWideBytes), sizeof kWideBytes};
}

}  // namespace oar::codegen
