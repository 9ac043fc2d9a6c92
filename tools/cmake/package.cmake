# Debian packages of what is installed: `cpack --config build/release/CPackConfig.cmake`. There is one
# for each component but the static libraries and the planners' library.
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program um_dropin)
if(SPILLWAY_HAS_MPI)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
if(SPILLWAY_HAS_CUDA)
  list(APPEND CPACK_COMPONENTS_ALL cuda)
endif()
set(CPACK_PACKAGE_NAME spillway)
set(CPACK_PACKAGE_CONTACT "the Spillway authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Libraries of a package that is built together with another one.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/bin)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME spillway)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION "trains neural networks in a budget of near memory
 Networks train in less memory than they need: a plan made before training
 moves, drops or recomputes blocks. Losses are those of a run without a budget.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "spillway-mpi, python3-matplotlib, dataset-fashion-mnist")

set(CPACK_DEBIAN_UM_DROPIN_PACKAGE_NAME libspillway-um-dev)
set(CPACK_DEBIAN_UM_DROPIN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_UM_DROPIN_DESCRIPTION "allocator over more memory than is near
 A C library with adapters for C++: memory with a near budget, the rest in
 far memory or in a file, with prefetches, offloads and counters.")

foreach(plug_in MPI CUDA)
  string(TOLOWER spillway-${plug_in} name)
  set(CPACK_DEBIAN_${plug_in}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${plug_in}_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_${plug_in}_PACKAGE_DEPENDS "spillway (= ${PROJECT_VERSION})")
endforeach()
set(CPACK_DEBIAN_MPI_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_DEBIAN_MPI_DESCRIPTION "spillway on several processors
 The plug-in of MPI, with which the program spillway trains in several processes.")
set(CPACK_DEBIAN_CUDA_DESCRIPTION "spillway on NVIDIA GPUs
 The plug-in of CUDA and cuDNN, with which the program spillway trains on a GPU.")
include(CPack)
