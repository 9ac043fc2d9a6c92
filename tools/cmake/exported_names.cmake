# exported_names(<variable> <library>): the names that a shared library shows, sorted, each with its
# version (name@@VERSION) where it has one. What defines a version itself is left out. NM: the program.
function(exported_names variable library)
  execute_process(COMMAND ${NM} --dynamic --defined-only --format=posix ${library}
    OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" names "${listed}")
  list(FILTER names EXCLUDE REGEX "^[A-Z_0-9.]+(@@[^ ]*)? A ")
  list(TRANSFORM names REPLACE " .*" "")
  list(SORT names)
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()
