# Fails unless the CUDA side's library exports its two functions and nothing else, so that none of its
# names meets the program's. Run: cmake -DNM=nm -DPREFIX=spillway_cuda -DLIBRARY=libspillway_cuda.so -P check_plugin_symbols.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${NM} --dynamic --defined-only --format=posix ${LIBRARY}
  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${listed}")
set(names "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " .*" "" name "${line}")
  list(APPEND names ${name})
endforeach()
list(SORT names)
if(NOT names STREQUAL "${PREFIX}_build;${PREFIX}_plugin")
  message(FATAL_ERROR "${LIBRARY} exports ${names}")
endif()
