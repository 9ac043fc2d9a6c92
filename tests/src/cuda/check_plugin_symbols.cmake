# Fails unless the CUDA side's library exports its two functions and nothing else, so that none of its
# names meets the program's. Run: cmake -DNM=nm -DPREFIX=spillway_cuda -DLIBRARY=libspillway_cuda.so -P check_plugin_symbols.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../../tools/cmake/exported_names.cmake)
exported_names(names ${LIBRARY})
if(NOT names STREQUAL "${PREFIX}_build;${PREFIX}_plugin")
  message(FATAL_ERROR "${LIBRARY} exports ${names}")
endif()
