# Installs BUILD (of the configuration CONFIG) into FOLDER, then configures, builds and runs the
# project beside this file against what was installed.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${FOLDER})
execute_process(COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET
  COMMAND ${CMAKE_COMMAND} --install ${BUILD} --config ${CONFIG} --prefix ${FOLDER}/installed)
foreach(page man/man1/spillway.1 bash-completion/completions/spillway zsh/site-functions/_spillway)
  file(STRINGS ${FOLDER}/installed/share/${page} found REGEX "train")
  if(NOT found)
    message(FATAL_ERROR "share/${page} does not name `spillway train`")
  endif()
endforeach()
execute_process(COMMAND_ERROR_IS_FATAL ANY
  COMMAND ${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR} -B ${FOLDER}/build
    -DCMAKE_PREFIX_PATH=${FOLDER}/installed -DCMAKE_BUILD_TYPE=${CONFIG}
    -DCMAKE_CXX_COMPILER=${COMPILER})
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${CMAKE_COMMAND} --build ${FOLDER}/build)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${FOLDER}/build/consumer)
