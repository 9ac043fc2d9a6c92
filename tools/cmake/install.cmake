# Everything find_package(spillway) needs beside the libraries, which spillway_library() installs.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/spillway)
install(EXPORT spillway NAMESPACE spillway:: FILE spillwayTargets.cmake DESTINATION ${folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/tools/cmake/spillwayConfig.cmake
              ${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake
  DESTINATION ${folder} COMPONENT um_dropin)
install(TARGETS spillway RUNTIME)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/plot/sweep DESTINATION share/spillway/plot)
install(FILES ${PROJECT_SOURCE_DIR}/tools/plot/lines.py DESTINATION share/spillway/plot)
