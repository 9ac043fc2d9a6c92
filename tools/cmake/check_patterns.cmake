# Fails where one of PATTERNS, GoogleTest's, joined by colons, names no test of PROGRAM.
string(REPLACE ":" ";" PATTERNS "${PATTERNS}")
foreach(pattern IN LISTS PATTERNS)
  execute_process(COMMAND ${PROGRAM} --gtest_list_tests --gtest_filter=${pattern}
    OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
  if(NOT found MATCHES "\n  ")
    list(APPEND idle ${pattern})
  endif()
endforeach()
if(idle)
  message(FATAL_ERROR "NOT_SANITIZED of ${PROGRAM} names tests that it has not: ${idle}")
endif()
