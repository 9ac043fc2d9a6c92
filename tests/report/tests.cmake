# The report in headless Chromium, skipped where there is none.
if(Python3_FOUND)
  add_test(NAME report_page
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/report/run.py)
  set_tests_properties(report_page PROPERTIES LABELS cpu TIMEOUT 300 SKIP_RETURN_CODE 77
    ENVIRONMENT "SPILLWAY_PROGRAM=$<TARGET_FILE:spillway>")
endif()
