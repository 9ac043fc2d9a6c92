# Fails when a program of BIN, or what it loads while it runs, looks for a library in a folder that is
# not absolute: the loader itself says where it looks.
# Run: cmake -DBIN=build/release/bin -DFOLDER=loaded -P check_loaded_libraries.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE ${FOLDER})
file(MAKE_DIRECTORY ${FOLDER})

# Each may well fail, for want of a GPU or of ranks. The environment names no folders for libraries.
function(run)
  list(JOIN ARGN " " command)
  execute_process(WORKING_DIRECTORY ${FOLDER} OUTPUT_QUIET ERROR_QUIET TIMEOUT 60
    COMMAND ${CMAKE_COMMAND} -E env --unset=LD_LIBRARY_PATH LD_DEBUG=libs LD_DEBUG_OUTPUT=${FOLDER}/said ${ARGN})
  file(GLOB said ${FOLDER}/said.*)
  set(tries 0)
  foreach(file IN LISTS said)
    file(STRINGS ${file} lines REGEX "trying file=")
    list(LENGTH lines count)
    math(EXPR tries "${tries} + ${count}")
    list(FILTER lines EXCLUDE REGEX "trying file=/")
    if(lines)
      list(GET lines 0 line)
      message(SEND_ERROR "${command}: the loader says\n${line}")
    endif()
    file(REMOVE ${file})
  endforeach()
  if(tries EQUAL 0)
    message(SEND_ERROR "${command}: the loader does not say where it looks")
  endif()
endfunction()

set(training train --net lenet --batch 2 --steps 1 --data synthetic)
run(${BIN}/spillway devices)
run(${BIN}/spillway ${training} --device cuda)
run(OMPI_COMM_WORLD_SIZE=1 ${BIN}/spillway ${training} --ranks auto)
file(GLOB libraries ${BIN}/*.so)
foreach(library IN LISTS libraries)
  run(LD_PRELOAD=${library} true)
endforeach()
