find_package(GTest REQUIRED)
include(GoogleTest)

# spillway_test(<name> SOURCES ... LINK ... [TIMEOUT seconds] [RANDOM_CASES n] [COMPUTES] [GPU]
#               [ASAN] [TSAN] [NOT_SANITIZED pattern...] [SUITES] [WHOLE])
# SOURCES: files, or patterns such as nets/*_test.cpp.
# What a test says itself is not optimised, which compiles in three quarters of the time that a little
# takes: what is tested lies in libraries. In release, tests that compute much themselves get that
# little: COMPUTES, and those of RANDOM_CASES.
# RANDOM_CASES: how many cases rapidcheck makes for each property; 100 unless given. Sanitizers, with
# which a case takes 25 times as long, get a 25th, but 5 at least. They draw from a fixed seed; what the environment's
# RC_PARAMS says is put behind that, after a space of its own, and counts: `RC_PARAMS=' seed=7' ctest`.
# ASAN, TSAN: also run by the presets asan, for what handles memory and what comes from files, and tsan, for
# what several threads do; these build nothing else. The label cpu-asan-tsan answers to `ctest -L cpu`, to
# `-L asan` and to `-L tsan`; gtest_discover_tests cannot pass on two labels.
# NOT_SANITIZED: GoogleTest's patterns of cases that these presets leave out: plans, measurements and trainings,
# which take minutes there and use memory and threads as other cases do. Not with SUITES or WHOLE. Other
# presets have a test that each pattern names a case.
# SUITES: one test of ctest for each suite, not for each case: these are so many and short that most
# of their time would go into starting the program.
# WHOLE: one test of ctest for the whole program.
add_custom_target(asan_tests)
add_custom_target(tsan_tests)
function(spillway_test name)
  cmake_parse_arguments(PARSE_ARGV 1 t "COMPUTES;GPU;ASAN;TSAN;SUITES;WHOLE" "TIMEOUT;RANDOM_CASES" "SOURCES;LINK;NOT_SANITIZED")
  set(sources ${t_SOURCES})
  list(FILTER sources EXCLUDE REGEX "[*]")
  list(FILTER t_SOURCES INCLUDE REGEX "[*]")
  if(t_SOURCES)
    file(GLOB matched CONFIGURE_DEPENDS ${t_SOURCES})
    list(APPEND sources ${matched})
  endif()
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  if(SPILLWAY_SANITIZE)
    set_target_properties(${name} PROPERTIES SPILLWAY_IS_TEST ON)
    target_compile_options(${name} PRIVATE -O0)
  elseif(t_COMPUTES OR t_RANDOM_CASES)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  else()
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  endif()
  target_link_libraries(${name} PRIVATE ${t_LINK} spillway_flags GTest::gtest_main)
  if(NOT t_TIMEOUT)
    set(t_TIMEOUT 300)  # five times what the longest takes where nothing else runs
  endif()
  set(label cpu)
  foreach(sanitizer asan tsan)
    string(TOUPPER ${sanitizer} is_sanitized)
    if(t_${is_sanitized})
      string(APPEND label -${sanitizer})
      add_dependencies(${sanitizer}_tests ${name})
    endif()
  endforeach()
  set(properties LABELS ${label} TIMEOUT ${t_TIMEOUT})
  if(t_GPU)
    set(properties LABELS gpu TIMEOUT ${t_TIMEOUT} RESOURCE_LOCK gpu0)
  endif()
  set(random "seed=3")
  if(SPILLWAY_SANITIZE AND t_RANDOM_CASES GREATER 125)
    math(EXPR t_RANDOM_CASES "${t_RANDOM_CASES} / 25")
  elseif(SPILLWAY_SANITIZE)
    set(t_RANDOM_CASES 5)
  endif()
  if(t_RANDOM_CASES)
    string(APPEND random " max_success=${t_RANDOM_CASES}")
  endif()
  list(APPEND properties ENVIRONMENT_MODIFICATION "RC_PARAMS=string_prepend:${random}")
  if(SPILLWAY_SANITIZE STREQUAL "thread")
    list(APPEND properties
      ENVIRONMENT TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp:history_size=7)
  endif()
  if(t_WHOLE)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ${properties})
  elseif(t_SUITES)
    set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
    set(script ${PROJECT_SOURCE_DIR}/tools/cmake/discover_suites.cmake)
    set_property(TARGET ${name} APPEND PROPERTY LINK_DEPENDS ${script})
    add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS ${list} VERBATIM
      COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> -DOUT=${list}
        "-DPROPERTIES=${properties}" -P ${script})
    file(WRITE ${list}.included "if(EXISTS ${list})\n  include(${list})\nelse()\n"
      "  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)\nendif()\n")
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${list}.included)
  else()
    set(filter "")
    list(JOIN t_NOT_SANITIZED ":" patterns)
    if(t_NOT_SANITIZED AND SPILLWAY_SANITIZE)
      set(filter TEST_FILTER "-${patterns}")
    elseif(t_NOT_SANITIZED)
      add_test(NAME ${name}.NOT_SANITIZED COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}>
        -DPATTERNS=${patterns} -P ${PROJECT_SOURCE_DIR}/tools/cmake/check_patterns.cmake)
      set_tests_properties(${name}.NOT_SANITIZED PROPERTIES LABELS cpu TIMEOUT 60)
    endif()
    gtest_discover_tests(${name} ${filter} PROPERTIES ${properties} DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
