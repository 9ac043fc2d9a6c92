# find_package(spillway): targets spillway::um, spillway::prefetch, spillway::training and so on.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(TBB)
find_dependency(OpenMP COMPONENTS CXX)
find_dependency(OpenSSL COMPONENTS Crypto)
find_dependency(dnnl)
find_dependency(fmt)
find_dependency(nlohmann_json)
find_dependency(CLI11)
find_package(CUDAToolkit QUIET)  # spillway::um_cuda alone needs it
include(${CMAKE_CURRENT_LIST_DIR}/spillwayTargets.cmake)
