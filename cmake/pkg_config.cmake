# oar.pc, in the build tree and installed. Paths are relative to the file, so that the tree can be moved.

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

function(oar_beside_pc out path)
  file(RELATIVE_PATH path "${CMAKE_BINARY_DIR}" "${path}")
  set(${out} "\${pcfiledir}/${path}" PARENT_SCOPE)
endfunction()
oar_beside_pc(source "${CMAKE_SOURCE_DIR}/src")
oar_beside_pc(generated "${OAR_GENERATED}")
oar_beside_pc(libraries "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
oar_write_pc("${CMAKE_BINARY_DIR}/oar.pc" "" "${source};${generated}" "${libraries}")
oar_write_pc("${CMAKE_BINARY_DIR}/installed/oar.pc" "prefix=\${pcfiledir}/../..\n" "\${prefix}/include" "\${prefix}/lib")
install(FILES "${CMAKE_BINARY_DIR}/installed/oar.pc" DESTINATION "${OAR_PREFIX}lib/pkgconfig")
