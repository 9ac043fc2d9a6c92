if(Python3_FOUND)
  add_test(NAME mutants
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/mutants --check)
  set_tests_properties(mutants PROPERTIES LABELS cpu TIMEOUT 60)
endif()
