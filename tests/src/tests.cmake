spillway_test(data_tests
  SOURCES src/data/batch_loader_test.cpp src/data/batch_order_test.cpp src/data/cifar10_test.cpp
          src/data/content_test.cpp src/data/first_samples_test.cpp
          src/data/idx_test.cpp src/data/mixing_test.cpp src/data/open_dataset_test.cpp
          src/data/resize_test.cpp
          src/data/synthetic_test.cpp
          src/files/safetensors_test.cpp src/files/sha256_test.cpp
          src/numbers/narrow_floats_test.cpp src/numbers/rotary_angles_test.cpp
  LINK spillway::data spillway::files spillway::numbers ZLIB::ZLIB
  SEPARATE src/data/mixing_test.cpp
  TSAN)

# Images' files, and folders of them.
spillway_test(image_tests
  SOURCES src/data/broken_images_test.cpp src/data/broken_kinds.cpp src/data/byte_images_test.cpp
          src/data/image_folder_test.cpp
          src/data/images/augmentation_test.cpp src/data/images/crop_test.cpp
          src/data/images/decode_golden_test.cpp src/data/images/exif_test.cpp
  LINK spillway::data golden_files nlohmann_json::nlohmann_json ZLIB::ZLIB
  SEPARATE src/data/broken_images_test.cpp
           src/data/images/augmentation_test.cpp
  TSAN)

# Data sets of texts.
spillway_test(text_tests
  SOURCES src/data/masking_test.cpp src/data/open_text_test.cpp src/data/synthetic_text_test.cpp
          src/data/text_windows_test.cpp
          src/data/text/byte_pair_encoder_test.cpp src/data/text/byte_pairs_test.cpp
          src/data/text/text_codec_test.cpp
          src/data/text/text_fuzz_test.cpp src/data/text/token_file_test.cpp
  LINK spillway::data golden_files nlohmann_json::nlohmann_json rapidcheck)

# How a program loads what it can do without.
add_library(empty_plug_in MODULE src/plugin/empty_plug_in.cpp)
target_link_libraries(empty_plug_in PRIVATE spillway_flags)
set_target_properties(empty_plug_in PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/plug_in)
spillway_test(plugin_tests
  SOURCES src/plugin/plug_in_test.cpp
  LINK spillway::plugin spillway::um_core ${CMAKE_DL_LIBS})
target_compile_definitions(plugin_tests PRIVATE SPILLWAY_PLUG_IN_FOLDER="${CMAKE_CURRENT_BINARY_DIR}/plug_in"
  SPILLWAY_PLUG_IN_NAME="plug_in")
add_dependencies(plugin_tests empty_plug_in)

# The drop-in allocator: its C functions from outside.
spillway_test(dropin_tests
  SOURCES src/dropin/block_pieces_test.cpp src/dropin/c_functions_test.cpp
          src/dropin/far_failure_test.cpp src/dropin/far_functions_test.cpp
          src/dropin/fork_test.cpp src/dropin/frameworks_test.cpp
          src/dropin/learned_functions_test.cpp src/dropin/learned_threads_test.cpp
          src/dropin/misuse_test.cpp src/dropin/stress_test.cpp
          ${PROJECT_SOURCE_DIR}/src/dropin/block_pieces.cpp  # the library shows only C
  LINK spillway::um_core spillway::um_dropin
  TSAN)
# In a program whose handlers of signals are older than any space.
spillway_test(dropin_memory_tests
  SOURCES src/dropin/memory_calls_test.cpp
  LINK spillway::um_dropin)
add_test(NAME dropin_exports
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:spillway_um_dropin>
    -DHEADER=${PROJECT_SOURCE_DIR}/um/dropin/spillway_um.h -DAPI=SPILLWAY_UM_API
    -P ${CMAKE_CURRENT_SOURCE_DIR}/src/dropin/check_exports.cmake)
spillway_test(planning_dropin_tests
  SOURCES src/dropin/planning/plan_functions_test.cpp
  LINK spillway_plan_dropin nlohmann_json::nlohmann_json)
