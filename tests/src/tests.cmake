spillway_test(data_tests
  SOURCES src/io/data/batch_loader_test.cpp src/io/data/idx_test.cpp src/io/data/dataset_test.cpp
          src/io/data/mixing_test.cpp
          src/io/safetensors_test.cpp src/ops/initial_values_test.cpp src/ops/learning_rate_test.cpp
          src/ops/narrow_floats_test.cpp
  LINK spillway::src ZLIB::ZLIB
  ASAN TSAN
  NOT_SANITIZED SyntheticDataset.Teaches*)

# Images' files, and folders of them.
spillway_test(image_tests
  SOURCES src/io/data/broken_images_test.cpp src/io/data/image_folder_test.cpp
          src/io/images/*_test.cpp
  LINK spillway::src golden_files nlohmann_json::nlohmann_json ZLIB::ZLIB
  ASAN TSAN)

# Data sets of texts.
spillway_test(text_tests
  SOURCES src/io/data/token_dataset_test.cpp src/io/text/*_test.cpp
  LINK spillway::src golden_files nlohmann_json::nlohmann_json rapidcheck
  ASAN)

# A plug-in shows its two functions and nothing else.
function(plugin_symbols_test name library prefix)
  add_test(NAME ${name}
    COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DPREFIX=${prefix} -DLIBRARY=$<TARGET_FILE:${library}>
      -P ${CMAKE_CURRENT_SOURCE_DIR}/src/cuda/check_plugin_symbols.cmake)
  set_tests_properties(${name} PROPERTIES LABELS cpu)
endfunction()

# The drop-in allocator: its C functions from outside.
spillway_test(dropin_tests
  SOURCES src/dropin/c_functions_test.cpp src/dropin/far_functions_test.cpp
          src/dropin/learned_functions_test.cpp
          src/dropin/misuse_test.cpp src/dropin/stress_test.cpp
          ${PROJECT_SOURCE_DIR}/src/dropin/block_pieces.cpp # the library shows only C
  LINK spillway::um spillway::um_dropin
  ASAN TSAN)
target_compile_definitions(dropin_tests PRIVATE SPILLWAY_VERSION="${PROJECT_VERSION}")
# In a program whose handlers of signals are older than any space.
spillway_test(dropin_memory_tests
  SOURCES src/dropin/memory_calls_test.cpp
  LINK spillway::um_dropin
  ASAN)
# A library of C functions shows those of its header and nothing else.
function(exports_test name library header api)
  add_test(NAME ${name}
    COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:${library}>
      -DHEADER=${PROJECT_SOURCE_DIR}/${header} -DAPI=${api}
      -P ${CMAKE_CURRENT_SOURCE_DIR}/src/dropin/check_exports.cmake)
  set_tests_properties(${name} PROPERTIES LABELS cpu)
endfunction()
exports_test(dropin_exports spillway_um_dropin um/dropin/spillway_um.h SPILLWAY_UM_API)
spillway_test(planning_dropin_tests
  SOURCES src/dropin/planning/plan_functions_test.cpp
  LINK spillway_plan_dropin nlohmann_json::nlohmann_json
  ASAN)
exports_test(planning_exports spillway_plan_dropin src/dropin/planning/spillway_plan.h SPILLWAY_PLAN_API)
if(NOT SPILLWAY_SANITIZE)  # whose run-time must be loaded before anything is preloaded
  add_subdirectory(src/dropin/preload)
  spillway_test(preload_tests
    SOURCES src/dropin/preload/preload_test.cpp
    LINK preload_programs)
endif()

# Tests of operations, written once: on the host here, on a GPU in cuda_kernel_tests.
file(GLOB operation_tests CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} src/ops/kernels/*_test.cpp)
spillway_test(host_tests COMPUTES
  SOURCES ${operation_tests} src/host/host_backend_test.cpp src/host/layout/*_test.cpp
          src/host/slope_test.cpp src/ops/far_kernel_test.cpp
          src/ops/philox_test.cpp
  LINK spillway::host OpenMP::OpenMP_CXX
  SUITES ASAN)
# The same kernels as on a machine without AVX-512: another layout, other implementations in oneDNN.
test_again(host_tests_with_avx2 host_tests DNNL_MAX_CPU_ISA=AVX2 TIMEOUT 300)
test_again(host_tests_in_bf16 host_tests SPILLWAY_TEST_PRECISION=bf16 TIMEOUT 300)

# Networks as ONNX files.
spillway_test(onnx_tests
  SOURCES src/io/onnx/*_test.cpp
  LINK spillway::onnx golden_files
  ASAN)

# The program from outside. Where it is slow (no optimisation, sanitizers), fewer networks and
# configurations; the tests print that.
spillway_test(cli_tests
  SOURCES src/cli/*_test.cpp src/cli/bench/bench_test.cpp src/cli/terminal/interrupt_test.cpp
          src/cli/program.cpp
  LINK spillway::onnx golden_files nlohmann_json::nlohmann_json
  TIMEOUT 300 ASAN
  NOT_SANITIZED BadBudget.TooSmall* BenchTraining.* BitIdentity.Holds* BitIdentity.OfR* BitIdentity.OfT*
           DryRun.* Evaluated.* FineTuning.*
           Help.* ImageTraining.* Interrupted* OneAnswer.* KeptTimes.* Killed.* Modes/FarDamage.* NarrowTerminal.* NetsTable.* *Json.*
           OneProcessor.* OnnxFiles.* Plan* PredictedFiles.* RamOfTraining.* Restarted.* Resumed.* Sample.*
           StandardStreams.* Sweep* TensorBoard.* TextTraining.* Train* Usage.* WeightsOfFiles.*)
add_dependencies(cli_tests spillway)
target_compile_definitions(cli_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces"
  SPILLWAY_PROGRAM="$<TARGET_FILE:spillway>"
  SPILLWAY_SLOW_BUILD=$<NOT:$<CONFIG:Release,RelWithDebInfo>>)

spillway_test(training_tests
  SOURCES src/plan/state_choice_test.cpp src/train/checkpoint_choice_test.cpp
          src/train/checkpoint_folder_test.cpp src/program/*_test.cpp
          src/train/far_state_training_test.cpp src/train/far_update_training_test.cpp
          src/train/recipe_training_test.cpp src/run/idle_link_test.cpp
          src/run/kept_profiles_test.cpp src/modnn_golden_test.cpp src/paleo_figure_test.cpp
          src/plan/plans_test.cpp src/run/profiler_test.cpp src/run/scratch_ring_test.cpp
          src/train/state_test.cpp src/run/step_space_test.cpp src/plan/micro_batch_choice_test.cpp
          src/train/train_test.cpp src/train/trainer_test.cpp src/train/layered_training_test.cpp
  LINK spillway::host
  ASAN
  NOT_SANITIZED FarUpdateOfARun.* GoesOnWhere* MixedTraining.* Modes/FarState.*joint* Modes/FarUpdate.* Networks/BuiltInStep.*
           Optimizers/ExchangedStep.* PlacedPlanTest.* PlansTest.* RecipeTraining.* SmallestBudgets.* StateChoiceTest.*
           Trainer.MeasuresOnce*)

# One training on several ranks.
spillway_test(rank_training_tests
  SOURCES src/train/data_parallel/*_test.cpp
  LINK golden_files spillway::host)

# Texts that a network continues.
spillway_test(sample_tests
  SOURCES src/network_in_memory.cpp src/train/next_token_model_test.cpp
          src/train/token_sampler_test.cpp src/train/trained_text_model_test.cpp
  LINK spillway::host nlohmann_json::nlohmann_json)

# How gradients of several ranks are put into buckets.
spillway_test(bucket_tests
  SOURCES src/plan/bucket_choice_test.cpp
  LINK spillway::src rapidcheck
  RANDOM_CASES 80)

spillway_test(bench_tests
  SOURCES src/bench/bench_file_test.cpp src/bench/repetition_test.cpp
          src/bench/link/link_bench_test.cpp
          src/bench/paging/*_test.cpp
          src/sweep/sweep_test.cpp src/report/*_test.cpp
  LINK spillway::src)
spillway_test(cli_table_tests
  SOURCES src/cli/flags/flag_values_test.cpp
          src/cli/terminal/text_table_test.cpp src/cli/train/*_test.cpp
  LINK spillway::cli)
# Small trainings, benched for real.
spillway_test(train_bench_tests
  SOURCES src/bench/train/*_test.cpp src/bench/link/launch_bench_test.cpp
  LINK spillway::host)
# What ranks are connected by; those are threads.
spillway_test(interconnect_tests
  SOURCES src/run/interconnect_profiler_test.cpp
  LINK spillway::host)

# Every kind of network of the catalogue.
spillway_test(every_network_tests COMPUTES
  SOURCES src/every_network_test.cpp src/network_in_memory.cpp
  LINK spillway::host
  TIMEOUT 300)

# A program of its own: its write(), fsync(), renameat() and so on come before the C library's.
spillway_test(power_loss_tests
  SOURCES src/train/power/power_loss_test.cpp src/train/power/recorded_folder.cpp
  LINK spillway::host)
# Its open(), too.
spillway_test(read_beside_writer_tests
  SOURCES src/train/power/read_beside_writer_test.cpp
  LINK spillway::host)
