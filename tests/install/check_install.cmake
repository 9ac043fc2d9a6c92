# Installs BUILD (of the configuration CONFIG) into FOLDER, then configures, builds and runs the
# project beside this file against what was installed.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${FOLDER}/installed)
set(FOLDERS ${FOLDER}/installed)
include(${CMAKE_CURRENT_LIST_DIR}/check_search_paths.cmake)
foreach(page man/man1/spillway.1 bash-completion/completions/spillway zsh/site-functions/_spillway)
  file(STRINGS ${FOLDER}/installed/share/${page} found REGEX "train")
  if(NOT found)
    message(FATAL_ERROR "share/${page} does not name `spillway train`")
  endif()
endforeach()
# What comes with the program is found there, not in the folder it was built from.
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET ERROR_QUIET WORKING_DIRECTORY ${FOLDER}
  COMMAND installed/bin/spillway train --recipe small-gpt --net gpt:1,1,16,8 --batch 2 --steps 1
    --warmup-steps 0)
file(STRINGS ${FOLDER}/installed/bin/spillway found REGEX "cli/train/recipes|/tools/plot/sweep")
foreach(place IN LISTS found)
  if(IS_ABSOLUTE "${place}")
    message(FATAL_ERROR "the installed program looks for its files in ${place}")
  endif()
endforeach()
execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${FOLDER}/build
    -DCMAKE_PREFIX_PATH=${FOLDER}/installed -DCMAKE_BUILD_TYPE=${CONFIG}
    -DCMAKE_CXX_COMPILER=${COMPILER})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${FOLDER}/build/train_lenet
  OUTPUT_VARIABLE said ECHO_OUTPUT_VARIABLE)
if(NOT said MATCHES "step 20: loss [0-9.]+\n20 steps in [0-9.]+ MiB of [0-9.]+ MiB\n$")
  message(FATAL_ERROR "train_lenet did not report its 20 steps")
endif()

# Configures a project that does nothing but `find_package(spillway ${arguments})`.
function(find_spillway arguments)
  file(WRITE ${FOLDER}/finds/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)\n"
    "project(finds LANGUAGES CXX)\nfind_package(spillway ${arguments})\n")
  execute_process(OUTPUT_QUIET RESULT_VARIABLE result ERROR_VARIABLE errors
    COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${FOLDER}/finds -B ${FOLDER}/finds/build
      -DCMAKE_PREFIX_PATH=${FOLDER}/installed -DCMAKE_CXX_COMPILER=${COMPILER})
  set(result ${result} PARENT_SCOPE)
  string(REGEX REPLACE "[ \n]+" " " errors "${errors}")
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

foreach(arguments "REQUIRED" "REQUIRED COMPONENTS um_dropin plan_dropin trainer" "COMPONENTS trainr"
    "${SOVERSION} REQUIRED")
  find_spillway("${arguments}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "find_package(spillway ${arguments}): ${errors}")
  endif()
endforeach()
# A release is found in place of another one if a program's library may be that of the other one, too.
string(REGEX REPLACE "[.].*" "" major ${SOVERSION})
foreach(other ${SOVERSION}1 ${major} ${major}.1000)
  find_spillway("${other} REQUIRED")
  if(result EQUAL 0 OR NOT errors MATCHES "compatible")
    message(FATAL_ERROR "find_package(spillway ${other}) accepts another release: ${errors}")
  endif()
endforeach()
file(GLOB_RECURSE libraries RELATIVE ${FOLDER}/installed ${FOLDER}/installed/*.so.${SOVERSION})
list(LENGTH libraries count)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "the installed libraries with version ${SOVERSION} are: ${libraries}")
endif()
foreach(component program trainer um_dropin plan_dropin)
  file(REMOVE_RECURSE ${FOLDER}/component)
  execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
    COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${FOLDER}/component --component ${component})
  file(GLOB_RECURSE licences ${FOLDER}/component/share/doc/*/LICENSE ${FOLDER}/component/share/doc/*/copyright)
  list(LENGTH licences count)
  if(NOT count EQUAL 2)
    message(FATAL_ERROR "component ${component} comes with these licences: ${licences}")
  endif()
endforeach()

find_spillway("REQUIRED COMPONENTS trainr")
if(result EQUAL 0 OR NOT errors MATCHES "spillway has no component trainr; it has um_dropin, plan_dropin and trainer")
  message(FATAL_ERROR "find_package(spillway COMPONENTS trainr) does not say what is wrong: ${errors}")
endif()
