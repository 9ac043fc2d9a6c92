# Texts, checkpoints and bench files that the program must go on saying and reading as it did.
spillway_test(golden_text_tests
  SOURCES expect_text.cpp expect_text_test.cpp src/cli/program.cpp src/cli/golden/*_test.cpp
  LINK spillway::um golden_files nlohmann_json::nlohmann_json
  TIMEOUT 300 ASAN
  NOT_SANITIZED JsonShape* ReportPages.* Words.* Of/OldCheckpoint.* Of/Refusals.*/budgets
           Of/Refusals.*/evaluations Of/Refusals.*/exports Of/Refusals.*/images
           Of/Refusals.*/samples Of/Refusals.*/sweeps Of/Refusals.*/texts)
add_dependencies(golden_text_tests spillway)
target_compile_definitions(golden_text_tests PRIVATE
  SPILLWAY_TESTS_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}"
  SPILLWAY_PROGRAM="$<TARGET_FILE:spillway>"
  SPILLWAY_SLOW_BUILD=$<NOT:$<CONFIG:Release,RelWithDebInfo>>
  SPILLWAY_SAME_BITS=$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>)

if(Python3_FOUND)
  add_test(NAME mutants
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/mutants --check)
  add_test(NAME kernel_mutations
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/kernels/mutations --check)
  set_tests_properties(mutants kernel_mutations PROPERTIES LABELS cpu TIMEOUT 60)
endif()
