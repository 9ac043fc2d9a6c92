# Fails when a program or library below FOLDERS would look for its libraries in a folder that is not
# absolute, such as the current one, where anybody may put a file. $ORIGIN is the file's own folder.
# Run: cmake -DREADELF=readelf "-DFOLDERS=build/release" -P check_search_paths.cmake
cmake_minimum_required(VERSION 3.25)

set(files "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB_RECURSE found LIST_DIRECTORIES false ${folder}/*)
  list(FILTER found EXCLUDE REGEX "[.](o|a|d|h|txt|json|cmake|ninja|py)$|/CMakeFiles/")
  foreach(file IN LISTS found)
    file(READ "${file}" magic LIMIT 4 HEX)
    if(magic STREQUAL "7f454c46")
      list(APPEND files "${file}")
    endif()
  endforeach()
endforeach()

set(element "(/[^:]*|[$]ORIGIN(/[^:]*)?)")
set(count 0)
foreach(file IN LISTS files)
  execute_process(COMMAND ${READELF} --dynamic --wide ${file}
    OUTPUT_VARIABLE entries ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  math(EXPR count "${count} + 1")
  string(REGEX MATCHALL "(RUNPATH|RPATH)[^\n]*" paths "${entries}")
  foreach(path IN LISTS paths)
    string(REGEX REPLACE "^.*\\[(.*)\\]$" "\\1" path "${path}")
    if(NOT path MATCHES "^${element}(:${element})*$")
      message(SEND_ERROR "${file} looks for its libraries in [${path}]")
    endif()
  endforeach()
  # A name with a slash is a path, from the current folder where it is not absolute.
  if(entries MATCHES "NEEDED[^\n]*\\[([^/\n][^]\n]*/[^]\n]*)\\]")
    message(SEND_ERROR "${file} needs ${CMAKE_MATCH_1}, a path from the current folder")
  endif()
endforeach()
if(count EQUAL 0)
  message(FATAL_ERROR "there is no program or library in ${FOLDERS}")
endif()
message(STATUS "${count} files look for libraries in absolute folders alone")
