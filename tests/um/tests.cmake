spillway_test(um_core_tests
  SOURCES um/*_test.cpp
  LINK spillway::um
  ASAN TSAN)

spillway_test(um_host_tests
  SOURCES um/machine/available_memory_test.cpp um/host/far/*_test.cpp um/host/host_device_test.cpp
          um/threads/engine_test.cpp
  LINK spillway::um
  ASAN TSAN)

# How a program loads what it can do without.
add_library(empty_plug_in MODULE um/machine/empty_plug_in.cpp)
target_link_libraries(empty_plug_in PRIVATE spillway_flags)
set_target_properties(empty_plug_in PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/plug_in)
spillway_test(um_plug_in_tests
  SOURCES um/machine/plug_in_test.cpp
  LINK spillway::um
  ASAN)
target_compile_definitions(um_plug_in_tests PRIVATE SPILLWAY_PLUG_IN_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/plug_in"
  SPILLWAY_PLUG_IN_NAME="plug_in")
add_dependencies(um_plug_in_tests empty_plug_in)

# Replaces operator new.
spillway_test(um_no_memory_tests
  SOURCES um/threads/no_memory_test.cpp
  LINK spillway::um
  ASAN TSAN)

spillway_test(um_uffd_move_tests COMPUTES
  SOURCES um/host/managed/paging_contract_test.cpp
  LINK spillway::um
  TIMEOUT 300 SUITES ASAN TSAN)
target_compile_definitions(um_uffd_move_tests PRIVATE SPILLWAY_PAGING=kUffdMove)
# Not under TSan: it takes mapping a page anew for a write.
spillway_test(um_memfd_segv_tests COMPUTES
  SOURCES um/host/managed/paging_contract_test.cpp
  LINK spillway::um
  TIMEOUT 300 SUITES ASAN)
target_compile_definitions(um_memfd_segv_tests PRIVATE SPILLWAY_PAGING=kMemfdSegv)

# Not under TSan either: it does not see what OpenMP's threads wait for.
spillway_test(um_paging_tests
  SOURCES um/host/managed/fault_signal_test.cpp
          um/host/managed/managed_region_test.cpp um/host/managed/uffd_move_test.cpp
  LINK spillway::um OpenMP::OpenMP_CXX
  ASAN)

# The space under the drop-in allocator.
spillway_test(um_space_tests
  SOURCES um/dropin/space_test.cpp
  LINK spillway::um
  ASAN TSAN)

if(SPILLWAY_HAS_CUDA)
  # Under TSan with -DSPILLWAY_CUDA=ON: the preset builds without.
  spillway_test(um_cuda_tests
    SOURCES gpu_test.cpp um/cuda/driver/driver_counters_test.cpp um/cuda/cuda_device_test.cpp
          um/cuda/happens_before_test.cpp um/cuda/managed/cuda_managed_space_test.cpp
          um/cuda/managed/slab_pages_test.cpp um/cuda/streams/cuda_streams_test.cpp
    LINK spillway::um_cuda
    TSAN)
  target_include_directories(um_cuda_tests SYSTEM PRIVATE ${CUPTI_INCLUDE_DIR})
  # The real calls over a runtime of the tests', whose functions come before CUDA's. It has those that
  # CUDA 12.5 and newer are asked for.
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.5)
    spillway_test(um_cuda_runtime_tests
      SOURCES um/cuda/driver/runtime_api_test.cpp um/cuda/driver/stand_in_cudart.cpp
      LINK spillway::um_cuda
      TSAN)
  endif()
  # Replaces operator new.
  spillway_test(um_cuda_no_memory_tests
    SOURCES um/cuda/streams/cuda_no_memory_test.cpp
    LINK spillway::um_cuda
    TSAN)
  target_include_directories(um_cuda_no_memory_tests SYSTEM PRIVATE ${CUPTI_INCLUDE_DIR})
  spillway_test(um_cuda_space_tests
    SOURCES um/dropin/cuda_space_test.cpp
    LINK spillway::um_cuda
    TSAN)
  target_include_directories(um_cuda_space_tests SYSTEM PRIVATE ${CUPTI_INCLUDE_DIR})
  spillway_test(um_cuda_step_tests
    SOURCES um/cuda/planned_step_test.cpp
    LINK spillway::prefetch spillway::um_cuda
    TSAN)
  # Not under TSan: `joint` makes its plans in TBB loops, whose hand-over TSan does not see.
  spillway_test(um_cuda_order_tests COMPUTES
    SOURCES um/cuda/ordered_steps_test.cpp
    LINK spillway::src spillway::um_cuda)
  spillway_test(um_cuda_gpu_tests GPU
    SOURCES um/cuda/cuda_device_gpu_test.cpp
    LINK spillway::prefetch spillway::um_cuda)
endif()
