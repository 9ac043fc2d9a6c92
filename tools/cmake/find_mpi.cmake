# Sets SPILLWAY_HAS_MPI: whether MPI is here (Debian's libopenmpi-dev), which ranks of a training speak
# over, and makes the target spillway_mpi_c of its C functions. AUTO takes the plug-in along when MPI is
# there; ON insists.
set(SPILLWAY_HAS_MPI OFF)
if(SPILLWAY_MPI STREQUAL "OFF")
  return()
endif()

set(MPI_CXX_SKIP_MPICXX ON)  # MPI's old C++ functions
find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  set(SPILLWAY_HAS_MPI ON)
  add_library(spillway_mpi_c INTERFACE)
  target_link_libraries(spillway_mpi_c INTERFACE MPI::MPI_CXX)
  target_link_options(spillway_mpi_c INTERFACE -Wl,--as-needed)  # the library of these functions is not
elseif(SPILLWAY_MPI STREQUAL "ON")
  message(FATAL_ERROR "SPILLWAY_MPI=ON, but MPI was not found. Install it (Debian: libopenmpi-dev), or use -DSPILLWAY_MPI=OFF.")
endif()
message(STATUS "MPI side: ${SPILLWAY_HAS_MPI}")
