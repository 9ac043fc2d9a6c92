# The CUDA plug-in, linked with an emulated GPU in the place of CUDA's libraries. Its own sources are those
# of the plug-in's archives, and its kernels those that the tests of kernels run on the processor. The program
# that loads it lies beside it.
set(device ${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/processor)
set(emulated ${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/emulated_gpu)
set(emulated_folder ${CMAKE_CURRENT_BINARY_DIR}/emulated)

file(GLOB emulated_sources CONFIGURE_DEPENDS ${emulated}/*.cpp)
list(FILTER emulated_sources EXCLUDE REGEX "emulated_kernels|_test[.]cpp")
if(NOT SPILLWAY_HAS_NCCL)
  list(FILTER emulated_sources EXCLUDE REGEX emulated_nccl)
endif()
add_library(emulated_gpu OBJECT ${emulated_sources})
target_include_directories(emulated_gpu PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(emulated_gpu SYSTEM PRIVATE
  ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR} ${CUPTI_INCLUDE_DIR}
  $<$<BOOL:${SPILLWAY_HAS_NCCL}>:${NCCL_INCLUDE_DIR}>)
target_compile_options(emulated_gpu PRIVATE -ffp-contract=off)
add_library(emulated_gpu_kernels OBJECT
  ${emulated}/emulated_kernels.cpp ${device}/access_hooks.cpp ${device}/fiber.cpp ${device}/grid_run.cpp)
target_include_directories(emulated_gpu_kernels BEFORE PRIVATE ${device}/include)
target_include_directories(emulated_gpu_kernels PRIVATE ${PROJECT_SOURCE_DIR})
foreach(target emulated_gpu emulated_gpu_kernels)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  target_link_libraries(${target} PRIVATE spillway_flags)
endforeach()
set_target_properties(cuda_processor_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)

add_library(emulated_cuda_plugin MODULE ${PROJECT_SOURCE_DIR}/src/cuda/plugin.cpp)
target_include_directories(emulated_cuda_plugin PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(emulated_cuda_plugin SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR})
target_compile_definitions(emulated_cuda_plugin PRIVATE SPILLWAY_BUILD="${SPILLWAY_BUILD}")
# The archives by their files: linking the targets would bring CUDA's libraries. Kernels come first, so that
# no object of the archives that nvcc compiled is taken.
function(link_emulated_gpu target)
  target_link_libraries(${target} PRIVATE
    spillway_flags emulated_gpu emulated_gpu_kernels cuda_processor_kernels ${ARGN}
    $<TARGET_FILE:spillway_cuda_backend> $<TARGET_FILE:spillway_um_cuda> spillway::src fmt::fmt ${CMAKE_DL_LIBS})
  add_dependencies(${target} spillway_cuda_backend spillway_um_cuda)
endfunction()
link_emulated_gpu(emulated_cuda_plugin)
target_link_options(emulated_cuda_plugin PRIVATE
  -Wl,--no-undefined -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)
set_target_properties(emulated_cuda_plugin PROPERTIES
  OUTPUT_NAME spillway_cuda LIBRARY_OUTPUT_DIRECTORY ${emulated_folder} UNITY_BUILD OFF
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
# The plug-in is what is found as NCCL and CUPTI, too.
foreach(library libnccl.so.2 libcupti.so.13)
  add_custom_command(TARGET emulated_cuda_plugin POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E create_symlink libspillway_cuda.so ${emulated_folder}/${library})
endforeach()
add_custom_command(OUTPUT ${emulated_folder}/spillway
  COMMAND ${CMAKE_COMMAND} -E rm -f ${emulated_folder}/spillway
  COMMAND ${CMAKE_COMMAND} -E create_hardlink $<TARGET_FILE:spillway> ${emulated_folder}/spillway
  DEPENDS spillway VERBATIM)
add_custom_target(emulated_spillway ALL DEPENDS ${emulated_folder}/spillway)
add_dependencies(emulated_spillway emulated_cuda_plugin)

spillway_test(emulated_gpu_tests
  SOURCES src/cuda/emulated_gpu/card_rules_test.cpp
  LINK emulated_gpu emulated_gpu_kernels spillway::um)
target_include_directories(emulated_gpu_tests SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})

# emulated_test(<program> <tests> [libraries ...]): some tests of a program for GPUs, on the emulated one.
function(emulated_test program tests)
  add_executable(emulated_${program} $<TARGET_OBJECTS:${program}>)
  link_emulated_gpu(emulated_${program} ${ARGN} GTest::gtest_main)
  add_test(NAME emulated_${program} COMMAND emulated_${program})
  set_tests_properties(emulated_${program} PROPERTIES
    LABELS cpu TIMEOUT 300 ENVIRONMENT "SPILLWAY_REQUIRE_GPU=1;GTEST_FILTER=${tests}")
endfunction()
emulated_test(um_cuda_gpu_tests "*")
# Our kernels' own tests run without streams in cuda_processor_kernel_tests.
set(library_tests "*WeightedLayer*:*AttentionAlgorithms*/0")
emulated_test(cuda_kernel_tests ${library_tests} spillway::host)
test_again(emulated_cuda_kernel_tests_in_bf16 emulated_cuda_kernel_tests
  "SPILLWAY_REQUIRE_GPU=1;SPILLWAY_TEST_PRECISION=bf16;GTEST_FILTER=${library_tests}" TIMEOUT 300)
emulated_test(cuda_golden_tests "Networks/*" spillway::host)

# Whole trainings on it, each file of them a test.
if(Python3_FOUND)
  foreach(subject trainings orders features kinds commands failures)
    python_tests(emulated_${subject} ${Python3_EXECUTABLE} src/cuda/emulated_gpu ${subject}_test.py
      TIMEOUT 600 ENVIRONMENT SPILLWAY_EMULATED_PROGRAM=${emulated_folder}/spillway)
  endforeach()
  if(SPILLWAY_HAS_NCCL AND TARGET spillway_mpi_plugin)
    add_custom_command(TARGET emulated_spillway POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:spillway_mpi_plugin> ${emulated_folder})
    add_dependencies(emulated_spillway spillway_mpi_plugin)
    python_tests(emulated_ranks ${Python3_EXECUTABLE} src/cuda/emulated_gpu ranks_test.py
      TIMEOUT 300 PROCESSORS 2)
    string(CONCAT environment "SPILLWAY_EMULATED_PROGRAM=${emulated_folder}/spillway;"
      "SPILLWAY_MPIRUN=${MPIEXEC_EXECUTABLE}")
    set_tests_properties(emulated_ranks PROPERTIES LABELS "cpu;mpi" ENVIRONMENT "${environment}")
  endif()
  # The stages that tools/gpu/run has for a real GPU.
  python_tests(emulated_gpu_run ${Python3_EXECUTABLE} src/cuda/emulated_gpu gpu_run_test.py
    TIMEOUT 900 ENVIRONMENT SPILLWAY_EMULATED_PROGRAM=${emulated_folder}/spillway)
endif()
