# Spoilt inputs for every reader, from fixed seeds. Longer: build/*/tests/fuzz --seconds 60
add_executable(fuzz fuzz/main.cpp fuzz/mutation.cpp fuzz/resealed.cpp fuzz/targets.cpp
               fuzz/checkpoint_target.cpp fuzz/drawn_trace.cpp fuzz/image_target.cpp fuzz/onnx_target.cpp
               fuzz/planning_targets.cpp fuzz/weights_target.cpp
               ${PROJECT_SOURCE_DIR}/src/dropin/planning/plan_of_trace.cpp
               ${PROJECT_SOURCE_DIR}/src/dropin/planning/plan_request.cpp)
target_include_directories(fuzz PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(fuzz PRIVATE
  SPILLWAY_FUZZ_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
target_link_libraries(fuzz PRIVATE CLI11::CLI11 spillway::cli_train spillway::data spillway::evaluate spillway::files spillway::nets_text spillway::onnx
  spillway::plan spillway::prefetch_files spillway::prefetch_placement spillway::prefetch_planners
  spillway::prefetch_runtime spillway::report
  spillway::train spillway::um_files spillway::weights golden_files spillway_flags)
foreach(target network trace plan profile planning machine bench checkpoint resumed safetensors idx cifar10 images tokens
          text weights onnx
    lock held_lock amount)
  add_test(NAME fuzz_${target} COMMAND fuzz --target ${target} --seconds 2)
  set_tests_properties(fuzz_${target} PROPERTIES LABELS cpu TIMEOUT 60)
endforeach()
