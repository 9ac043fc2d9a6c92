# Flags that every target of this project gets, and nobody else.
add_library(spillway_flags INTERFACE)
target_compile_features(spillway_flags INTERFACE cxx_std_20)
target_compile_options(spillway_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Wold-style-cast -Wzero-as-null-pointer-constant
    -Wno-missing-field-initializers -Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees an overlapping copy in `"text" + std::string` when it optimises (GCC bug 105651).
  target_compile_options(spillway_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(SPILLWAY_SANITIZE)
  target_compile_options(spillway_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SPILLWAY_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all>)  # else what UBSan finds is printed and the test passes
  target_link_options(spillway_flags INTERFACE -fsanitize=${SPILLWAY_SANITIZE})
endif()

# spillway_library(<name> HEADERS ... [SOURCES ...] [LINK ...] [LINK_PRIVATE ...])
# One folder, one static library, one alias spillway::<name>; installed for find_package(spillway).
function(spillway_library name)
  cmake_parse_arguments(PARSE_ARGV 1 lib "" "" "HEADERS;SOURCES;LINK;LINK_PRIVATE")
  add_library(spillway_${name} STATIC ${lib_SOURCES})
  add_library(spillway::${name} ALIAS spillway_${name})
  target_sources(spillway_${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${lib_HEADERS})
  target_link_libraries(spillway_${name}
    PUBLIC ${lib_LINK}
    PRIVATE $<BUILD_INTERFACE:spillway_flags> ${lib_LINK_PRIVATE})
  target_compile_features(spillway_${name} PUBLIC cxx_std_20)
  set_target_properties(spillway_${name} PROPERTIES
    VERIFY_INTERFACE_HEADER_SETS ON POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE CXX
    EXPORT_NAME ${name})
  install(TARGETS spillway_${name} EXPORT spillway FILE_SET HEADERS DESTINATION include/spillway)
endfunction()
