spillway_test(um_core_tests
  SOURCES um/arena_test.cpp um/bytes_test.cpp um/error_test.cpp um/ledger_test.cpp
          um/text/free_names_test.cpp um/text/json_limits_test.cpp um/text/shortest_decimal_test.cpp
  LINK spillway::um_core spillway::um_text
  TSAN)

spillway_test(um_host_tests
  SOURCES um/machine/available_memory_test.cpp um/machine/growing_memory_test.cpp
          um/host/far/checked_far_test.cpp
          um/host/far/copy_bytes_test.cpp um/host/copy_space_test.cpp um/host/far/crc32c_test.cpp
          um/threads/engine_test.cpp um/host/far/far_file_failure_test.cpp
          um/host/far/far_store_test.cpp um/host/host_device_test.cpp
          um/host/host_memory_test.cpp um/host/far/link_test.cpp
          um/threads/back_off_test.cpp um/threads/sleep_until_test.cpp
          um/threads/thread_stream_test.cpp
  LINK spillway::um_host spillway::um_machine
  TSAN)

# Replaces operator new.
spillway_test(um_no_memory_tests
  SOURCES um/threads/no_memory_test.cpp
  LINK spillway::um_threads
  TSAN)

spillway_test(um_uffd_move_tests COMPUTES
  SOURCES um/host/managed/paging_contract_test.cpp
  LINK spillway::um_host_managed
  TIMEOUT 300 SUITES TSAN)
target_compile_definitions(um_uffd_move_tests PRIVATE SPILLWAY_PAGING=kUffdMove)
# Not under TSan: it takes mapping a page anew for a write.
spillway_test(um_memfd_segv_tests COMPUTES
  SOURCES um/host/managed/paging_contract_test.cpp
  LINK spillway::um_host_managed
  TIMEOUT 300 SUITES)
target_compile_definitions(um_memfd_segv_tests PRIVATE SPILLWAY_PAGING=kMemfdSegv)

# Not under TSan either: it does not see what OpenMP's threads wait for.
spillway_test(um_paging_tests
  SOURCES um/host/managed/eviction_order_test.cpp um/host/managed/fault_signal_test.cpp
          um/host/managed/fault_stack_test.cpp um/host/managed/managed_region_test.cpp
          um/host/managed/memfd_segv_test.cpp um/host/managed/near_pool_test.cpp
          um/host/managed/page_grid_test.cpp um/host/managed/uffd_move_test.cpp
  LINK spillway::um_host_managed spillway::um_machine OpenMP::OpenMP_CXX)

# The space under the drop-in allocator.
spillway_test(um_space_tests
  SOURCES um/dropin/allocations_test.cpp um/dropin/moves_under_way_test.cpp
          um/dropin/space_test.cpp
  LINK spillway::um_host spillway::um_space
  TSAN)

if(SPILLWAY_HAS_CUDA)
  # Under TSan with -DSPILLWAY_CUDA=ON: the preset builds without.
  spillway_test(um_cuda_tests
  SOURCES gpu_test.cpp um/cuda/driver/check_test.cpp um/cuda/copy_space_test.cpp
          um/cuda/happens_before_test.cpp
          um/cuda/driver/driver_counters_test.cpp um/cuda/cuda_device_test.cpp
          um/cuda/managed/managed_room_test.cpp um/cuda/managed/cuda_managed_space_test.cpp
          um/cuda/managed/dead_pages_test.cpp
          um/cuda/streams/move_queue_test.cpp um/cuda/managed/slab_pages_test.cpp
          um/cuda/streams/cuda_lanes_test.cpp um/cuda/streams/cuda_stream_test.cpp
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
  LINK spillway::um_cuda spillway::um_space
    TSAN)
  target_include_directories(um_cuda_space_tests SYSTEM PRIVATE ${CUPTI_INCLUDE_DIR})
  spillway_test(um_cuda_step_tests
  SOURCES um/cuda/failing_calls_test.cpp um/cuda/planned_step_test.cpp
  LINK spillway::prefetch_runtime_runner spillway::um_cuda
    TSAN)
  # Not under TSan: `joint` makes its plans in TBB loops, whose hand-over TSan does not see.
  spillway_test(um_cuda_order_tests COMPUTES
  SOURCES um/cuda/host_calls_test.cpp um/cuda/managed_calls_test.cpp
          um/cuda/ordered_steps_test.cpp
  LINK spillway::nets spillway::prefetch_files spillway::prefetch_planners
       spillway::prefetch_runtime_runner spillway::step spillway::um_cuda spillway::um_host)
  spillway_test(um_cuda_gpu_tests GPU
  SOURCES um/cuda/driver/check_gpu_test.cpp um/cuda/cuda_device_gpu_test.cpp
          um/cuda/managed/cuda_managed_memory_test.cpp
  LINK spillway::prefetch_runtime_runner spillway::um_cuda)
endif()
