# Spoilt inputs for every reader, from fixed seeds. Longer: build/*/tests/fuzz --seconds 60
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.cpp)
add_executable(fuzz ${fuzz_sources} ${PROJECT_SOURCE_DIR}/src/dropin/planning/plan_of_trace.cpp)
target_include_directories(fuzz PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(fuzz PRIVATE
  SPILLWAY_FUZZ_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
target_link_libraries(fuzz PRIVATE CLI11::CLI11 spillway::cli spillway::onnx golden_files spillway_flags)
add_dependencies(asan_tests fuzz)
foreach(target network trace plan profile planning machine bench checkpoint resumed safetensors idx cifar10 images tokens
          text weights onnx
    lock held_lock amount)
  add_test(NAME fuzz_${target} COMMAND fuzz --target ${target} --seconds 2)
  set_tests_properties(fuzz_${target} PROPERTIES LABELS cpu-asan TIMEOUT 60)
endforeach()
