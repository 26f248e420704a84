# The full library, liboar.so: one library keeps calls between the parts and thread-local variables cheap. And the command.

add_library(oar SHARED ${OAR_OBJECTS})
add_library(Oar::oar ALIAS oar)
target_compile_features(oar PUBLIC cxx_std_20)
# Our headers read a borrowed argument as a Tensor handle; a program that includes them needs it too.
target_compile_options(oar INTERFACE -fno-strict-aliasing)
target_include_directories(oar PUBLIC
  "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>"
  "$<BUILD_INTERFACE:${OAR_GENERATED}>"
  "$<INSTALL_INTERFACE:${OAR_PREFIX}include>")
target_link_libraries(oar
  PRIVATE "$<BUILD_INTERFACE:oar_flags>" "$<BUILD_INTERFACE:Threads::Threads>" ${CMAKE_DL_LIBS})
if(OAR_PARALLEL STREQUAL "openmp")
  target_link_libraries(oar PRIVATE "$<BUILD_INTERFACE:OpenMP::OpenMP_CXX>")
endif()
if(NOT OAR_SANITIZE)
  target_link_options(oar PRIVATE "LINKER:--no-undefined")
endif()
set_target_properties(oar PROPERTIES
  LINKER_LANGUAGE CXX EXPORT_NAME oar INSTALL_RPATH "$ORIGIN")

# The engines of distributed/: they know the interface alone, and nothing of the library.
foreach(engine IN LISTS OAR_ENGINE_NAMES)
  string(TOUPPER "${engine}" name)
  add_library(oar_engine_${engine} MODULE "${CMAKE_SOURCE_DIR}/src/oar/distributed/${engine}/engine.cpp")
  target_include_directories(oar_engine_${engine} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_include_directories(oar_engine_${engine} SYSTEM PRIVATE "${OAR_${name}_HEADERS}")
  target_link_libraries(oar_engine_${engine} PRIVATE oar_flags "${OAR_${name}_LIBRARY}")
  target_compile_options(oar_engine_${engine} PRIVATE -fvisibility=hidden)
  set_target_properties(oar_engine_${engine} PROPERTIES OUTPUT_NAME oar_${engine} INSTALL_RPATH "$ORIGIN")
  add_dependencies(oar oar_engine_${engine})
  install(TARGETS oar_engine_${engine} LIBRARY DESTINATION "${OAR_PREFIX}lib")
endforeach()

# The command is a program that uses the library. Tests use its functions.
set(command_main "${CMAKE_SOURCE_DIR}/src/oar/cli/main.cpp")
list(REMOVE_ITEM OAR_SOURCES_command "${command_main}")
add_library(oar_command OBJECT ${OAR_SOURCES_command})
add_dependencies(oar_command oar_generate)
target_link_libraries(oar_command PUBLIC oar PRIVATE oar_flags)
add_executable(oar_cli "${command_main}")
target_link_libraries(oar_cli PRIVATE oar_command oar oar_flags)
set_target_properties(oar_cli PROPERTIES OUTPUT_NAME oar INSTALL_RPATH "$ORIGIN/../lib")
install(TARGETS oar_cli RUNTIME DESTINATION "${OAR_PREFIX}bin")
