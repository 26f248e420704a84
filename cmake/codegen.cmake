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
# Kernels inline these functions, and are vectorised afterwards; the wide ones are vectors already, for AVX-512.
foreach(kind "" "_wide")
  set(made "${functions}${kind}")
  set(instructions "")
  if(kind AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(instructions -march=x86-64-v4)
  endif()
  add_custom_command(
    OUTPUT "${made}.inc"
    COMMAND "${OAR_CLANG}" -std=c++20 -O2 -fno-vectorize -fno-slp-vectorize -fno-math-errno -fno-exceptions ${instructions}
      -Wno-unknown-pragmas -I "${CMAKE_SOURCE_DIR}/src" -emit-llvm -c "${codegen}/functions${kind}.cpp" -o "${made}.bc"
      -MD -MF "${made}.d" -MT "${made}.inc"
    COMMAND "${CMAKE_COMMAND}" "-DFROM=${made}.bc" "-DTO=${made}.inc" -P "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
    DEPENDS "${codegen}/functions${kind}.cpp" "${CMAKE_SOURCE_DIR}/cmake/embed.cmake"
    DEPFILE "${made}.d"
    COMMENT "Making bitcode of the elementary functions${kind}"
    VERBATIM)
endforeach()
add_library(oar_codegen MODULE "${codegen}/bitcode.cpp" "${codegen}/build_id.cpp" "${codegen}/emit.cpp" "${codegen}/jit.cpp"
  "${codegen}/steps.cpp")
# Kernels on disk belong to the build that made them.
target_link_options(oar_codegen PRIVATE LINKER:--build-id)
target_link_options(oar PRIVATE LINKER:--build-id)
add_dependencies(oar_codegen oar_generate)
set_source_files_properties("${codegen}/bitcode.cpp" PROPERTIES OBJECT_DEPENDS "${functions}.inc;${functions}_wide.inc")
target_include_directories(oar_codegen PRIVATE "${CMAKE_BINARY_DIR}/codegen")
target_include_directories(oar_codegen SYSTEM PRIVATE "${OAR_LLVM_HEADERS}")
target_link_libraries(oar_codegen PRIVATE oar oar_flags "${OAR_LLVM_LIBRARY}")
target_compile_options(oar_codegen PRIVATE -fvisibility=hidden -O1)
set_target_properties(oar_codegen PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS oar_codegen LIBRARY DESTINATION "${OAR_PREFIX}lib")
