# Installs COMPONENT of BUILD (of the configuration CONFIG) into FOLDER/installed, then configures,
# builds and runs the project PROJECT beside this file against that. WANTS: a program it needs, without
# which the test says so and is skipped. The project pkg_config is c's program, by the C compiler COMPILER.
cmake_minimum_required(VERSION 3.25)
if(WANTS)
  find_program(found NAMES ${WANTS} HINTS /usr/local/cuda/bin)
  if(NOT found)
    message("skipped: there is no ${WANTS} on this machine")
    return()
  endif()
endif()
set(FOLDER ${FOLDER}/${PROJECT})  # other projects are built at the same time
file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --component ${COMPONENT}
    --prefix ${FOLDER}/installed)

if(PROJECT STREQUAL "pkg_config")
  file(GLOB_RECURSE pc ${FOLDER}/installed/*/spillway_um.pc)
  cmake_path(GET pc PARENT_PATH folder)
  set(ENV{PKG_CONFIG_PATH} ${folder})
  execute_process(COMMAND ${found} --cflags --libs spillway_um
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags UNIX_COMMAND "${flags}")
  execute_process(COMMAND ${found} --variable=libdir spillway_um
    OUTPUT_VARIABLE libraries OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  file(MAKE_DIRECTORY ${FOLDER}/build)
  execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${COMPILER} -o ${FOLDER}/build/foreign ${CMAKE_CURRENT_LIST_DIR}/c/main.c ${flags})
  set(ENV{LD_LIBRARY_PATH} ${libraries})
else()
  set(cuda "")
  if(WANTS STREQUAL "nvcc")
    set(cuda -DCMAKE_CUDA_COMPILER=${found})
  endif()
  if(ARCHITECTURE)  # else, of a build without CUDA, it is nvcc's choice
    list(APPEND cuda -DCMAKE_CUDA_ARCHITECTURES=${ARCHITECTURE})
  endif()
  execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
    COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/${PROJECT} -B ${FOLDER}/build
      --no-warn-unused-cli -DCMAKE_PREFIX_PATH=${FOLDER}/installed -DCMAKE_BUILD_TYPE=Release ${cuda})
  execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build)
endif()
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${FOLDER}/build/foreign)
