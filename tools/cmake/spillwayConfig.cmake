# find_package(spillway COMPONENTS trainer): spillway::trainer, which trains within a memory budget.
# find_package(spillway COMPONENTS um_dropin): the drop-in allocator alone, which needs no package.
# find_package(spillway COMPONENTS plan_dropin): the planners in a C function, which need none either,
# but oneTBB's library when they run.
# find_package(spillway): all, and a target for each folder: spillway::um_host, spillway::plan, ...
foreach(spillway_component IN LISTS spillway_FIND_COMPONENTS)
  if(NOT spillway_component MATCHES "^(um_dropin|plan_dropin|trainer)$"
      AND spillway_FIND_REQUIRED_${spillway_component})
    set(spillway_FOUND FALSE)
    set(spillway_NOT_FOUND_MESSAGE
      "spillway has no component ${spillway_component}; it has um_dropin, plan_dropin and trainer")
    return()
  endif()
endforeach()

set(spillway_file_of_um_dropin spillwayDropInTargets.cmake)
set(spillway_file_of_plan_dropin spillwayPlanDropInTargets.cmake)
foreach(spillway_component IN ITEMS um_dropin plan_dropin)
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/${spillway_file_of_${spillway_component}})
    include(${CMAKE_CURRENT_LIST_DIR}/${spillway_file_of_${spillway_component}})
    set(spillway_${spillway_component}_FOUND TRUE)
  elseif(NOT spillway_FIND_COMPONENTS OR spillway_FIND_REQUIRED_${spillway_component})
    set(spillway_FOUND FALSE)
    set(spillway_NOT_FOUND_MESSAGE
      "the component ${spillway_component} of spillway is not installed here")
    return()
  endif()
endforeach()
unset(spillway_component)
unset(spillway_file_of_um_dropin)
unset(spillway_file_of_plan_dropin)
if(spillway_FIND_COMPONENTS AND NOT "trainer" IN_LIST spillway_FIND_COMPONENTS)
  return()
endif()

if(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/spillwayTargets.cmake)
  set(spillway_FOUND FALSE)
  set(spillway_NOT_FOUND_MESSAGE "the component trainer of spillway is not installed here")
  return()
endif()
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(TBB)
find_dependency(OpenMP COMPONENTS CXX)
find_dependency(OpenSSL COMPONENTS Crypto)
find_dependency(dnnl)
find_dependency(fmt)
find_dependency(nlohmann_json)
if(NOT spillway_FIND_COMPONENTS)
  find_dependency(CLI11)
  find_package(CUDAToolkit QUIET)  # spillway::um_cuda alone needs it
endif()
include(${CMAKE_CURRENT_LIST_DIR}/spillwayTargets.cmake)
set(spillway_trainer_FOUND TRUE)
