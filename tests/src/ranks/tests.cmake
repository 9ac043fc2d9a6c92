# What ranks say to each other, as threads of one process.
add_library(communicator_contract STATIC
  src/ranks/communicator_contract.cpp src/ranks/micro_batch_numbers.cpp)
target_include_directories(communicator_contract PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(communicator_contract PUBLIC spillway::src PRIVATE spillway_flags)
spillway_test(ranks_tests
  SOURCES src/ranks/*_test.cpp src/ranks/mpi/open_mpi_test.cpp
  LINK communicator_contract spillway::src rapidcheck
  ASAN TSAN)

# As processes, over MPI. Sanitizers see MPI's own leaks and know nothing of its memory.
if(SPILLWAY_HAS_MPI AND MPIEXEC_EXECUTABLE AND NOT SPILLWAY_SANITIZE)
  add_executable(rank_program src/ranks/mpi/rank_program.cpp)
  target_include_directories(rank_program PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(rank_program PRIVATE
    communicator_contract spillway::src spillway::um spillway_flags)
  add_dependencies(rank_program spillway_mpi_plugin)
  # In a folder with the plug-in, and in one with another build's.
  set_target_properties(rank_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/mpi)
  add_custom_command(TARGET rank_program POST_BUILD
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:spillway_mpi_plugin> ${CMAKE_CURRENT_BINARY_DIR}/mpi
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_CURRENT_BINARY_DIR}/foreign_mpi
    COMMAND ${CMAKE_COMMAND} -E copy $<TARGET_FILE:rank_program> ${CMAKE_CURRENT_BINARY_DIR}/foreign_mpi)
  spillway_test(mpi_tests
    SOURCES src/ranks/mpi/mpi_test.cpp
    LINK spillway::um
    WHOLE TIMEOUT 300)
  add_library(foreign_mpi_plug_in MODULE src/ranks/mpi/foreign_plug_in.cpp)
  set_target_properties(foreign_mpi_plug_in PROPERTIES
    OUTPUT_NAME spillway_mpi LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/foreign_mpi)
  target_link_libraries(foreign_mpi_plug_in PRIVATE spillway_flags)
  add_dependencies(mpi_tests foreign_mpi_plug_in rank_program)
  set(two_nodes SPILLWAY_TWO_NODES="${CMAKE_CURRENT_SOURCE_DIR}/src/ranks/mpi/two_nodes")
  target_compile_definitions(mpi_tests PRIVATE
    ${two_nodes}
    SPILLWAY_FOREIGN_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/foreign_mpi"
    SPILLWAY_MPIRUN="${MPIEXEC_EXECUTABLE}"
    SPILLWAY_RANK_PROGRAM="$<TARGET_FILE:rank_program>")
  set_tests_properties(mpi_tests PROPERTIES LABELS "cpu;mpi" PROCESSORS 2)
  # The program as ranks.
  spillway_test(cli_rank_tests
    SOURCES src/cli/ranks/*_test.cpp src/cli/program.cpp
    LINK spillway::um nlohmann_json::nlohmann_json ZLIB::ZLIB
    WHOLE TIMEOUT 600)
  add_dependencies(cli_rank_tests spillway spillway_mpi_plugin)
  target_compile_definitions(cli_rank_tests PRIVATE
    ${two_nodes}
    SPILLWAY_MPIRUN="${MPIEXEC_EXECUTABLE}" SPILLWAY_PROGRAM="$<TARGET_FILE:spillway>")
  set_tests_properties(cli_rank_tests PROPERTIES LABELS "cpu;mpi" PROCESSORS 2)
  if(Python3_FOUND)
    add_test(NAME killed_ranks
      COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/killed_ranks --count 2
        --steps 60 --checkpoint-every 6 --mpirun ${MPIEXEC_EXECUTABLE} --program $<TARGET_FILE:spillway>)
    set_tests_properties(killed_ranks PROPERTIES LABELS "cpu;mpi" TIMEOUT 600 PROCESSORS 2)
  endif()
  plugin_symbols_test(mpi_plugin_symbols spillway_mpi_plugin spillway_mpi)
endif()
