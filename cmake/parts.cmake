# The parts of the library. The full library has all of them; what is deployed has core, records, cpu and runtime.

# Which part a file of src/oar belongs to: the first row that matches the beginning of its path. A part may use those before it
# in OAR_PARTS.
set(OAR_PARTS core records cpu runtime media training distributed compiler planner interop ocr)
set(OAR_PART_OF
  "none=backend/cts/"            # part of the tests
  "none=startup_runtime\\.cpp"   # in place of startup.cpp, where the full library is not built
  "none=compiler/codegen/llvm/"  # a library of its own: codegen.cmake
  "distributed=parameter_server/library\\.cpp"
  "none=parameter_server/"       # a library of its own: parameter_server.cmake
  "none=cli/oar_run\\.cpp"        # the command of the runtime library
  "command=cli/"
  "core=ops/sharding/(join_names|placement)\\.cpp"  # placements in programs are printed with them
  "media=media/"
  "training=(autograd|nn)/"
  "training=formats/(pickle|state|checksum|npz|zip|inflate|gguf|hdf5)"
  "training=ops/(sharding|core/(autocast|registry_checks|samples))"
  "compiler=(compiler|extension|backend/null)/"
  "engines=distributed/(gloo|mpi)/"  # libraries of their own, below
  "distributed=distributed/"
  "planner=planner/"
  "interop=interop/"
  "ocr=ocr/"
  "compiler=ops/core/(cost|scalar|trait_names)\\.cpp"
  "compiler=ir/(draw|cost)\\.cpp"
  "compiler=base/crash_handler\\.cpp"
  "compiler=startup\\.cpp"
  "runtime=(ir|runtime|formats)/"
  "units=backend/cpu/simd/units/"  # compiled once for each instruction set, below
  "cpu=backend/cpu/"
  "records=ops/families/"
  "core=(base|tensor|device|ops)/")

file(GLOB_RECURSE OAR_SOURCES CONFIGURE_DEPENDS RELATIVE "${CMAKE_SOURCE_DIR}/src/oar"
  "${CMAKE_SOURCE_DIR}/src/oar/*.cpp")
if(NOT OAR_HAS_ONEDNN)
  list(FILTER OAR_SOURCES EXCLUDE REGEX "^backend/cpu/onednn/")
endif()
foreach(source IN LISTS OAR_SOURCES)
  set(part "")
  foreach(row IN LISTS OAR_PART_OF)
    string(REGEX MATCH "^([a-z]+)=(.*)$" row "${row}")
    set(of "${CMAKE_MATCH_1}")
    if(part STREQUAL "" AND source MATCHES "^${CMAKE_MATCH_2}")
      set(part "${of}")
    endif()
  endforeach()
  if(part STREQUAL "")
    message(FATAL_ERROR "src/oar/${source} belongs to no part: see cmake/parts.cmake.")
  endif()
  list(APPEND OAR_SOURCES_${part} "${CMAKE_SOURCE_DIR}/src/oar/${source}")
endforeach()
if(OAR_WITHOUT_KERNELS)
  list(FILTER OAR_SOURCES_cpu EXCLUDE REGEX "${OAR_WITHOUT_KERNELS}")
endif()
if(OAR_DEPLOY AND OAR_RARE)
  list(FILTER OAR_SOURCES_cpu EXCLUDE REGEX "${OAR_RARE}")
  list(FILTER OAR_SOURCES_records EXCLUDE REGEX "${OAR_RARE}")
endif()

# How the parts are compiled. Only what a header declares as OAR_API is exported; clang would not see that in a definition.
add_library(oar_part_flags INTERFACE)
target_link_libraries(oar_part_flags INTERFACE oar_flags)
target_compile_options(oar_part_flags INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-fvisibility=hidden> $<$<CXX_COMPILER_ID:GNU>:-fvisibility-inlines-hidden>)
target_compile_definitions(oar_part_flags INTERFACE OAR_VERSION="${PROJECT_VERSION}")
target_include_directories(oar_part_flags INTERFACE "${CMAKE_SOURCE_DIR}/src" "${OAR_GENERATED}")
if(OAR_PARALLEL STREQUAL "openmp")
  target_compile_definitions(oar_part_flags INTERFACE OAR_USE_OPENMP)
  target_link_libraries(oar_part_flags INTERFACE OpenMP::OpenMP_CXX)