add_test(NAME planning_exports
  COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:spillway_plan_dropin>
    -DHEADER=${PROJECT_SOURCE_DIR}/src/dropin/planning/spillway_plan.h -DAPI=SPILLWAY_PLAN_API
    -P ${CMAKE_CURRENT_SOURCE_DIR}/src/dropin/check_exports.cmake)
set_tests_properties(dropin_exports planning_exports PROPERTIES LABELS cpu)
if(NOT SPILLWAY_SANITIZE)  # whose run-time must be loaded before anything is preloaded
  add_subdirectory(src/dropin/preload)
  spillway_test(preload_tests
  SOURCES src/dropin/preload/preload_test.cpp src/dropin/shared_gpu_test.cpp
  LINK preload_programs)
endif()

# Tests of operations, written once: on the host here, on a GPU in cuda_kernel_tests.
set(operation_tests
    src/ops/kernels/accumulate_gradients_test.cpp src/ops/kernels/adam_update_test.cpp
    src/ops/kernels/average_parameters_test.cpp src/ops/kernels/rmsprop_update_test.cpp
    src/ops/kernels/batch_norm_test.cpp src/ops/kernels/concat_test.cpp
    src/ops/kernels/crop_test.cpp src/ops/kernels/dropout_test.cpp
    src/ops/kernels/element_wise_test.cpp src/ops/kernels/gradient_norm_test.cpp
    src/ops/kernels/load_batch_test.cpp src/ops/kernels/mixed_labels_test.cpp
    src/ops/kernels/local_response_norm_test.cpp src/ops/kernels/parameter_part_test.cpp
    src/ops/kernels/pool_test.cpp src/ops/kernels/sequences_test.cpp
    src/ops/kernels/pixel_cross_entropy_test.cpp
    src/ops/kernels/sgd_update_test.cpp src/ops/kernels/softmax_cross_entropy_test.cpp
    src/ops/kernels/vocabulary_logits_test.cpp
    src/ops/kernels/weighted_operations_test.cpp)
spillway_test(host_tests COMPUTES
  SOURCES ${operation_tests} src/host/host_backend_test.cpp
          src/host/layout/parameter_layout_test.cpp src/host/slope_test.cpp
          src/host/layout/thread_floats_test.cpp src/host/vocabulary_chunks_test.cpp
          src/host/layout/threads_test.cpp src/ops/philox_test.cpp
  LINK spillway::host spillway::host_kernels OpenMP::OpenMP_CXX
  SUITES)
# The same kernels as on a machine without AVX-512: another layout, other implementations in oneDNN.
add_test(NAME host_tests_with_avx2 COMMAND host_tests)
set_tests_properties(host_tests_with_avx2 PROPERTIES
  LABELS cpu TIMEOUT 300 ENVIRONMENT "DNNL_MAX_CPU_ISA=AVX2")
add_test(NAME host_tests_in_bf16 COMMAND host_tests)
set_tests_properties(host_tests_in_bf16 PROPERTIES
  LABELS cpu TIMEOUT 300 ENVIRONMENT "SPILLWAY_TEST_PRECISION=bf16")

# Networks as ONNX files.
spillway_test(onnx_tests
  SOURCES src/onnx/bad_onnx_file_test.cpp src/onnx/bad_onnx_graph_test.cpp
          src/onnx/export_onnx_test.cpp src/onnx/import_onnx_test.cpp src/onnx/onnx_padding_test.cpp
          src/onnx/onnx_round_trip_test.cpp
  LINK spillway::onnx spillway::nets_text spillway::train golden_files)

