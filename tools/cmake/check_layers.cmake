# Fails when a folder includes what it may not. Run: cmake -DROOT=. -P check_layers.cmake
#
# A folder's rule is a list of path prefixes that its #include "..." lines may start with. The longest
# folder that matches a file decides, so `um/host` has a rule of its own inside `um`.
cmake_minimum_required(VERSION 3.25)
get_filename_component(ROOT "${ROOT}" ABSOLUTE)

set(um_core "um/[a-z0-9_]+[.]h")  # the seams: headers directly in um/
set(allow_um               "${um_core}")
set(allow_um/host          "um/host/|${um_core}")
# Threads that do jobs in order serve a GPU as well, and its far memory is RAM.
set(allow_um/dropin        "um/dropin/|${um_core}")
set(allow_um/cuda          "um/cuda/|um/host/(available_memory|engine|thread_event)[.]h|${um_core}")
set(allow_nets             "nets/|${um_core}")
set(allow_prefetch         "prefetch/[a-z0-9_]+[.]h|prefetch/planners/|prefetch/learned/|${um_core}")
set(allow_prefetch/runtime "prefetch/|${um_core}")
set(allow_src              "src/[a-z0-9_]+[.]h|src/layers/|src/data/|nets/|prefetch/|${um_core}")
set(allow_src/host         "src/[a-z0-9_]+[.]h|src/host/|nets/|prefetch/|${um_core}")
set(allow_src/cuda         "src/[a-z0-9_]+[.]h|src/cuda/|nets/|prefetch/|um/cuda/|${um_core}")
set(allow_src/bench        "src/[a-z0-9_]+[.]h|src/bench/|src/data/|nets/|prefetch/|${um_core}")
set(allow_src/report       "src/[a-z0-9_]+[.]h|src/report/|prefetch/[a-z0-9_]+[.]h|${um_core}")
set(allow_src/sweep        "src/[a-z0-9_]+[.]h|src/sweep/|nets/|prefetch/|${um_core}")
set(allow_src/dropin       "src/[a-z0-9_]+[.]h|src/dropin/|prefetch/[a-z0-9_]+[.]h|prefetch/learned/|um/")
set(allow_src/cli          "src/|nets/|prefetch/|um/")
set(allow_tools            "tools/|src/|nets/|prefetch/|um/")
set(folders um um/host um/cuda um/dropin nets prefetch prefetch/runtime src src/host src/cuda
    src/bench src/report src/sweep src/dropin src/cli tools)

# Headers of other libraries that only some folders may see.
set(owners_of_cuda "um/cuda|src/cuda|um/dropin|tests")
set(cuda_headers "cuda|cudnn|cublas|cupti|curand|nccl|nvtx|nv/|thrust/|cub/|driver_types|vector_types|device_launch")
# Our headers of the CUDA side include them: whoever includes ours is of the CUDA side too.
set(users_of_cuda "${owners_of_cuda}|src/dropin|tools/golden")
set(owners_of_tbb "prefetch/runtime|prefetch/planners|src/sweep|tests")
set(owners_of_dnnl "src/host|tests")

function(check_file path)
  set(rule "")
  foreach(folder IN LISTS folders)
    if(path MATCHES "^${folder}/")
      set(rule "${folder}")  # folders lists an outer folder before its inner ones
    endif()
  endforeach()
  file(STRINGS ${ROOT}/${path} lines REGEX "^[ \t]*#[ \t]*include[ \t]")
  foreach(line IN LISTS lines)
    if(line MATCHES "\"([^\"]+)\"")
      set(target "${CMAKE_MATCH_1}")
      if(NOT target MATCHES "^(um|prefetch|nets|src|tools|tests)/")
        message(SEND_ERROR "${path}: include paths start at the repository root: ${line}")
      elseif(rule AND NOT target MATCHES "^(${allow_${rule}})")
        message(SEND_ERROR "${path}: ${rule} may not include ${target}")
      elseif(target MATCHES "^(um|src)/cuda/" AND NOT path MATCHES "^(${users_of_cuda})/")
        message(SEND_ERROR "${path}: only the CUDA side may include ${target}")
      endif()
    elseif(line MATCHES "<(${cuda_headers})" AND NOT path MATCHES "^(${owners_of_cuda})/")
      message(SEND_ERROR "${path}: CUDA headers belong in um/cuda and src/cuda: ${line}")
    elseif(line MATCHES "<(oneapi/)?tbb" AND NOT path MATCHES "^(${owners_of_tbb})/")
      message(SEND_ERROR "${path}: oneTBB runs planning and the hint issuer, nothing else: ${line}")
    elseif(line MATCHES "<(oneapi/)?dnnl" AND NOT path MATCHES "^(${owners_of_dnnl})/")
      message(SEND_ERROR "${path}: oneDNN belongs in src/host: ${line}")
    endif()
  endforeach()
endfunction()

foreach(top um prefetch nets src tools tests)
  file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/${top}/*.h ${ROOT}/${top}/*.cuh
                                           ${ROOT}/${top}/*.cpp ${ROOT}/${top}/*.cu)
  foreach(file IN LISTS files)
    check_file(${file})
  endforeach()
endforeach()

# Every test file is compiled: one that neither tests/CMakeLists.txt nor a list that it includes names
# is a test nobody runs.
set(listed "")
function(read_list path)
  file(READ ${ROOT}/tests/${path} text)
  string(REGEX REPLACE "#[^\n]*" "" text "${text}")
  string(REGEX MATCHALL "[A-Za-z0-9_./-]+_test[.]cpp" named "${text}")  # whole names
  string(REGEX MATCHALL "[A-Za-z0-9_./-]+/tests[.]cmake" included "${text}")
  foreach(inner IN LISTS included)
    read_list(${inner})
  endforeach()
  list(APPEND listed ${named})
  set(listed "${listed}" PARENT_SCOPE)
endfunction()
read_list(CMakeLists.txt)
file(GLOB_RECURSE tests RELATIVE ${ROOT}/tests ${ROOT}/tests/*_test.cpp)
foreach(test IN LISTS tests)
  if(NOT test IN_LIST listed)
    message(SEND_ERROR "tests/${test} is named in no list of tests (tests/CMakeLists.txt)")
  endif()
endforeach()