elseif(OAR_PARALLEL STREQUAL "none")
  target_compile_definitions(oar_part_flags INTERFACE OAR_NO_THREADS)
endif()
if(OAR_DEPLOY)
  target_compile_definitions(oar_part_flags INTERFACE OAR_DEPLOY)
  # Helpers of rules that records drop there have no callers.
  target_compile_options(oar_part_flags INTERFACE
    -ffunction-sections -fdata-sections -Wno-unused-function -Wno-unused-variable
    # Exceptions unwind from calls only, and no type is asked for its name.
    -fno-asynchronous-unwind-tables -fno-rtti)
endif()
# Of the deployed kernels, those that programs spend their time in. All other code is compiled for size.
set(OAR_HOT_KERNELS
  "_(base|avx512|amx)\\.cpp$|/(gemm|gemm_tiles|conv|conv_tiles|attention_tiles|im2col|depthwise_last|max_pool|loops/copy)\\.cpp$")
# Programs may be compiled with assertions of fmt, whose code is in this file.
set_source_files_properties("${CMAKE_SOURCE_DIR}/src/oar/base/format.cpp" PROPERTIES
  COMPILE_OPTIONS "-fvisibility=default;$<$<CXX_COMPILER_ID:GNU>:-fno-visibility-inlines-hidden>")

# Files of some folders are compiled in groups: what their headers instantiate is compiled once for a group, which saves a third of the
# time. So two files of a folder cannot use one name for different things, even in anonymous namespaces. The file's name decides on
# the group, so that a new file disturbs its own group only. Kernels and what every call runs through are compiled alone.
# CMake's own groups name files by their full paths, so ccache could not share their objects between checkouts.
option(OAR_GROUPS "Compile files of op families, compiler, runtime and training in groups; OFF for editors and clang-tidy" ON)
# oar_group(<list> <root> <folder> <count>): puts groups in place of the files of a folder, in a list of sources.
function(oar_group list root folder count)
  set(sources ${${list}})
  list(SORT sources)
  foreach(source IN LISTS sources)
    file(RELATIVE_PATH path "${root}" "${source}")
    if(path MATCHES "^${folder}/[a-z_0-9.]+\\.cpp$")
      get_filename_component(file "${source}" NAME)
      string(MD5 digits "${file}")
      string(SUBSTRING "${digits}" 0 4 digits)
      math(EXPR group "0x${digits} % ${count}")
      string(APPEND content_${group} "#include \"${path}\"\n")
      list(APPEND members "${source}")
    endif()
  endforeach()
  string(REPLACE "/" "_" name "${folder}")
  math(EXPR last "${count} - 1")
  foreach(group RANGE ${last})
    if(DEFINED content_${group})
      set(file "${CMAKE_BINARY_DIR}/groups/${name}_${group}.cpp")
      file(CONFIGURE OUTPUT "${file}" CONTENT "${content_${group}}" @ONLY)
      list(APPEND sources "${file}")
    endif()
  endforeach()
  list(REMOVE_ITEM sources ${members})
  set(${list} ${sources} PARENT_SCOPE)
endfunction()
oar_sources_under(generated_sources "${OAR_GENERATED}/oar")
oar_group(generated_sources "${OAR_GENERATED}" oar/ops/gen 6)  # many, small and alike
if(OAR_GROUPS)
  set(src "${CMAKE_SOURCE_DIR}/src")
  oar_group(OAR_SOURCES_records "${src}" oar/ops/families 24)
  oar_group(OAR_SOURCES_training "${src}" oar/ops/sharding 2)
  oar_group(OAR_SOURCES_training "${src}" oar/autograd 4)
  oar_group(OAR_SOURCES_training "${src}" oar/nn 4)
  oar_group(OAR_SOURCES_runtime "${src}" oar/runtime 6)
  oar_group(OAR_SOURCES_runtime "${src}" oar/ir 3)
  oar_group(OAR_SOURCES_runtime "${src}" oar/formats 2)
  oar_group(OAR_SOURCES_compiler "${src}" oar/compiler/capture 4)
  oar_group(OAR_SOURCES_compiler "${src}" oar/compiler/passes 5)
  oar_group(OAR_SOURCES_compiler "${src}" oar/compiler/fusion 3)