# The program from outside. Where it is slow (no optimisation, sanitizers), fewer networks and
# configurations; the tests print that.
spillway_test(cli_tests
  SOURCES src/cli/bad_budget_test.cpp src/cli/bad_checkpoint_test.cpp src/cli/bad_data_test.cpp
          src/cli/bad_path_test.cpp src/cli/bad_plan_test.cpp src/cli/bench/bench_failure_test.cpp
          src/cli/bench/bench_test.cpp src/cli/bench/bench_training_test.cpp
          src/cli/bit_identity_test.cpp src/cli/copy_places_test.cpp src/cli/devices_test.cpp
          src/cli/image_training_test.cpp
          src/cli/terminal/interrupt_test.cpp src/cli/terminal/narrow_terminal_test.cpp
          src/cli/json_test.cpp src/cli/nets_test.cpp
          src/cli/network_file_test.cpp src/cli/plan_sub_batch_test.cpp
          src/cli/plan_ranks_test.cpp src/cli/plan_table_test.cpp
          src/cli/plan_trace_test.cpp src/cli/predict_files_test.cpp src/cli/program.cpp
          src/cli/report_test.cpp src/cli/resident_set_test.cpp src/cli/resume_test.cpp
          src/cli/sweep_test.cpp src/cli/train_sub_batch_test.cpp src/cli/usage_test.cpp
          src/cli/evaluate_test.cpp src/cli/far_damage_test.cpp src/cli/fine_tuning_test.cpp src/cli/limits_test.cpp src/cli/recipe_test.cpp src/cli/standard_streams_test.cpp
          src/cli/sample_test.cpp src/cli/text_training_test.cpp src/cli/weights_test.cpp
          src/cli/one_processor_test.cpp src/cli/onnx_test.cpp
  LINK spillway::data spillway::nets spillway::onnx spillway::train spillway::um_core golden_files nlohmann_json::nlohmann_json
  TIMEOUT 300)
add_dependencies(cli_tests spillway)
target_compile_definitions(cli_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces"
  SPILLWAY_PROGRAM="$<TARGET_FILE:spillway>"
  SPILLWAY_SLOW_BUILD=$<NOT:$<CONFIG:Release,RelWithDebInfo>>)

spillway_test(training_tests
  SOURCES src/plan/budget_test.cpp src/train/checkpoint_choice_test.cpp
          src/train/checkpoint_fallback_test.cpp src/step/built_in_step_test.cpp
          src/train/checkpoint_folder_test.cpp src/train/far_state_training_test.cpp
          src/step/attention_choice_test.cpp src/step/divided_updates_test.cpp
          src/step/exchanged_step_test.cpp
          src/step/fusion_test.cpp
          src/step/gradients_test.cpp src/train/initial_values_test.cpp
          src/train/learning_rate_test.cpp src/train/mixed_training_test.cpp
          src/profile/min_slab_test.cpp src/modnn_golden_test.cpp
          src/paleo_figure_test.cpp src/plan/placed_plan_test.cpp src/plan/plans_test.cpp
          src/plan/state_choice_test.cpp src/profile/profiler_test.cpp
          src/profile/scratch_ring_test.cpp
          src/train/state_test.cpp src/execute/step_space_test.cpp src/step/step_test.cpp
          src/execute/workspace_buffer_test.cpp
          src/plan/sub_batch_plans_test.cpp src/step/sub_step_test.cpp src/train/train_test.cpp
          src/train/trainer_test.cpp src/step/batch_norm_values_test.cpp
          src/profile/idle_link_test.cpp src/profile/measuring_time_test.cpp
          src/step/machine_size_model_test.cpp
          src/step/sampling_step_test.cpp src/step/unread_tasks_test.cpp
          src/step/update_in_parts_test.cpp src/train/recipe_training_test.cpp
  SEPARATE src/step/sub_step_test.cpp
  LINK spillway::files spillway::host spillway::prefetch_planners spillway::profile
       spillway::train spillway::um_host)

# How gradients of several ranks are put into buckets.
spillway_test(bucket_tests
  SOURCES src/plan/bucket_choice_test.cpp
  LINK spillway::plan spillway::prefetch_planners spillway::prefetch_simulate rapidcheck
  RANDOM_CASES 300)

# One training on several ranks.
spillway_test(rank_training_tests
  SOURCES src/train/parts/divided_training_test.cpp src/train/parts/kept_plans_test.cpp
          src/train/parts/rank_agreement_test.cpp src/train/parts/rank_end_test.cpp
          src/train/parts/rank_training_test.cpp src/train/parts/rank_warnings_test.cpp
  LINK golden_files spillway::host spillway::prefetch_planners spillway::ranks spillway::train
       spillway::um_host)

