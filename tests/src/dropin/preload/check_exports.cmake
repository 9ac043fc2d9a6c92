# Fails unless LIBRARY shows the CUDA runtime's functions that it stands in front of, of no version,
# and nothing else; or when the drop-in's PLUGIN, where there is one, has its CUDA runtime from
# outside: its own calls would then come back to LIBRARY.
# Run: cmake -DNM=nm -DLIBRARY=libspillway_um_preload.so -DPLUGIN=libspillway_um_cuda.so -P check_exports.cmake
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/../../../../tools/cmake/exported_names.cmake)
set(wanted cudaFree cudaFreeAsync cudaFreeAsync_ptsz cudaMalloc cudaMallocAsync cudaMallocAsync_ptsz)
exported_names(names ${LIBRARY})
if(NOT names STREQUAL wanted)
  message(FATAL_ERROR "${LIBRARY} exports\n${names}\nand not\n${wanted}")
endif()
if(PLUGIN)
  execute_process(COMMAND ${NM} --dynamic --undefined-only --format=posix ${PLUGIN}
    OUTPUT_VARIABLE wanted COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "cuda[A-Z][^ @\n]*" found "${wanted}")
  if(found)
    message(FATAL_ERROR "${PLUGIN} has ${found} from outside")
  endif()
endif()
