# Fails unless LIBRARY shows the functions of HEADER and nothing else, so that none of its names meets
# the program's. The header marks them by API. Run:
# cmake -DNM=nm -DLIBRARY=libspillway_um.so -DHEADER=spillway_um.h -DAPI=SPILLWAY_UM_API -P check_exports.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../../tools/cmake/exported_names.cmake)
exported_names(names ${LIBRARY})
list(TRANSFORM names REPLACE "@.*" "")
list(SORT names)
file(READ ${HEADER} header)
string(REGEX MATCHALL "${API}[^(;]*[(]" declarations "${header}")
set(declared "")
foreach(declaration IN LISTS declarations)
  string(REGEX REPLACE ".*[ *\n]([a-z_]+)[(]$" "\\1" name "${declaration}")
  list(APPEND declared ${name})
endforeach()
list(REMOVE_ITEM declared __attribute__)  # where ${API} itself is defined
list(SORT declared)
if(NOT names STREQUAL declared)
  message(FATAL_ERROR "${LIBRARY} exports\n${names}\nand its header declares\n${declared}")
endif()
