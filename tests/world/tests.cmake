# Whole trainings in which everything fails (tests/world/README.md): a library that stands in front of
# the C library's calls, and scripts that preload it. A sanitizer would have to come first.
if(Python3_FOUND AND NOT SPILLWAY_SANITIZE)
  file(GLOB world_sources CONFIGURE_DEPENDS world/*.cpp)
  add_library(spillway_world MODULE ${world_sources})
  target_include_directories(spillway_world PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(spillway_world PRIVATE spillway_flags ${CMAKE_DL_LIBS})
  python_tests(world_scripts ${Python3_EXECUTABLE} world *_test.py)
  add_test(NAME world
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/world --count 60
      --build ${PROJECT_BINARY_DIR})
  set_tests_properties(world PROPERTIES LABELS cpu TIMEOUT 600 PROCESSORS 2)
  # Each of the few calls of some kinds; the seed is of paging by memfd.
  add_test(NAME world_each_call
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/world --from 59 --build
      ${PROJECT_BINARY_DIR} --each-call
      allocate:ENOSPC,rename:kill,sync:EIO,write:ENOSPC)
  add_test(NAME world_kills
    COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/world --kills 1
      --build ${PROJECT_BINARY_DIR})
  set_tests_properties(world_each_call world_kills PROPERTIES LABELS cpu TIMEOUT 600 PROCESSORS 2)
endif()
