# The code generator, liboar_codegen.so: a library of its own, which is loaded when a program is first fused. Without LLVM 19 it is
# not built, and programs run unfused.
find_path(OAR_LLVM_HEADERS llvm/ExecutionEngine/Orc/LLJIT.h HINTS /usr/lib/llvm-19/include NO_DEFAULT_PATH)
find_library(OAR_LLVM_LIBRARY LLVM-19 HINTS /usr/lib/llvm-19/lib)
find_program(OAR_CLANG clang++-19 HINTS /usr/lib/llvm-19/bin)
if(NOT OAR_LLVM_HEADERS OR NOT OAR_LLVM_LIBRARY OR NOT OAR_CLANG)
  message(STATUS "Without the code generator: it needs llvm-19-dev and clang-19")
  return()
endif()

set(codegen "${CMAKE_SOURCE_DIR}/src/oar/compiler/codegen/llvm")
set(functions "${CMAKE_BINARY_DIR}/codegen/functions")
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/codegen")
# Kernels inline these functions, and are vectorised afterwards.
add_custom_command(
  OUTPUT "${functions}.inc"
  COMMAND "${OAR_CLANG}" -std=c++20 -O2 -fno-vectorize -fno-slp-vectorize -fno-math-errno -fno-exceptions
    -Wno-unknown-pragmas -I "${CMAKE_SOURCE_DIR}/src" -emit-llvm -c "${codegen}/functions.cpp" -o "${functions}.bc"
    -MD -MF "${functions}.d" -MT "${functions}.inc"
  COMMAND "${CMAKE_COMMAND}" "-DFROM=${functions}.bc" "-DTO=${functions}.inc" -P "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
  DEPENDS "${codegen}/functions.cpp" "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
  DEPFILE "${functions}.d"
  COMMENT "Making bitcode of the elementary functions"
  VERBATIM)
add_library(oar_codegen MODULE "${codegen}/bitcode.cpp" "${codegen}/emit.cpp" "${codegen}/jit.cpp" "${codegen}/steps.cpp")
add_dependencies(oar_codegen oar_generate)
set_source_files_properties("${codegen}/bitcode.cpp" PROPERTIES OBJECT_DEPENDS "${functions}.inc")
target_include_directories(oar_codegen PRIVATE "${CMAKE_BINARY_DIR}/codegen")
target_include_directories(oar_codegen SYSTEM PRIVATE "${OAR_LLVM_HEADERS}")
target_link_libraries(oar_codegen PRIVATE oar oar_flags "${OAR_LLVM_LIBRARY}")
target_compile_options(oar_codegen PRIVATE -fvisibility=hidden -O1)
set_target_properties(oar_codegen PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS oar_codegen LIBRARY DESTINATION "${OAR_PREFIX}lib")
