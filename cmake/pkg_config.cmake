# oar.pc: in the build tree with its own folders, and installed with paths relative to itself, so that the tree can be moved.

# oar_write_pc(<file> <lines above the fields> <folders of headers> <folder of the library>)
function(oar_write_pc file variables includes libdir)
  set(cflags "")
  foreach(folder IN LISTS includes)
    string(APPEND cflags "-I${folder} ")
  endforeach()
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT "${variables}libdir=${libdir}

Name: oar
Description: Deep learning: saved models in C (oar/runtime/oar_c.h), everything in C++20 (oar/oar.h)
Version: ${PROJECT_VERSION}
Cflags: ${cflags}-fno-strict-aliasing
Libs: -L\${libdir} -loar
")
endfunction()

# Spaces in a path are escaped, as pkg-config wants them.
string(REPLACE " " "\\ " source "${CMAKE_SOURCE_DIR}/src")
string(REPLACE " " "\\ " generated "${OAR_GENERATED}")
string(REPLACE " " "\\ " libraries "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
oar_write_pc("${CMAKE_BINARY_DIR}/oar.pc" "" "${source};${generated}" "${libraries}")
oar_write_pc("${CMAKE_BINARY_DIR}/installed/oar.pc" "prefix=\${pcfiledir}/../..\n" "\${prefix}/include" "\${prefix}/lib")
install(FILES "${CMAKE_BINARY_DIR}/installed/oar.pc" DESTINATION "${OAR_PREFIX}lib/pkgconfig")
