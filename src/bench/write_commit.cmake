# Writes OUT, a header that names the commit of the repository ROOT; leaves the file alone where it
# says so already, so that nothing is compiled again.
cmake_minimum_required(VERSION 3.25)
set(commit "")
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${ROOT} rev-parse HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[0-9a-f]+$")
  set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT
"#pragma once

namespace spillway {

inline constexpr const char* kBuildCommit = \"${commit}\";

}  // namespace spillway
" @ONLY)
