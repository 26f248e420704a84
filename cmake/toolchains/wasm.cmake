# WebAssembly by emscripten; programs run in Node.
find_program(emcc emcc REQUIRED)
file(REAL_PATH "${emcc}" emcc)
get_filename_component(emscripten "${emcc}" DIRECTORY)
include("${emscripten}/cmake/Modules/Platform/Emscripten.cmake")
# Debian installs the JavaScript libraries that emscripten needs where only Debian's own Node looks for them.
set(CMAKE_CXX_LINKER_LAUNCHER "${CMAKE_COMMAND}" -E env "NODE_PATH=/usr/share/nodejs")
