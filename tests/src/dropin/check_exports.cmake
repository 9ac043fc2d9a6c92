# Fails unless LIBRARY shows the functions of HEADER and nothing else, so that none of its names meets
# the program's. Run: cmake -DNM=nm -DLIBRARY=libspillway_um.so -DHEADER=spillway_um.h -P check_exports.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${NM} --dynamic --defined-only --format=posix ${LIBRARY}
  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listed}")
set(names "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE "(@| ).*" "" name "${line}")
  if(NOT line MATCHES "^[A-Z_0-9.]+(@@[^ ]*)? A ")  # the version itself
    list(APPEND names ${name})
  endif()
endforeach()
list(SORT names)
file(READ ${HEADER} header)
string(REGEX MATCHALL "SPILLWAY_UM_API[^(;]*[(]" declarations "${header}")
set(declared "")
foreach(declaration IN LISTS declarations)
  string(REGEX REPLACE ".*[ *\n]([a-z_]+)[(]$" "\\1" name "${declaration}")
  list(APPEND declared ${name})
endforeach()
list(REMOVE_ITEM declared __attribute__)  # where SPILLWAY_UM_API itself is defined
list(SORT declared)
if(NOT names STREQUAL declared)
  message(FATAL_ERROR "${LIBRARY} exports\n${names}\nand its header declares\n${declared}")
endif()