# Texts that a network continues.
spillway_test(sample_tests
  SOURCES src/network_in_memory.cpp src/sample/next_token_model_test.cpp
          src/sample/token_sampler_test.cpp src/sample/trained_text_model_test.cpp
  LINK spillway::host spillway::nets_text spillway::prefetch_planners spillway::sample
       spillway::um_host nlohmann_json::nlohmann_json)

# What ranks are connected by; those are threads.
spillway_test(interconnect_tests
  SOURCES src/profile/interconnect_profiler_test.cpp
  LINK spillway::host spillway::profile spillway::train spillway::um_host)

# Updates on the far side.
spillway_test(far_update_training_tests
  SOURCES src/train/far_update_training_test.cpp
  LINK spillway::files spillway::host spillway::prefetch_planners spillway::train spillway::um_host)
spillway_test(bench_tests
  SOURCES src/bench/bench_file_test.cpp src/bench/timing_summary_test.cpp
          src/bench/link/link_bench_test.cpp src/bench/bench_machine_test.cpp
          src/bench/paging/paging_bench_test.cpp src/bench/repetition_test.cpp
          src/bench/paging/touch_pattern_test.cpp src/bench/link/transfer_test.cpp
  LINK spillway::bench_link spillway::bench_paging spillway::execute spillway::um_host)
spillway_test(cli_table_tests
  SOURCES src/cli/bench/bench_table_test.cpp src/cli/flags/nearest_name_test.cpp
          src/cli/flags/number_checks_test.cpp src/cli/flags/rank_device_test.cpp
          src/cli/terminal/progress_line_test.cpp src/cli/terminal/text_table_test.cpp
  LINK spillway::cli_bench)

# Small trainings, benched for real.
spillway_test(train_bench_tests
  SOURCES src/bench/train/train_bench_test.cpp src/bench/train/run_checks_test.cpp
          src/bench/train/train_row_test.cpp src/bench/train/train_series_test.cpp
          src/bench/link/launch_bench_test.cpp src/bench/round_test.cpp src/bench/warm_up_test.cpp
  LINK spillway::bench_link spillway::bench_train spillway::host spillway::um_host)

# Not under TSan: it does not see how TBB hands the sweep points to its threads.
spillway_test(sweep_tests
  SOURCES src/sweep/scenario_test.cpp src/sweep/soundness_test.cpp src/sweep/sweep_test.cpp
  LINK spillway::prefetch_planners spillway::sweep)

# Every network of the catalogue, which takes 25 times as long under sanitizers: golden_tests has
# one of each family for them.
if(NOT SPILLWAY_SANITIZE)
  spillway_test(every_network_tests COMPUTES
  SOURCES src/every_network_test.cpp src/network_in_memory.cpp
  LINK spillway::host spillway::prefetch_planners spillway::train spillway::um_host
    TIMEOUT 300)
endif()

spillway_test(report_tests
  SOURCES src/report/comparison_test.cpp src/report/report_data_test.cpp
          src/report/report_input_test.cpp src/report/report_page_test.cpp
          src/report/timeline_data_test.cpp src/report/training_log_test.cpp
          src/report/verdict_test.cpp
  LINK spillway::report)

# A program of its own: its write(), fsync(), renameat() and so on come before the C library's. Too long
# for sanitizers, under which other tests write checkpoints.
if(NOT SPILLWAY_SANITIZE)
  spillway_test(power_loss_tests
  SOURCES src/train/power/power_loss_test.cpp src/train/power/recorded_folder.cpp
  LINK spillway::files spillway::host spillway::prefetch_planners spillway::train spillway::um_host)
  # Its open(), too.
  spillway_test(read_beside_writer_tests
  SOURCES src/train/power/read_beside_writer_test.cpp
  LINK spillway::files spillway::host spillway::prefetch_planners spillway::train spillway::um_host)
endif()
