# What runs saved programs, and nothing more: liboar_runtime and the command oar_run. There is neither a tape nor a compiler in it,
# nor Python, and records keep what a run needs (ops/core/deployed.h).

if(EMSCRIPTEN)
  add_library(oar_runtime_library STATIC)
  # A linker takes from an archive what is called; nobody calls a constructor.
  target_sources(oar_runtime_library INTERFACE "${CMAKE_SOURCE_DIR}/src/oar/startup_runtime.cpp")
else()
  add_library(oar_runtime_library SHARED "${CMAKE_SOURCE_DIR}/src/oar/startup_runtime.cpp")
  target_link_options(oar_runtime_library PRIVATE
    "LINKER:--no-undefined" "LINKER:--gc-sections" "LINKER:--as-needed"
    "LINKER:-Map=${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/liboar_runtime.map")
  # Functions with the same code become one: loops over int32 and uint32, say. Nothing here compares addresses of functions.
  check_linker_flag(CXX "LINKER:--icf=all" OAR_LINKER_FOLDS)
  if(OAR_LINKER_FOLDS OR OAR_LINKS_WITH_MOLD)
    target_link_options(oar_runtime_library PRIVATE "LINKER:--icf=all")
  endif()
endif()
target_sources(oar_runtime_library PRIVATE ${OAR_OBJECTS})
target_compile_features(oar_runtime_library PUBLIC cxx_std_20)
target_compile_options(oar_runtime_library INTERFACE -fno-strict-aliasing)
target_compile_definitions(oar_runtime_library INTERFACE OAR_DEPLOY)
target_include_directories(oar_runtime_library PUBLIC
  "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>" "$<INSTALL_INTERFACE:include>")
target_link_libraries(oar_runtime_library
  PRIVATE "$<BUILD_INTERFACE:oar_part_flags>" ${CMAKE_DL_LIBS})
if(NOT OAR_PARALLEL STREQUAL "none")
  target_link_libraries(oar_runtime_library PRIVATE "$<BUILD_INTERFACE:Threads::Threads>")
endif()
set_target_properties(oar_runtime_library PROPERTIES
  OUTPUT_NAME oar_runtime EXPORT_NAME runtime LINKER_LANGUAGE CXX INSTALL_RPATH "$ORIGIN")

add_executable(oar_run "${CMAKE_SOURCE_DIR}/src/oar/cli/oar_run.cpp")
add_dependencies(oar_run oar_generate)
target_link_libraries(oar_run PRIVATE oar_runtime_library oar_flags)
set_target_properties(oar_run PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
if(EMSCRIPTEN)
  # Node's file system as it is, memory that grows, and exceptions.
  target_link_options(oar_run PRIVATE -fexceptions
    -sNODERAWFS=1 -sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=64MB -sENVIRONMENT=node -sEXIT_RUNTIME=1
    "SHELL:--pre-js ${CMAKE_SOURCE_DIR}/cmake/toolchains/node.js")
endif()

install(TARGETS oar_runtime_library LIBRARY DESTINATION lib ARCHIVE DESTINATION lib)
install(TARGETS oar_run RUNTIME DESTINATION bin)
