// Any text at all: either an Error, or a program that is sound and prints back to itself.
#include <cstdio>
#include <cstdlib>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/ir/parse.h"
#include "oar/ir/print.h"

namespace {

[[noreturn]] void broken(const char* what, const std::string& text) {
  std::fprintf(stderr, "fuzz: %s\n%s\n", what, text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<char> exact(data, data + size);
  std::string once;
  try {
    once = oar::to_text(oar::parse_program({exact.data(), exact.size()}));
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what(), {exact.data(), size});
    return 0;
  }
  try {
    if (oar::to_text(oar::parse_program(once)) != once) broken("another program", once);
  } catch (const oar::Error& error) {
    // Large constants are left out of the text.
    if (std::string(error.what()).find("are not given") == std::string::npos)
      broken(error.what(), once);
  }
  return 0;
}

std::vector<std::string> seeds() {
  return {
      "program f(%x: float32[2]) -> (%1: float32[2]) {\n  %1 = relu(%x) : float32[2]\n}\n",
      "program step<B ~ 4 >= 1>(%x: float32[B, 2], state %t: float32[2]) -> (%7: float32[2*B]) {\n"
      "  assume B != 1\n"
      "  const %c: float32[2] = [1.0, 2.5]\n"
      "  %4 = broadcast_to(%c, shape=[B, 2]) : float32[B, 2]\n"
      "  %5 = multiply(%x, %4) : float32[B, 2]  # a.py:3\n"
      "  %6 = sum(%5, axis=[0], dtype=None, keepdim=False) : float32[2]\n"
      "  %7 = reshape(%5, shape=[2*B]) : float32[2*B]\n"
      "  %8 = add(%t, %6) : float32[2]\n"
      "  write %t = %8\n"
      "}\n",
      "program g(%x: float32[4, 4], %y: int64[3]) -> (%2, %5) {\n"
      "  %2, %3 = topk(%x, k=2) : float32[4, 2], int64[4, 2]\n"
      "  %4 = concat([%x, %x], axis=0) : float32[8, 4]\n"
      "  %5 = full(shape=[2], fill_value=(1.0, -2.5j), dtype=complex64) : complex64[2]\n"
      "}\n"};
}

std::vector<std::string> dictionary() {
  return {"program ",  "state ",    "const ",  "assume ", "write ",     "%x",
          "%1",        "float32",   "int64",   "bool",    "[",          "]",
          "(",         ")",         "{",       "}",       "<",          ">",
          "~",         "->",        " = ",     " : ",     "None",       "True",
          "inf",       "nan",       "-1",      "B",       "2*B",        "floordiv(B, 2)",
          "mod(B, 0)", "min(B, 3)", "max(",    "axis=",   "shape=[",    "9223372036854775807",
          "1e400",     "\"",        "\\",      "#",       "==",         "!=",
          "matmul",    "conv2d",    "reshape", "einsum",  "slice_view", "nonzero"};
}
