find_package(GTest REQUIRED)
include(GoogleTest)

# spillway_test(<name> SOURCES ... LINK ... [TIMEOUT seconds] [RANDOM_CASES n] [GPU] [TSAN])
# What a test says itself is optimised but little in release, which compiles in three quarters of the
# time, and not at all under sanitizers, which halves it: what is tested lies in libraries.
# RANDOM_CASES: how many cases rapidcheck makes for each property; 100 unless given. Sanitizers, with
# which a case takes 25 times as long, get a 25th. They draw from a fixed seed; what the environment's
# RC_PARAMS says is put behind that, after a space of its own, and counts: `RC_PARAMS=' seed=7' ctest`.
# TSAN: also run by the tsan preset, which builds nothing else, for what several threads do. The
# label cpu-tsan answers to `ctest -L cpu` and to `-L tsan`; gtest_discover_tests cannot pass on two
# labels.
add_custom_target(tsan_tests)

if(SPILLWAY_SANITIZE)
  set(test_optimisation -O0)
else()
  set(test_optimisation $<$<CONFIG:Release>:-O1>)
endif()

# What nearly every test includes, compiled once.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp "")
add_library(test_headers STATIC ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
target_compile_options(test_headers PRIVATE ${test_optimisation})
target_link_libraries(test_headers PRIVATE spillway_flags GTest::gtest nlohmann_json::nlohmann_json)
target_precompile_headers(test_headers PRIVATE
  <gtest/gtest.h> <nlohmann/json.hpp> <algorithm> <chrono> <filesystem> <fstream> <functional> <map>
  <memory> <optional> <random> <span> <string> <thread> <variant> <vector>)

function(spillway_test name)
  cmake_parse_arguments(PARSE_ARGV 1 t "GPU;TSAN" "TIMEOUT;RANDOM_CASES" "SOURCES;LINK")
  add_executable(${name} ${t_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${test_optimisation})
  target_link_libraries(${name} PRIVATE ${t_LINK} spillway_flags GTest::gtest_main)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  if(NOT t_LINK MATCHES "OpenMP")  # whose flag the precompiled headers lack
    target_precompile_headers(${name} REUSE_FROM test_headers)
  endif()
  if(NOT t_TIMEOUT)
    set(t_TIMEOUT 120)
  endif()
  set(properties LABELS cpu TIMEOUT ${t_TIMEOUT})
  if(t_TSAN)
    set(properties LABELS cpu-tsan TIMEOUT ${t_TIMEOUT})
    add_dependencies(tsan_tests ${name})
  endif()
  if(t_GPU)
    set(properties LABELS gpu TIMEOUT ${t_TIMEOUT} RESOURCE_LOCK gpu0)
  endif()
  set(random "seed=3")
  if(t_RANDOM_CASES)
    if(SPILLWAY_SANITIZE)
      math(EXPR t_RANDOM_CASES "${t_RANDOM_CASES} / 25")
    endif()
    string(APPEND random " max_success=${t_RANDOM_CASES}")
  endif()
  list(APPEND properties ENVIRONMENT_MODIFICATION "RC_PARAMS=string_prepend:${random}")
  if(SPILLWAY_SANITIZE STREQUAL "thread")
    list(APPEND properties
      ENVIRONMENT TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:history_size=7)
  endif()
  gtest_discover_tests(${name} PROPERTIES ${properties} DISCOVERY_TIMEOUT 60)
endfunction()
