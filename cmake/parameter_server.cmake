# Parameter servers, liboar_parameter_server.so: a library of its own, which is loaded when first used. Without gRPC and RocksDB it is
# not built, and calls say what is missing.
option(OAR_PARAMETER_SERVER "Parameter servers, if gRPC, Protobuf and RocksDB are found" ON)
find_path(OAR_ROCKSDB_HEADERS rocksdb/db.h)
find_library(OAR_ROCKSDB_LIBRARY rocksdb)
find_path(OAR_GRPC_HEADERS grpcpp/grpcpp.h)
find_library(OAR_GRPC_LIBRARY grpc++)
find_library(OAR_GPR_LIBRARY gpr)
find_library(OAR_PROTOBUF_LIBRARY protobuf)
find_program(OAR_PROTOC protoc)
find_program(OAR_GRPC_PLUGIN grpc_cpp_plugin)
if(NOT OAR_PARAMETER_SERVER OR NOT OAR_ROCKSDB_HEADERS OR NOT OAR_ROCKSDB_LIBRARY OR NOT OAR_GRPC_HEADERS OR NOT OAR_GRPC_LIBRARY
   OR NOT OAR_GPR_LIBRARY OR NOT OAR_PROTOBUF_LIBRARY OR NOT OAR_PROTOC OR NOT OAR_GRPC_PLUGIN)
  message(STATUS "Without parameter servers: they need libgrpc++-dev, protobuf-compiler-grpc and librocksdb-dev")
  return()
endif()

set(servers "${CMAKE_SOURCE_DIR}/src/oar/parameter_server")
set(wire "${CMAKE_BINARY_DIR}/parameter_server/oar/parameter_server")
file(MAKE_DIRECTORY "${wire}")
add_custom_command(
  OUTPUT "${wire}/wire.pb.cc" "${wire}/wire.pb.h" "${wire}/wire.grpc.pb.cc" "${wire}/wire.grpc.pb.h"
  COMMAND "${OAR_PROTOC}" -I "${CMAKE_SOURCE_DIR}/src" "--cpp_out=${CMAKE_BINARY_DIR}/parameter_server"
    "--grpc_out=${CMAKE_BINARY_DIR}/parameter_server" "--plugin=protoc-gen-grpc=${OAR_GRPC_PLUGIN}"
    "${servers}/wire.proto"
  DEPENDS "${servers}/wire.proto"
  COMMENT "Generating the messages of parameter servers"
  VERBATIM)

# All but the transport and the entry: tests use it without gRPC.
set(core_sources accessor client core dense_table log memory_store records rocks_store sparse_table state state_files)
list(TRANSFORM core_sources PREPEND "${servers}/")
list(TRANSFORM core_sources APPEND ".cpp")
list(REMOVE_ITEM core_sources "${servers}/client.cpp")
add_library(oar_parameter_server_core STATIC ${core_sources} "${wire}/wire.pb.cc")
add_library(oar_parameter_server MODULE "${servers}/client.cpp" "${servers}/entry.cpp" "${servers}/transport_grpc.cpp"
  "${wire}/wire.grpc.pb.cc")
set_source_files_properties("${wire}/wire.pb.cc" "${wire}/wire.grpc.pb.cc" PROPERTIES COMPILE_OPTIONS "-w")
target_include_directories(oar_parameter_server_core SYSTEM PUBLIC "${CMAKE_BINARY_DIR}/parameter_server" "${OAR_ROCKSDB_HEADERS}")
target_link_libraries(oar_parameter_server_core PUBLIC oar oar_flags "${OAR_PROTOBUF_LIBRARY}" "${OAR_ROCKSDB_LIBRARY}")
target_link_libraries(oar_parameter_server PRIVATE oar_parameter_server_core "${OAR_GRPC_LIBRARY}" "${OAR_GPR_LIBRARY}")
foreach(target IN ITEMS oar_parameter_server_core oar_parameter_server)
  add_dependencies(${target} oar_generate)
  target_compile_options(${target} PRIVATE -fvisibility=hidden)
endforeach()
set_target_properties(oar_parameter_server PROPERTIES INSTALL_RPATH "$ORIGIN")
install(TARGETS oar_parameter_server LIBRARY DESTINATION "${OAR_PREFIX}lib")
