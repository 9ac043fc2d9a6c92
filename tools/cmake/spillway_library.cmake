# Flags that every target of this project gets, and nobody else.
add_library(spillway_flags INTERFACE)
target_compile_features(spillway_flags INTERFACE cxx_std_20)
target_compile_options(spillway_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wold-style-cast -Wzero-as-null-pointer-constant
    -Wno-missing-field-initializers -Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Collecting garbage later takes a tenth off a compilation, and 100 MB more.
  target_compile_options(spillway_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=524288>")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees an overlapping copy in `"text" + std::string` when it optimises (GCC bug 105651).
  target_compile_options(spillway_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Clang 14 sees a null pointer in the 0 that a defaulted <=> is compared with. To GCC a changed sign is
  # no conversion.
  target_compile_options(spillway_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-zero-as-null-pointer-constant -Wno-sign-conversion>)
endif()
if(SPILLWAY_SANITIZE)
  target_compile_options(spillway_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SPILLWAY_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all  # else what UBSan finds is printed and the test passes
      $<$<BOOL:$<TARGET_PROPERTY:SPILLWAY_IS_TEST>>:-fno-sanitize=undefined>>)  # it is of what is tested
  target_link_options(spillway_flags INTERFACE -fsanitize=${SPILLWAY_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND SPILLWAY_SANITIZE MATCHES "address")
    target_compile_definitions(spillway_flags INTERFACE __SANITIZE_ADDRESS__=1)  # as GCC does
  endif()
endif()

# spillway_library(<name> [LINK ...] [LINK_PRIVATE ...] [SOURCES ...] [EXCEPT regex...])
# A static library of all sources in and below the folder that calls this, but those that match a regular
# expression of EXCEPT, and of SOURCES that are generated; with an alias spillway::<name>, installed for
# find_package(spillway). A unity build compiles UNITY_BUILD_BATCH_SIZE sources together; those of
# SPILLWAY_APART, paths from the root that tools/mutants gives, are compiled alone.
function(spillway_library name)
  cmake_parse_arguments(PARSE_ARGV 1 lib "" "" "LINK;LINK_PRIVATE;SOURCES;EXCEPT")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.h)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp *.cu)
  foreach(pattern IN LISTS lib_EXCEPT)
    list(FILTER headers EXCLUDE REGEX ${pattern})
    list(FILTER sources EXCLUDE REGEX ${pattern})
  endforeach()
  add_library(spillway_${name} STATIC ${sources} ${lib_SOURCES})
  add_library(spillway::${name} ALIAS spillway_${name})
  target_sources(spillway_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(spillway_${name}
    PUBLIC ${lib_LINK}
    PRIVATE $<BUILD_INTERFACE:spillway_flags> ${lib_LINK_PRIVATE})
  target_compile_features(spillway_${name} PUBLIC cxx_std_20)
  set_target_properties(spillway_${name} PROPERTIES
    POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  list(TRANSFORM SPILLWAY_APART PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE apart)
  set_source_files_properties(${apart} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  spillway_join_kernels(spillway_${name} ${sources})
  install(TARGETS spillway_${name} EXPORT spillway FILE_SET HEADERS DESTINATION include/spillway)
endfunction()

# Joins CUDA sources to at most two where the build is a unity build: every compilation of one parses the
# headers of host and device. CMake before 3.31 joins only C and C++.
function(spillway_join_kernels target)
  list(FILTER ARGN INCLUDE REGEX "[.]cu$")
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  list(TRANSFORM ARGN PREPEND ${folder}/ OUTPUT_VARIABLE kernels)
  list(REMOVE_ITEM kernels ${SPILLWAY_APART})
  if(NOT CMAKE_UNITY_BUILD OR NOT kernels)
    return()
  endif()
  set(number 0)
  foreach(path IN LISTS kernels)
    math(EXPR number "1 - ${number}")
    string(APPEND joined_${number} "#include \"${path}\"\n")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${path} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  foreach(number 0 1)
    if(NOT joined_${number})
      continue()
    endif()
    set(path ${CMAKE_CURRENT_BINARY_DIR}/joined_${number}.cu)
    file(CONFIGURE OUTPUT ${path} CONTENT "${joined_${number}}" @ONLY)
    set_source_files_properties(${path} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    target_sources(${target} PRIVATE ${path})
  endforeach()
endfunction()

# spillway_loaded_library(<target> SHARED|MODULE <sources> ... [LINK ...] [EXPORTS map])
# A library that programs load: only what the map exports, or what is marked so, can be seen from outside.
# It lies beside the program, which looks for it there.
function(spillway_loaded_library target type)
  cmake_parse_arguments(PARSE_ARGV 2 lib "" "EXPORTS" "LINK")
  add_library(${target} ${type} ${lib_UNPARSED_ARGUMENTS})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  list(TRANSFORM lib_LINK REPLACE "(.+)" "$<BUILD_INTERFACE:\\1>")
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:spillway_flags> ${lib_LINK})
  target_link_options(${target} PRIVATE -Wl,--as-needed -Wl,--exclude-libs,ALL)
  if(lib_EXPORTS)
    target_link_options(${target} PRIVATE -Wl,--version-script=${lib_EXPORTS})
    set_property(TARGET ${target} PROPERTY LINK_DEPENDS ${lib_EXPORTS})
  endif()
  if(NOT SPILLWAY_SANITIZE)  # whose run-time is the program's
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()
