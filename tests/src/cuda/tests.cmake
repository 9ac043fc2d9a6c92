spillway_test(gpu_training_tests
  SOURCES src/gpu_training_test.cpp
  LINK spillway::host spillway::um_cuda)
plugin_symbols_test(cuda_plugin_symbols spillway_cuda spillway_cuda)
plugin_symbols_test(um_cuda_plugin_symbols spillway_um_cuda_plugin spillway_um_cuda)

# What cuDNN offers for an H200 that need not be there. The program writes golden/cudnn_h200.txt.
add_library(cudnn_listing STATIC ${PROJECT_SOURCE_DIR}/tools/golden/cudnn_listing.cpp)
target_link_libraries(cudnn_listing PUBLIC spillway::cuda_backend PRIVATE spillway_flags)
add_executable(write_cudnn_listing ${PROJECT_SOURCE_DIR}/tools/golden/write_cudnn_listing.cpp)
target_link_libraries(write_cudnn_listing PRIVATE cudnn_listing spillway_flags)
# Where there is a GPU, it writes the JSON that the listing is made from.
add_executable(write_device_properties
  ${PROJECT_SOURCE_DIR}/tools/golden/write_device_properties.cpp)
target_link_libraries(write_device_properties PRIVATE spillway::cuda_backend spillway_flags)
spillway_test(cuda_planning_tests
  SOURCES src/cuda/cudnn/device_less_planning_test.cpp
  LINK spillway::cuda_backend cudnn_listing golden_files
  TIMEOUT 300)
# What cuDNN compiles at run time, it lists where it finds a driver: this one has no device.
add_library(no_device_driver SHARED src/cuda/driver/no_device_driver.cpp)
set_target_properties(no_device_driver PROPERTIES
  OUTPUT_NAME cuda VERSION 1 SOVERSION 1 UNITY_BUILD OFF
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/no_device_driver)
spillway_test(cuda_attention_planning_tests
  SOURCES src/cuda/cudnn/attention_planning_test.cpp
  LINK spillway::cuda_backend golden_files
  TIMEOUT 300)
add_dependencies(cuda_attention_planning_tests no_device_driver)
target_compile_definitions(cuda_attention_planning_tests PRIVATE
  SPILLWAY_NO_DEVICE_DRIVER="$<TARGET_FILE:no_device_driver>")
spillway_test(cuda_layout_tests
  SOURCES src/cuda/layout/layout_test.cpp
  LINK spillway::cuda_backend)
spillway_test(cuda_matmul_tests # with functions of its own in place of cuBLASLt's
  SOURCES src/cuda/cudnn/matmul_algorithms_test.cpp
  LINK spillway::cuda_backend)
spillway_test(cuda_kernel_tests COMPUTES GPU SUITES
  SOURCES ${operation_tests} src/cuda/kernels/kernels_test.cpp
          src/cuda/kernels/vocabulary_rows_test.cpp src/cuda/cudnn/attention_algorithms_test.cpp
  LINK spillway::cuda_backend spillway::host
  TIMEOUT 300)
target_compile_definitions(cuda_kernel_tests PRIVATE SPILLWAY_KERNELS_OF_CUDA)
# The same operations on tensors of bfloat16, and those that multiply matrices with TF32.
foreach(precision bf16 tf32)
  add_test(NAME cuda_kernel_tests_in_${precision} COMMAND cuda_kernel_tests)
  set_tests_properties(cuda_kernel_tests_in_${precision} PROPERTIES
    LABELS gpu TIMEOUT 600 RESOURCE_LOCK gpu0
    SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\] [^\n]*\n*)+$"
    ENVIRONMENT SPILLWAY_TEST_PRECISION=${precision})
endforeach()
set_property(TEST cuda_kernel_tests_in_tf32 APPEND PROPERTY
  ENVIRONMENT GTEST_FILTER=*WeightedLayer*:*BatchNorm*)

# NCCL between GPUs of ranks: a library stands for NCCL, and a driver without a GPU for the driver.
if(SPILLWAY_HAS_NCCL)
  add_library(stand_in_nccl SHARED src/cuda/ranks/stand_in_nccl.cpp)
  set_target_properties(stand_in_nccl PROPERTIES
    UNITY_BUILD OFF LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/stand_in_nccl)
  target_include_directories(stand_in_nccl PRIVATE ${PROJECT_SOURCE_DIR} ${CUDAToolkit_INCLUDE_DIRS})
  target_include_directories(stand_in_nccl SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
  target_link_libraries(stand_in_nccl PRIVATE spillway_flags)
  spillway_test(nccl_tests
    SOURCES src/cuda/ranks/nccl_communicator_test.cpp
    LINK communicator_contract spillway::cuda_backend spillway::um_cuda ${CMAKE_DL_LIBS})
  spillway_test(two_gpu_training_tests
    SOURCES src/cuda/ranks/two_gpu_training_test.cpp
    LINK spillway::cuda_backend spillway::host ${CMAKE_DL_LIBS})
  foreach(program nccl_tests two_gpu_training_tests)
    add_dependencies(${program} stand_in_nccl)
    target_compile_definitions(${program} PRIVATE
      SPILLWAY_STAND_IN_NCCL="$<TARGET_FILE:stand_in_nccl>")
  endforeach()
endif()
spillway_test(cuda_rank_tests GPU
  SOURCES src/cuda/ranks/gpu_ranks_test.cpp
  LINK communicator_contract spillway::cuda_backend spillway::host spillway::prefetch
       spillway::src spillway::um_cuda spillway::um)
# What is listed of GPUs that need not be there.
spillway_test(device_listing_tests
  SOURCES expect_text.cpp src/cuda/driver/device_listing_test.cpp
  LINK spillway::cli spillway::um_cuda nlohmann_json::nlohmann_json)
target_compile_definitions(device_listing_tests PRIVATE
  SPILLWAY_TESTS_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}")
