# Our kernels for GPUs, compiled as C++ and run on the processor. Neither CUDA nor a device is needed.
if(SPILLWAY_SANITIZE)
  return()  # access_hooks.cpp takes the place of the thread sanitizer's run-time
endif()

file(GLOB kernel_files CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/cuda/kernels/*.cu ${PROJECT_SOURCE_DIR}/src/cuda/kernels/sequences/*.cu)
set_source_files_properties(${kernel_files} PROPERTIES LANGUAGE CXX)

# include/ has what stands for CUDA's headers. Every access to memory calls access_hooks.cpp.
set(device ${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/processor)
add_library(cuda_processor_kernels OBJECT ${kernel_files} ${device}/faulty_kernels.cpp)
target_include_directories(cuda_processor_kernels BEFORE PRIVATE ${device}/include)
target_compile_options(cuda_processor_kernels PRIVATE
  -include ${device}/include/cuda_runtime.h -g1 -ffp-contract=off -fno-strict-aliasing
  -Wno-unknown-pragmas $<$<CXX_COMPILER_ID:GNU>:-fno-extern-tls-init>
  -O1 -fsanitize=thread $<$<CXX_COMPILER_ID:GNU>:--param tsan-instrument-func-entry-exit=0>)
set_target_properties(cuda_processor_kernels PROPERTIES UNITY_BUILD OFF)
target_link_libraries(cuda_processor_kernels PRIVATE spillway_flags spillway::src)

# The device, and what of src/cuda no CUDA compiler is needed for.
add_library(cuda_processor STATIC
  ${device}/access_hooks.cpp ${device}/fiber.cpp ${device}/grid_run.cpp
  ${device}/memory_watch.cpp ${device}/runtime.cpp
  ${PROJECT_SOURCE_DIR}/src/cuda/cudnn/batch_norm.cpp
  ${PROJECT_SOURCE_DIR}/src/cuda/layout/parameter_layout.cpp
  ${PROJECT_SOURCE_DIR}/src/cuda/layout/staged_batch.cpp
  ${PROJECT_SOURCE_DIR}/src/cuda/layout/step_numbers.cpp
  ${PROJECT_SOURCE_DIR}/um/cuda/driver/check.cpp)
target_include_directories(cuda_processor BEFORE PUBLIC ${device}/include)
target_link_libraries(cuda_processor PUBLIC spillway::src PRIVATE spillway_flags)

set(own_operation_tests ${operation_tests})
list(FILTER own_operation_tests EXCLUDE REGEX weighted_operations)  # cuDNN's and cuBLASLt's
spillway_test(cuda_processor_kernel_tests COMPUTES
  SOURCES ${own_operation_tests} src/cuda/kernels/kernels_test.cpp
          src/cuda/kernels/vocabulary_rows_test.cpp src/cuda/processor/*_test.cpp
          src/cuda/processor/kernel_costs.cpp expect_text.cpp
  LINK cuda_processor_kernels cuda_processor spillway::host spillway::src
  TIMEOUT 300 WHOLE)
target_compile_definitions(cuda_processor_kernel_tests PRIVATE
  SPILLWAY_KERNELS_ON_PROCESSOR SPILLWAY_TESTS_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}")
# Large tensors test indices, not precision: in fp32 alone, as they take three quarters of the time.
test_again(cuda_processor_kernel_tests_in_bf16 cuda_processor_kernel_tests
  "SPILLWAY_TEST_PRECISION=bf16;GTEST_FILTER=-ThinTensor.*:*/RealImages.*:LargeShapes/*" TIMEOUT 300)
