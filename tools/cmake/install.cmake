# Everything find_package(spillway) needs beside the libraries, which spillway_library() installs.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/spillway)
install(EXPORT spillway NAMESPACE spillway:: FILE spillwayTargets.cmake DESTINATION ${folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
foreach(component trainer um_dropin plan_dropin)
  install(FILES ${PROJECT_SOURCE_DIR}/tools/cmake/spillwayConfig.cmake
                ${PROJECT_BINARY_DIR}/spillwayConfigVersion.cmake
    DESTINATION ${folder} COMPONENT ${component})
endforeach()
install(TARGETS spillway RUNTIME COMPONENT program)
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/plot/sweep DESTINATION share/spillway/plot COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/tools/plot/lines.py DESTINATION share/spillway/plot COMPONENT program)

# Licences with every component, in the folder of its Debian package.
foreach(component program trainer mpi cuda um_dropin plan_dropin)
  set(package spillway-${component})
  if(component STREQUAL "program")
    set(package spillway)
  elseif(component MATCHES "(.*)_dropin")
    set(package libspillway-${CMAKE_MATCH_1}-dev)
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/tools/cmake/copyright
    DESTINATION share/doc/${package} COMPONENT ${component})
endforeach()

# The manual page and the shells' completions are what the program prints about itself.
function(spillway_install_document format destination name)
  set(made ${PROJECT_BINARY_DIR}/documents/${name})
  install(CODE "
    file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/documents\")
    execute_process(COMMAND \"$<TARGET_FILE:spillway>\" document ${format}
      OUTPUT_FILE \"${made}\" COMMAND_ERROR_IS_FATAL ANY)
    file(INSTALL \"${made}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${destination}\")" COMPONENT program)
endfunction()
spillway_install_document(man share/man/man1 spillway.1)
spillway_install_document(bash share/bash-completion/completions spillway)
spillway_install_document(zsh share/zsh/site-functions _spillway)
