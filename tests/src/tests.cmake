spillway_test(data_tests
  SOURCES src/data/batch_loader_test.cpp src/data/batch_order_test.cpp src/data/cifar10_test.cpp
          src/data/idx_test.cpp src/data/open_dataset_test.cpp src/data/resize_test.cpp
          src/data/synthetic_masks_test.cpp src/data/synthetic_test.cpp src/replaced_file_test.cpp
          src/safetensors_test.cpp src/sha256_test.cpp
  LINK spillway::data
  TSAN)

# The drop-in allocator: its C functions from outside.
spillway_test(dropin_tests
  SOURCES src/dropin/block_pieces_test.cpp src/dropin/c_functions_test.cpp
          src/dropin/far_failure_test.cpp src/dropin/fork_test.cpp src/dropin/frameworks_test.cpp
          src/dropin/learned_functions_test.cpp src/dropin/learned_threads_test.cpp
          src/dropin/misuse_test.cpp src/dropin/stress_test.cpp
          ${PROJECT_SOURCE_DIR}/src/dropin/block_pieces.cpp  # the library shows only C
  LINK spillway::um_dropin spillway::um_core
  TSAN)
add_test(NAME dropin_exports
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:spillway_um_dropin>
    -DHEADER=${PROJECT_SOURCE_DIR}/um/dropin/spillway_um.h
    -P ${CMAKE_CURRENT_SOURCE_DIR}/src/dropin/check_exports.cmake)
set_tests_properties(dropin_exports PROPERTIES LABELS cpu)
if(NOT SPILLWAY_SANITIZE)  # whose run-time must be loaded before anything is preloaded
  add_subdirectory(src/dropin/preload)
  spillway_test(preload_tests
    SOURCES src/dropin/preload/preload_test.cpp src/dropin/shared_gpu_test.cpp
    LINK preload_programs)
endif()

spillway_test(host_tests
  SOURCES src/host/accumulate_gradients_test.cpp src/host/adam_update_test.cpp
          src/host/batch_norm_test.cpp src/host/concat_test.cpp src/host/convolution_test.cpp
          src/host/crop_test.cpp src/host/dropout_test.cpp src/host/element_wise_test.cpp
          src/host/host_backend_test.cpp src/host/linear_test.cpp src/host/load_batch_test.cpp
          src/host/local_response_norm_test.cpp src/host/parameter_layout_test.cpp
          src/host/pool_test.cpp src/host/sgd_update_test.cpp src/host/slope_test.cpp
          src/host/softmax_cross_entropy_test.cpp src/host/threads_test.cpp
          src/host/transposed_convolution_test.cpp src/philox_test.cpp
  LINK spillway::host)
# The same kernels as on a machine without AVX-512: another layout, other implementations in oneDNN.
add_test(NAME host_tests_with_avx2 COMMAND host_tests)
set_tests_properties(host_tests_with_avx2 PROPERTIES
  LABELS cpu TIMEOUT 300 ENVIRONMENT "DNNL_MAX_CPU_ISA=AVX2")

# The program from outside. Where it is slow (no optimisation, sanitizers), fewer networks and
# configurations; the tests print that.
spillway_test(cli_tests
  SOURCES src/cli/bad_budget_test.cpp src/cli/bad_checkpoint_test.cpp src/cli/bad_data_test.cpp
          src/cli/bad_path_test.cpp src/cli/bad_plan_test.cpp src/cli/bench_failure_test.cpp
          src/cli/bench_test.cpp src/cli/bench_training_test.cpp src/cli/bit_identity_test.cpp
          src/cli/copy_places_test.cpp src/cli/devices_test.cpp src/cli/interrupt_test.cpp
          src/cli/json_test.cpp src/cli/nets_test.cpp src/cli/network_file_test.cpp
          src/cli/plan_sub_batch_test.cpp src/cli/plan_table_test.cpp src/cli/plan_trace_test.cpp
          src/cli/program.cpp src/cli/report_test.cpp src/cli/resident_set_test.cpp
          src/cli/resume_test.cpp src/cli/sweep_test.cpp src/cli/train_sub_batch_test.cpp
          src/cli/usage_test.cpp
  LINK nlohmann_json::nlohmann_json
  TIMEOUT 300)
add_dependencies(cli_tests spillway)
target_compile_definitions(cli_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces"
  SPILLWAY_PROGRAM="$<TARGET_FILE:spillway>"
  SPILLWAY_SLOW_BUILD=$<NOT:$<CONFIG:Release,RelWithDebInfo>>)

spillway_test(training_tests
  SOURCES src/budget_test.cpp src/checkpoint_test.cpp src/fusion_test.cpp src/gradients_test.cpp
          src/initial_values_test.cpp src/learning_rate_test.cpp src/least_slab_test.cpp
          src/modnn_golden_test.cpp src/paleo_figure_test.cpp src/plans_test.cpp
          src/profiler_test.cpp src/scratch_ring_test.cpp src/shortest_decimal_test.cpp
          src/state_test.cpp src/step_space_test.cpp src/step_test.cpp
          src/sub_batch_plans_test.cpp src/sub_step_test.cpp src/train_test.cpp
  LINK spillway::training spillway::host spillway::um)

spillway_test(bench_tests
  SOURCES src/bench/bench_file_test.cpp src/bench/figure_test.cpp src/bench/link_bench_test.cpp
          src/bench/machine_test.cpp src/bench/paging_bench_test.cpp src/bench/repetition_test.cpp
          src/bench/touch_pattern_test.cpp src/bench/transfer_test.cpp
  LINK spillway::bench spillway::um)
spillway_test(cli_table_tests
  SOURCES src/cli/bench_table_test.cpp src/cli/text_table_test.cpp
  LINK spillway::cli)

# Small trainings, benched for real.
spillway_test(train_bench_tests
  SOURCES src/bench/train_bench_test.cpp src/bench/train_honesty_test.cpp
          src/bench/train_row_test.cpp src/bench/train_series_test.cpp src/bench/turn_test.cpp
          src/bench/warm_up_test.cpp
  LINK spillway::bench spillway::host spillway::um)

# Not under TSan: it does not see how TBB hands the cells to its threads.
spillway_test(sweep_tests
  SOURCES src/sweep/goals_test.cpp src/sweep/situation_test.cpp src/sweep/soundness_test.cpp
          src/sweep/suite_test.cpp src/sweep/sweep_test.cpp
  LINK spillway::sweep)

# Every network of the catalogue, which takes 25 times as long under sanitizers: golden_tests has
# one of each family for them.
if(NOT SPILLWAY_SANITIZE)
  spillway_test(every_network_tests
    SOURCES src/every_network_test.cpp src/network_in_memory.cpp
    LINK spillway::training spillway::host spillway::um
    TIMEOUT 300)
endif()

spillway_test(report_tests
  SOURCES src/report/bench_check_test.cpp src/report/comparison_test.cpp src/report/page_test.cpp
          src/report/report_data_test.cpp src/report/report_input_test.cpp
          src/report/timeline_data_test.cpp src/report/verdict_test.cpp
  LINK spillway::report)
