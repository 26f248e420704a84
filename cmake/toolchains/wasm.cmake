# WebAssembly by emscripten; programs run in Node.
find_program(emcc emcc REQUIRED)
file(REAL_PATH "${emcc}" emcc)
get_filename_component(emscripten "${emcc}" DIRECTORY)
include("${emscripten}/cmake/Modules/Platform/Emscripten.cmake")
