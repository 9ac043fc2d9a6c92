# Whole training steps against PyTorch's numbers in golden/*.json, and whole trainings.
spillway_test(golden_tests COMPUTES
  SOURCES golden/drawn_numbers.cpp golden/golden_file.cpp golden/golden_training.cpp
          src/golden_test.cpp src/learning_test.cpp src/network_in_memory.cpp
          src/part_training_test.cpp src/micro_batch_training_test.cpp
  LINK spillway::host golden_files nlohmann_json::nlohmann_json
  TIMEOUT 300)
if(SPILLWAY_HAS_CUDA)
  spillway_test(cuda_golden_tests COMPUTES GPU
    SOURCES golden/drawn_numbers.cpp golden/golden_file.cpp golden/golden_training.cpp
          src/cuda/*_test.cpp src/network_in_memory.cpp
    LINK spillway::cuda_backend spillway::host golden_files nlohmann_json::nlohmann_json
    TIMEOUT 300)
endif()

# Weights by the names of other libraries, and files that these wrote.
spillway_test(weights_tests
  SOURCES golden/drawn_numbers.cpp src/network_in_memory.cpp src/io/weights/*_test.cpp
  LINK spillway::host golden_files nlohmann_json::nlohmann_json
  ASAN)

# Single layers against PyTorch, in both layouts.
spillway_test(golden_layer_tests COMPUTES
  SOURCES golden/drawn_numbers.cpp golden/layer_golden.cpp src/host/layer_golden_test.cpp
  LINK spillway::host golden_files nlohmann_json::nlohmann_json)
test_again(golden_layer_tests_with_avx2 golden_layer_tests DNNL_MAX_CPU_ISA=AVX2)
test_again(golden_layer_tests_in_bf16 golden_layer_tests SPILLWAY_TEST_PRECISION=bf16)

# The same of a network of each family, and the program that writes these for PyTorch.
add_library(family_networks STATIC ${PROJECT_SOURCE_DIR}/tools/golden/family_networks.cpp)
target_include_directories(family_networks PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(family_networks PUBLIC spillway::nets PRIVATE spillway_flags)
add_executable(write_family_network
  ${PROJECT_SOURCE_DIR}/tools/golden/write_family_network.cpp)
target_link_libraries(write_family_network PRIVATE family_networks spillway_flags)
spillway_test(golden_family_tests COMPUTES
  SOURCES golden/drawn_numbers.cpp golden/family_golden.cpp
          src/golden_family_test.cpp src/network_in_memory.cpp
  LINK spillway::host family_networks golden_files nlohmann_json::nlohmann_json
  TIMEOUT 300)
