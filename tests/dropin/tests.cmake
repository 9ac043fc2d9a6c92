# Foreign programs over the installed drop-in, as its users build them.
function(foreign_test project)
  cmake_parse_arguments(PARSE_ARGV 1 f "" "WANTS;COMPONENT" "")
  if(NOT f_COMPONENT)
    set(f_COMPONENT um_dropin)
  endif()
  set(architecture "")
  if(CMAKE_CUDA_ARCHITECTURES)
    list(GET CMAKE_CUDA_ARCHITECTURES 0 architecture)
  endif()
  add_test(NAME dropin_foreign_${project}
    COMMAND ${CMAKE_COMMAND} -DPROJECT=${project} -DWANTS=${f_WANTS} -DCOMPONENT=${f_COMPONENT} -DBUILD=${PROJECT_BINARY_DIR}
      -DFOLDER=${CMAKE_CURRENT_BINARY_DIR}/dropin -DCONFIG=$<CONFIG> -DGENERATOR=${CMAKE_GENERATOR}
      -DCOMPILER=cc -DARCHITECTURE=${architecture}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/dropin/check_foreign.cmake)
  set_tests_properties(dropin_foreign_${project} PROPERTIES
    LABELS cpu TIMEOUT 300 SKIP_REGULAR_EXPRESSION "skipped: ")
endfunction()
if(NOT SPILLWAY_SANITIZE)
  foreign_test(c)
  foreign_test(iterations)
  foreign_test(pmr)
  foreign_test(plan COMPONENT plan_dropin)
  foreign_test(pkg_config WANTS pkg-config)
  foreign_test(thrust_tbb WANTS nvcc)  # whose package brings Thrust along
  foreign_test(cuda WANTS nvcc)
  set_tests_properties(dropin_foreign_cuda PROPERTIES RESOURCE_LOCK gpu0)
endif()
