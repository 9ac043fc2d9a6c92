# Whole training steps against PyTorch's numbers in golden/*.json, and whole trainings.
spillway_test(golden_tests COMPUTES
  SOURCES golden/drawn_numbers.cpp golden/drawn_state.cpp golden/golden_file.cpp
          golden/golden_training.cpp src/golden_test.cpp src/learning_test.cpp
          src/network_families_test.cpp src/network_in_memory.cpp src/part_training_test.cpp
          src/transformer_training_test.cpp
          src/state_numbers.cpp src/sub_batch_adam_test.cpp src/sub_batch_training_test.cpp
  LINK spillway::files spillway::host spillway::nets_text spillway::prefetch_planners
       spillway::train spillway::um_host golden_files nlohmann_json::nlohmann_json
  SEPARATE src/sub_batch_adam_test.cpp
  TIMEOUT 300)
if(SPILLWAY_HAS_CUDA)
  spillway_test(cuda_golden_tests COMPUTES GPU
  SOURCES golden/drawn_numbers.cpp golden/drawn_state.cpp golden/golden_file.cpp
          golden/golden_training.cpp src/cuda/attention_training_test.cpp src/cuda/golden_test.cpp
          src/network_in_memory.cpp src/state_numbers.cpp
  LINK spillway::cuda_backend spillway::files spillway::host spillway::nets_text
       spillway::prefetch_planners spillway::train spillway::um_cuda_managed spillway::um_host
       golden_files nlohmann_json::nlohmann_json
    TIMEOUT 300)
endif()

# Weights by the names of other libraries, and files that these wrote.
spillway_test(weights_tests
  SOURCES golden/drawn_numbers.cpp src/network_in_memory.cpp src/state_numbers.cpp
          src/weights/bad_weight_file_test.cpp src/weights/golden_weights_test.cpp
          src/weights/model_files_test.cpp
          src/weights/name_pattern_test.cpp
          src/weights/round_trip_test.cpp src/weights/weight_file_test.cpp
  LINK spillway::files spillway::host spillway::nets_text spillway::prefetch_planners
       spillway::train spillway::um_host spillway::weights golden_files nlohmann_json::nlohmann_json)

# Single layers against PyTorch, in both layouts.
spillway_test(golden_layer_tests COMPUTES
  SOURCES golden/drawn_numbers.cpp golden/layer_golden.cpp src/host/layer_golden_test.cpp
  LINK spillway::host spillway::nets_text golden_files nlohmann_json::nlohmann_json)
add_test(NAME golden_layer_tests_with_avx2 COMMAND golden_layer_tests)
set_tests_properties(golden_layer_tests_with_avx2 PROPERTIES
  LABELS cpu ENVIRONMENT "DNNL_MAX_CPU_ISA=AVX2")
add_test(NAME golden_layer_tests_in_bf16 COMMAND golden_layer_tests)
set_tests_properties(golden_layer_tests_in_bf16 PROPERTIES
  LABELS cpu ENVIRONMENT "SPILLWAY_TEST_PRECISION=bf16")

# The same of a network of each family, and the program that writes these for PyTorch.
add_library(family_networks STATIC ${PROJECT_SOURCE_DIR}/tools/golden/family_networks.cpp)
target_include_directories(family_networks PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(family_networks PUBLIC spillway::nets_text PRIVATE spillway_flags)
add_executable(write_family_network
  ${PROJECT_SOURCE_DIR}/tools/golden/write_family_network.cpp)
target_link_libraries(write_family_network PRIVATE family_networks spillway_flags)
spillway_test(golden_family_tests COMPUTES
  SOURCES golden/drawn_numbers.cpp golden/drawn_state.cpp golden/family_golden.cpp
          golden/family_training.cpp src/golden_bf16_test.cpp src/golden_family_test.cpp
          src/network_in_memory.cpp src/state_numbers.cpp
  LINK spillway::files spillway::host spillway::prefetch_planners spillway::train
       spillway::um_host family_networks golden_files nlohmann_json::nlohmann_json
  TIMEOUT 300)
