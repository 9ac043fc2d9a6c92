# Writes the file OUT, from which ctest takes a test for each suite of the test program PROGRAM, with
# these PROPERTIES: program.Suite, since another program may have the suite, too. A suite counts as
# skipped when it came to its end and no test of it ran, so that no suite is skipped in silence.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests OUTPUT_VARIABLE listed TIMEOUT 60
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n[A-Za-z0-9_/]+\\." suites "\n${listed}")
get_filename_component(name ${PROGRAM} NAME)
set(tests "")
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite "${suite}")
  string(APPEND tests "add_test(${name}.${suite} [[${PROGRAM}]] --gtest_filter=${suite}.*)\n"
    "set_tests_properties(${name}.${suite} PROPERTIES SKIP_REGULAR_EXPRESSION "
    "[==[\\[  PASSED  \\] 0 tests\\.\n(\\[  SKIPPED \\] [^\n]*\n*)+$]==]")
  foreach(word IN LISTS PROPERTIES)
    string(APPEND tests " [[${word}]]")
  endforeach()
  string(APPEND tests ")\n")
endforeach()
file(WRITE ${OUT} "${tests}")
