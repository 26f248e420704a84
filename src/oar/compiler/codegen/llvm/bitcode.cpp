#include "oar/compiler/codegen/llvm/bitcode.h"

#include <cstddef>

namespace oar::codegen {
namespace {
alignas(16) constexpr unsigned char kBytes[] = {
#include "functions.inc"
};
}  // namespace

std::string_view functions_bitcode() {
  return {reinterpret_cast<const char*>(kBytes), sizeof kBytes};
}

}  // namespace oar::codegen
