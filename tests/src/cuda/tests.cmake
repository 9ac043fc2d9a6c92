spillway_test(gpu_training_tests SOURCES src/gpu_training_test.cpp
  LINK spillway::um_cuda spillway::um spillway::training spillway::host)
add_test(NAME cuda_plugin_symbols
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DPREFIX=spillway_cuda
    -DLIBRARY=$<TARGET_FILE:spillway_cuda>
    -P ${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/check_plugin_symbols.cmake)
add_test(NAME um_cuda_plugin_symbols
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DPREFIX=spillway_um_cuda
    -DLIBRARY=$<TARGET_FILE:spillway_um_cuda_plugin>
    -P ${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/check_plugin_symbols.cmake)
set_tests_properties(cuda_plugin_symbols um_cuda_plugin_symbols PROPERTIES LABELS cpu)

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
  SOURCES src/cuda/channel_matrix_test.cpp src/cuda/device_less_planning_test.cpp
          src/cuda/engine_choice_test.cpp
  LINK cudnn_listing golden_files
  TIMEOUT 300)
spillway_test(cuda_layout_tests
  SOURCES src/cuda/bfloat16_test.cpp src/cuda/layout_test.cpp src/cuda/parameter_layout_test.cpp
  LINK spillway::cuda_backend)
spillway_test(cuda_kernel_tests GPU
  SOURCES src/cuda/accumulate_gradients_test.cpp src/cuda/adam_update_test.cpp
          src/cuda/concat_test.cpp src/cuda/crop_test.cpp src/cuda/dropout_test.cpp
          src/cuda/element_wise_test.cpp src/cuda/load_batch_test.cpp
          src/cuda/local_response_norm_test.cpp src/cuda/pool_test.cpp
          src/cuda/sgd_update_test.cpp src/cuda/softmax_cross_entropy_test.cpp
  LINK spillway::cuda_backend spillway::host)
spillway_test(cuda_library_tests GPU
  SOURCES src/cuda/batch_norm_test.cpp src/cuda/convolution_test.cpp src/cuda/linear_test.cpp
          src/cuda/transposed_convolution_test.cpp
  LINK spillway::cuda_backend spillway::host
  TIMEOUT 300)