endif()

# Objects of the parts, for the library's sources.
set(OAR_OBJECTS "")
function(oar_add_part part)
  add_library(oar_${part} OBJECT ${OAR_SOURCES_${part}} ${ARGN})
  add_dependencies(oar_${part} oar_generate)
  target_link_libraries(oar_${part} PRIVATE oar_part_flags)
  set(OAR_OBJECTS ${OAR_OBJECTS} $<TARGET_OBJECTS:oar_${part}> PARENT_SCOPE)
endfunction()

# With a frame pointer, tables of unwinding are a quarter smaller, and the code hardly larger.
set(OAR_SMALL -Os -fno-omit-frame-pointer)
if(OAR_DEPLOY)
  set(cold ${OAR_SOURCES_cpu})
  list(FILTER cold EXCLUDE REGEX "${OAR_HOT_KERNELS}")
  set_property(SOURCE ${cold} APPEND PROPERTY COMPILE_OPTIONS ${OAR_SMALL})
endif()

foreach(part IN LISTS OAR_PARTS)
  if(part STREQUAL "core")
    oar_add_part(core ${generated_sources})
  elseif(NOT OAR_DEPLOY OR part MATCHES "^(records|cpu|runtime)$")
    oar_add_part(${part})
  endif()
endforeach()
if(OAR_DEPLOY)
  target_compile_options(oar_core PRIVATE ${OAR_SMALL})
  target_compile_options(oar_records PRIVATE ${OAR_SMALL})
  target_compile_options(oar_runtime PRIVATE ${OAR_SMALL})
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  # Rules and passes call functions that are compiled with care; their own code is long and runs briefly. This saves a quarter of
  # the time that they take to compile.
  target_compile_options(oar_records PRIVATE -O1)
  target_compile_options(oar_compiler PRIVATE -O1)
  target_compile_options(oar_interop PRIVATE -O1)
endif()
if(TARGET oar_ocr)
  # Corners of boxes are cut to whole pixels: they must round as others round them.
  target_compile_options(oar_ocr PRIVATE -ffp-contract=off)
endif()
# Most of the time of a compilation goes into headers that all files include. The lists are files of their own, since Ninja does not
# see that a list in a CMake file has changed. They are included by a path relative to a folder: with a full path, CMake's file would
# differ between checkouts, and ccache could not share objects.
function(oar_precompile_headers target folder header)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT OAR_DEPLOY)
    target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/${folder}")
    target_precompile_headers(${target} PRIVATE "<${header}>")
    target_compile_options(${target} PRIVATE -fpch-preprocess -fpch-deps)  # ccache wants them
  endif()
endfunction()
oar_precompile_headers(oar_core cmake precompiled/common.h)
foreach(part IN ITEMS records runtime training compiler distributed planner interop)
  if(TARGET oar_${part} AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT OAR_DEPLOY)
    target_precompile_headers(oar_${part} REUSE_FROM oar_core)
    target_compile_options(oar_${part} PRIVATE -fpch-preprocess -fpch-deps)
  endif()
endforeach()
oar_precompile_headers(oar_cpu cmake precompiled/kernels.h)
# What these include is compiled for another instruction set, or with other symbols.
set(own_flags ${OAR_SOURCES_cpu})
list(FILTER own_flags INCLUDE REGEX "_(avx512|amx|base)\\.cpp$")
set_property(SOURCE ${own_flags} "${CMAKE_SOURCE_DIR}/src/oar/base/format.cpp" PROPERTY SKIP_PRECOMPILE_HEADERS ON)

# ---- How kernels are compiled ------------------------------------------------------------------

