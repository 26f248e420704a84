// The bitcode of functions.cpp, as data of this library.
asm(R"(
  .section .rodata
  .globl oar_functions_begin
  .globl oar_functions_end
oar_functions_begin:
  .incbin ")" OAR_FUNCTIONS R"("
oar_functions_end:
  .previous
)");
