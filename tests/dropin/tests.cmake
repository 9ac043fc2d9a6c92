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

# The drop-in on the emulated GPU. CUDA's shared runtime is the emulated one, for the product's plug-in
# and for foreign programs, which are compiled with NVIDIA's headers and linked with NVIDIA's library.
if(TARGET emulated_gpu AND Python3_FOUND)
  set(gpu_folder ${CMAKE_CURRENT_BINARY_DIR}/dropin_gpu)
  add_library(emulated_cudart SHARED
    $<FILTER:$<TARGET_OBJECTS:emulated_gpu>,EXCLUDE,cudnn|cublas> $<TARGET_OBJECTS:emulated_gpu_kernels>)
  target_link_libraries(emulated_cudart PRIVATE spillway::um ${CMAKE_DL_LIBS})
  set(map ${CMAKE_CURRENT_SOURCE_DIR}/src/dropin/preload/fake_cudart.map)
  target_link_options(emulated_cudart PRIVATE -Wl,--no-undefined -Wl,--version-script=${map})
  set_target_properties(emulated_cudart PROPERTIES
    OUTPUT_NAME cudart SOVERSION 13 LINKER_LANGUAGE CXX LINK_DEPENDS ${map})

  add_library(emulated_um_cuda_plugin MODULE ${PROJECT_SOURCE_DIR}/src/dropin/cuda_plugin.cpp)
  target_include_directories(emulated_um_cuda_plugin PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(emulated_um_cuda_plugin SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(emulated_um_cuda_plugin PRIVATE SPILLWAY_BUILD="${SPILLWAY_BUILD}")
  # The archive by its file: linking the target would bring CUDA's static runtime.
  target_link_libraries(emulated_um_cuda_plugin PRIVATE
    spillway_flags $<TARGET_FILE:spillway_um_cuda> emulated_cudart spillway::um ${CMAKE_DL_LIBS})
  add_dependencies(emulated_um_cuda_plugin spillway_um_cuda)
  target_link_options(emulated_um_cuda_plugin PRIVATE -Wl,--no-undefined -Wl,--exclude-libs,ALL)
  set_target_properties(emulated_um_cuda_plugin PROPERTIES
    OUTPUT_NAME spillway_um_cuda UNITY_BUILD OFF CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

  # The drop-in looks for its plug-in beside itself.
  set(dropin ${gpu_folder}/libspillway_um.so.${SPILLWAY_SOVERSION})
  set(preload ${gpu_folder}/libspillway_um_preload.so)
  add_custom_command(OUTPUT ${dropin} ${preload} VERBATIM DEPENDS spillway_um_dropin spillway_um_preload
    COMMAND ${CMAKE_COMMAND} -E make_directory ${gpu_folder}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${dropin} ${preload}
    COMMAND ${CMAKE_COMMAND} -E create_hardlink $<TARGET_FILE:spillway_um_dropin> ${dropin}
    COMMAND ${CMAKE_COMMAND} -E create_hardlink $<TARGET_FILE:spillway_um_preload> ${preload})
  add_custom_target(dropin_gpu_links ALL DEPENDS ${dropin} ${preload})

  foreach(program spaces resources unchanged)
    add_executable(dropin_gpu_${program} dropin/gpu/${program}.cpp)
    target_link_libraries(dropin_gpu_${program} PRIVATE spillway_flags CUDA::cudart)
    set_target_properties(dropin_gpu_${program} PROPERTIES OUTPUT_NAME ${program} UNITY_BUILD OFF)
    add_dependencies(dropin_gpu_${program} emulated_um_cuda_plugin dropin_gpu_links)
  endforeach()
  find_path(CCCL_INCLUDE_DIR thrust/version.h REQUIRED HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES cccl)
  target_include_directories(dropin_gpu_resources SYSTEM PRIVATE ${CCCL_INCLUDE_DIR})
  foreach(program spaces resources)
    target_link_libraries(dropin_gpu_${program} PRIVATE spillway::um_dropin)
  endforeach()
  set_target_properties(
    emulated_cudart emulated_um_cuda_plugin dropin_gpu_spaces dropin_gpu_resources dropin_gpu_unchanged
    PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${gpu_folder} RUNTIME_OUTPUT_DIRECTORY ${gpu_folder})
  python_tests(dropin_gpu ${Python3_EXECUTABLE} dropin/gpu gpu_test.py
    TIMEOUT 300 ENVIRONMENT SPILLWAY_DROPIN_GPU=${gpu_folder})
endif()
