# Whole trainings in which everything fails (tests/world/README.md): a library that stands in front of
# the C library's calls, and scripts that preload it. A sanitizer would have to come first.
if(Python3_FOUND AND NOT SPILLWAY_SANITIZE)
  add_library(spillway_world MODULE world/aborts.cpp world/allocations.cpp world/calls.cpp
    world/disk_log.cpp world/faults.cpp world/program_code.cpp)
  target_include_directories(spillway_world PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(spillway_world PRIVATE spillway_flags ${CMAKE_DL_LIBS})
  add_test(NAME world_scripts
    COMMAND ${Python3_EXECUTABLE} -B -m unittest discover --buffer --pattern "*_test.py"
      --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/world)
  set_tests_properties(world_scripts PROPERTIES LABELS cpu)
  add_test(NAME world
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/world --count 150
      --build ${PROJECT_BINARY_DIR})
  set_tests_properties(world PROPERTIES LABELS cpu TIMEOUT 600 PROCESSORS 2)
  # Each of the few calls of some kinds; the seed is of paging by memfd.
  add_test(NAME world_each_call
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/world --from 59 --build
      ${PROJECT_BINARY_DIR} --each-call
      allocate:EINTR,allocate:ENOSPC,open:kill,rename:EACCES,rename:kill,sync:EIO,sync:kill,unlink:kill,write:ENOSPC,write:kill)
  add_test(NAME world_kills
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/world --kills 2
      --build ${PROJECT_BINARY_DIR})
  set_tests_properties(world_each_call world_kills PROPERTIES LABELS cpu TIMEOUT 600 PROCESSORS 2)
endif()