# Kernels have loops of any length over windows, channels and runs; the usual -O2 vectorises those of fixed length only. An option
# of the whole target: GCC takes such options from the precompiled header, whatever a single file says.
target_compile_options(oar_cpu PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
# These are written with vectors already.
set_property(SOURCE ${own_flags} APPEND PROPERTY
  COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=very-cheap>")
if(OAR_HAS_ONEDNN)
  # Only the files of its own folder can include its headers.
  file(GLOB onednn_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/oar/backend/cpu/onednn/*.cpp")
  set_property(SOURCE ${onednn_sources} APPEND PROPERTY
    COMPILE_OPTIONS "-isystem;${OAR_ONEDNN_HEADERS}")
  # Beside the library, where its run path looks: a link in the build tree, a copy in an install.
  file(MAKE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  file(CREATE_LINK "${OAR_ONEDNN_LIBRARY}" "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libdnnl.so.3" SYMBOLIC)
  file(REAL_PATH "${OAR_ONEDNN_LIBRARY}" onednn_file)
  install(FILES "${onednn_file}" DESTINATION "${OAR_PREFIX}lib" RENAME libdnnl.so.3)
endif()

if(TARGET oar_media)
  # Loops over pixels.
  target_compile_options(oar_media PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=dynamic>)
  foreach(codec IN ITEMS jpeg png)
    string(TOUPPER "${codec}" name)
    if(OAR_HAS_${name})
      file(GLOB codec_sources "${CMAKE_SOURCE_DIR}/src/oar/media/${codec}*.cpp")
      set_property(SOURCE ${codec_sources} APPEND PROPERTY
        COMPILE_DEFINITIONS "OAR_${name}_LIBRARY=\"${OAR_${name}_NAME}\"")
      set_property(SOURCE ${codec_sources} APPEND PROPERTY
        COMPILE_OPTIONS "$<$<NOT:$<STREQUAL:${OAR_${name}_HEADERS},/usr/include>>:-isystem;${OAR_${name}_HEADERS}>")
      if(SKBUILD)
        # Beside the library, where its run path looks.
        install(FILES "${OAR_${name}_FILE}" DESTINATION "${OAR_PREFIX}lib" RENAME "${OAR_${name}_NAME}")
      endif()
    endif()
  endforeach()
endif()

# The vectorised loops. Their functions round alike whatever the compiler would like to fuse, and
# integers wrap.
function(oar_add_simd_units set)
  add_library(oar_simd_${set} OBJECT ${OAR_SOURCES_units})
  target_compile_definitions(oar_simd_${set} PRIVATE OAR_SIMD_SET=${set})
  target_link_libraries(oar_simd_${set} PRIVATE oar_part_flags)
  target_compile_options(oar_simd_${set} PRIVATE
    -ffp-contract=off -fwrapv -fno-exceptions -ftree-vectorize
    $<$<BOOL:${OAR_DEPLOY}>:-fno-unwind-tables>
    $<$<CXX_COMPILER_ID:GNU>:-fvect-cost-model=unlimited> ${ARGN})
  set(OAR_OBJECTS ${OAR_OBJECTS} $<TARGET_OBJECTS:oar_simd_${set}> PARENT_SCOPE)
endfunction()
if(OAR_LEAN)
  set_property(SOURCE "${CMAKE_SOURCE_DIR}/src/oar/ops/core/run.cpp" APPEND PROPERTY COMPILE_DEFINITIONS OAR_LEAN)
endif()
# A lean library has the loops of the newest instruction set of this machine.
set(simd_sets base)
if(OAR_X86)
  list(APPEND simd_sets avx512)
endif()
if(OAR_LEAN AND OAR_X86 AND EXISTS /proc/cpuinfo)
  file(READ /proc/cpuinfo processor)
  set(left_out base)
  foreach(feature IN ITEMS avx512f avx512bw avx512cd avx512dq avx512vl)
    if(NOT processor MATCHES "[ \t]${feature}[ \n]")
      set(left_out avx512)
    endif()
  endforeach()
  list(REMOVE_ITEM simd_sets ${left_out})
  string(TOUPPER "${left_out}" name)
  set_property(SOURCE "${CMAKE_SOURCE_DIR}/src/oar/backend/cpu/instruction_set.cpp"
    "${CMAKE_SOURCE_DIR}/src/oar/backend/cpu/simd/kernels.cpp" APPEND PROPERTY COMPILE_DEFINITIONS OAR_WITHOUT_${name}_LOOPS)
endif()
if("base" IN_LIST simd_sets)
  oar_add_simd_units(base)
endif()
if("avx512" IN_LIST simd_sets)
  oar_add_simd_units(avx512
    -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl -mprefer-vector-width=512)
endif()
