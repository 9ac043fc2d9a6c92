spillway_test(prefetch_tests
  SOURCES prefetch/algorithm_choice_test.cpp prefetch/autoswap_test.cpp
          prefetch/capacity_test.cpp prefetch/cover_test.cpp prefetch/dataflow_test.cpp
          prefetch/file_fuzz_test.cpp prefetch/fractional_test.cpp prefetch/ibm_ooc_test.cpp
          prefetch/joint_test.cpp prefetch/largest_first_test.cpp prefetch/liveness_test.cpp
          prefetch/modnn_test.cpp prefetch/move_log_test.cpp prefetch/near_use_test.cpp
          prefetch/offload_scheme_test.cpp prefetch/on_demand_test.cpp prefetch/paleo_test.cpp
          prefetch/residency_test.cpp prefetch/saved_blocks_test.cpp prefetch/schedule_test.cpp
          prefetch/segment_list_test.cpp prefetch/simulate_test.cpp prefetch/sub_batch_test.cpp
          prefetch/task_graph_test.cpp prefetch/tflms_test.cpp prefetch/trace_checker_test.cpp
          prefetch/vdnn_test.cpp prefetch/verify_test.cpp prefetch/worst_case_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 5000)

# Iterations that repeat, recorded, learned and followed.
spillway_test(prefetch_learned_tests
  SOURCES prefetch/learned/follower_cycles_test.cpp
          prefetch/learned/follower_properties_test.cpp prefetch/learned/follower_test.cpp
          prefetch/learned/learn_test.cpp prefetch/learned/learned_step_test.cpp
          prefetch/learned/recording_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 300)

# Every planner on 10,200 random steps, a third of them chains, a third with offloadable weights; the
# optimum of 10,000 tiny chains.
spillway_test(prefetch_planner_tests
  SOURCES prefetch/offloadable_state_test.cpp prefetch/planner_properties_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 600 RANDOM_CASES 3400)
# Fixed places under whole-block plans of every planner, walked in drawn orders.
spillway_test(prefetch_placement_tests
  SOURCES prefetch/check_placement_test.cpp prefetch/stay_placement_test.cpp
          prefetch/stays_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 200)
spillway_test(prefetch_optimum_tests SOURCES prefetch/exact_solver_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 10000)
# Plans of `joint`, and 64 sequences that rerun anything, for each of so many random steps.
spillway_test(prefetch_bounds_tests SOURCES prefetch/bounds_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 RANDOM_CASES 1000)
# Of tiny steps with every way to run tasks again: each case plans hundreds of sequences.
spillway_test(prefetch_mixed_optimum_tests SOURCES prefetch/exact_mixed_solver_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 500)
spillway_test(prefetch_chain_tests
  SOURCES prefetch/chain_offload_test.cpp prefetch/chain_test.cpp prefetch/dynprog_test.cpp
          prefetch/greedy_test.cpp prefetch/recompute_test.cpp prefetch/rotor_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 1000)

spillway_test(prefetch_file_tests
  SOURCES prefetch/bad_machine_test.cpp prefetch/bad_profile_test.cpp prefetch/bad_trace_test.cpp
          prefetch/chrome_trace_test.cpp prefetch/json_test.cpp prefetch/machine_test.cpp
          prefetch/need_test.cpp prefetch/paging_model_test.cpp prefetch/plan_file_test.cpp
          prefetch/profile_file_test.cpp prefetch/recomputation_test.cpp
          prefetch/superneurons_golden_test.cpp prefetch/superneurons_networks.cpp
          prefetch/superneurons_test.cpp prefetch/trace_test.cpp
          prefetch/update_traces_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 2000)
target_compile_definitions(prefetch_file_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces")
spillway_test(prefetch_runtime_tests
  SOURCES prefetch/runtime/copy_memory_compaction_test.cpp
          prefetch/runtime/copy_memory_places_test.cpp prefetch/runtime/copy_memory_test.cpp
          prefetch/runtime/managed_memory_test.cpp prefetch/runtime/plan_walker_test.cpp
          prefetch/runtime/step_equivalence_test.cpp prefetch/runtime/step_runner_test.cpp
  LINK spillway::prefetch_runtime spillway::um rapidcheck
  TIMEOUT 300 TSAN)
# Not under TSan: it takes mapping a page anew for a write.
spillway_test(prefetch_runtime_memfd_tests SOURCES prefetch/runtime/step_equivalence_memfd_test.cpp
  LINK spillway::prefetch_runtime spillway::um rapidcheck
  TIMEOUT 300)
# Not under TSan: `joint` makes its plans in TBB loops, whose hand-over TSan does not see.
spillway_test(prefetch_step_layout_tests SOURCES prefetch/runtime/step_layout_test.cpp
  LINK spillway::prefetch_runtime spillway::um rapidcheck
  TIMEOUT 300)
