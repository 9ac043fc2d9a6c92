# Texts, checkpoints and bench files that the program must go on saying and reading as it did.
spillway_test(golden_text_tests
  SOURCES expect_text.cpp expect_text_test.cpp
  LINK spillway::um_core
  TIMEOUT 300)
target_compile_definitions(golden_text_tests PRIVATE
  SPILLWAY_TESTS_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}")

if(Python3_FOUND)
  add_test(NAME mutants
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/mutants --check)
  set_tests_properties(mutants PROPERTIES LABELS cpu TIMEOUT 60)
endif()
