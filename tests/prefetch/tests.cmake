spillway_test(prefetch_tests
  SOURCES prefetch/moves/algorithm_choice_test.cpp prefetch/planners/autoswap_test.cpp
          prefetch/planners/capacity_test.cpp prefetch/planners/catalogue_test.cpp
          prefetch/moves/cover_test.cpp
          prefetch/verify/dataflow_test.cpp prefetch/files/file_fuzz_test.cpp
          prefetch/planners/fractional_test.cpp prefetch/planners/ibm_ooc_test.cpp
          prefetch/planners/joint/alike_test.cpp
          prefetch/planners/joint/joint_test.cpp prefetch/planners/largest_first_test.cpp
          prefetch/liveness_test.cpp prefetch/planners/modnn/modnn_test.cpp
          prefetch/planners/modnn/move_log_test.cpp prefetch/simulate/near_use_test.cpp
          prefetch/planners/modnn/offload_scheme_test.cpp prefetch/planners/on_demand_test.cpp
          prefetch/bounds/paleo_test.cpp prefetch/verify/residency_check_test.cpp
          prefetch/moves/run_conditions_test.cpp prefetch/moves/timed_schedule_test.cpp
          prefetch/moves/saved_blocks_test.cpp prefetch/moves/schedule_test.cpp
          prefetch/planners/modnn/segment_list_test.cpp prefetch/simulate/simulate_test.cpp
          prefetch/moves/sub_batch_test.cpp prefetch/task_graph_test.cpp
          prefetch/planners/tflms_test.cpp prefetch/trace_checker_test.cpp
          prefetch/planners/vdnn/vdnn_test.cpp prefetch/verify/verify_test.cpp
          prefetch/verify/worst_case_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_files spillway::prefetch_planners
       spillway::prefetch_planners_joint spillway::prefetch_planners_modnn
       spillway::prefetch_planners_vdnn spillway::prefetch_verify rapidcheck
  RANDOM_CASES 5000)

# Updates on the far side; three planners on random steps that have some.
spillway_test(prefetch_far_update_tests
  SOURCES prefetch/far_update_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_planners spillway::prefetch_simulate
       spillway::prefetch_verify rapidcheck
  RANDOM_CASES 500)

# Exchanges of gradients between ranks; every planner on random steps that have some.
spillway_test(prefetch_exchange_tests
  SOURCES prefetch/exchange_properties_test.cpp prefetch/exchanged_step_test.cpp
          prefetch/gradient_exchange_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_planners spillway::prefetch_simulate
       spillway::prefetch_verify rapidcheck
  TIMEOUT 300 RANDOM_CASES 500)

# Iterations that repeat, recorded, learned and followed.
spillway_test(prefetch_learned_tests
  SOURCES prefetch/learned/replayer_cycles_test.cpp prefetch/learned/replayer_properties_test.cpp
          prefetch/learned/replayer_test.cpp prefetch/learned/learn_test.cpp
          prefetch/learned/learned_step_test.cpp prefetch/learned/recording_test.cpp
  LINK spillway::prefetch_learned spillway::prefetch_simulate spillway::prefetch_verify rapidcheck
  RANDOM_CASES 300)

# Every planner on 6,000 random steps, a quarter of them chains, a quarter with phases in any order, a
# quarter with offloadable weights.
spillway_test(prefetch_planner_tests
  SOURCES prefetch/offloadable_state_test.cpp prefetch/planner_properties_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_planners spillway::prefetch_simulate
       spillway::prefetch_verify rapidcheck
  TIMEOUT 600 RANDOM_CASES 1500)
# Six plans of `joint` for each step, each with those of smaller budgets.
spillway_test(prefetch_more_room_tests
  SOURCES prefetch/more_room_test.cpp
  LINK spillway::prefetch_planners spillway::prefetch_simulate spillway::prefetch_verify rapidcheck
  TIMEOUT 300 RANDOM_CASES 300)
# Fixed places under whole-block plans of every planner, walked in drawn orders.
spillway_test(prefetch_placement_tests
  SOURCES prefetch/placement/check_placement_test.cpp
          prefetch/placement/interval_placement_test.cpp
          prefetch/placement/near_intervals_test.cpp
          prefetch/placement/state_intervals_test.cpp
  LINK spillway::prefetch_placement spillway::prefetch_planners rapidcheck
  RANDOM_CASES 200)
spillway_test(prefetch_optimum_tests
  SOURCES prefetch/exact_solver_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_planners spillway::prefetch_simulate
       spillway::prefetch_verify rapidcheck
  RANDOM_CASES 10000)
# Plans of `joint` beside exact optima: 1,000 drawn steps and 53 recorded ones. Far too long for
# sanitizers.
if(NOT SPILLWAY_SANITIZE)
  spillway_test(prefetch_joint_optimum_tests COMPUTES
  SOURCES prefetch/planners/joint/joint_optimum_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_files spillway::prefetch_planners spillway::prefetch_simulate
       spillway::prefetch_verify
    TIMEOUT 300)
  target_compile_definitions(prefetch_joint_optimum_tests PRIVATE
    SPILLWAY_STEPS="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/steps")
endif()
# Plans of `joint`, and 64 sequences that rerun anything, for each of so many random steps.
spillway_test(prefetch_bounds_tests
  SOURCES prefetch/bounds/bounds_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_moves spillway::prefetch_planners
       spillway::prefetch_simulate spillway::prefetch_verify rapidcheck
  TIMEOUT 300 RANDOM_CASES 1000)
# Of tiny steps with every way to run tasks again: each case plans hundreds of sequences. Of others every
# home of all state.
spillway_test(prefetch_mixed_optimum_tests
  SOURCES prefetch/exact_mixed_solver_test.cpp prefetch/exact_state_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_planners spillway::prefetch_simulate
       spillway::prefetch_verify rapidcheck
  RANDOM_CASES 500)
spillway_test(prefetch_chain_tests
  SOURCES prefetch/planners/chain/chain_offload_test.cpp prefetch/planners/chain/chain_test.cpp
          prefetch/planners/chain/dynprog_test.cpp prefetch/planners/chain/greedy_test.cpp
          prefetch/planners/recompute_test.cpp prefetch/planners/chain/rotor_table_test.cpp
          prefetch/planners/smallest_budget_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_planners spillway::prefetch_planners_chain
       spillway::prefetch_simulate spillway::prefetch_verify rapidcheck
  RANDOM_CASES 1000)

spillway_test(prefetch_file_tests
  SOURCES prefetch/files/bad_files_test.cpp prefetch/files/bad_trace_test.cpp
          prefetch/simulate/chrome_trace_test.cpp
          prefetch/files/json_test.cpp prefetch/files/machine_test.cpp prefetch/need_test.cpp
          prefetch/simulate/paging_model_test.cpp prefetch/files/plan_file_test.cpp
          prefetch/moves/recomputation_test.cpp
          prefetch/planners/superneurons/superneurons_golden_test.cpp
          prefetch/planners/superneurons/superneurons_networks.cpp
          prefetch/planners/superneurons/superneurons_test.cpp prefetch/files/trace_test.cpp
          prefetch/files/update_traces_test.cpp
  LINK spillway::prefetch_bounds spillway::prefetch_files spillway::prefetch_planners
       spillway::prefetch_planners_joint spillway::prefetch_planners_superneurons
       spillway::prefetch_verify rapidcheck
  RANDOM_CASES 2000)
target_compile_definitions(prefetch_file_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces")
spillway_test(prefetch_runtime_tests COMPUTES
  SOURCES prefetch/runtime/copy_memory_compaction_test.cpp
          prefetch/runtime/copy_memory_places_test.cpp prefetch/runtime/copy_memory_test.cpp
          prefetch/runtime/early_offload_test.cpp prefetch/runtime/runner/far_lane_test.cpp
          prefetch/runtime/managed_memory_test.cpp
          prefetch/runtime/plan_walker_test.cpp
          prefetch/runtime/state_between_steps_test.cpp prefetch/runtime/step_end_test.cpp
          prefetch/runtime/step_equivalence_test.cpp prefetch/runtime/runner/step_runner_test.cpp
  LINK spillway::prefetch_planners spillway::prefetch_runtime_runner spillway::um_host
       spillway::um_host_managed rapidcheck
  TIMEOUT 300 TSAN)
# Not under TSan: it takes mapping a page anew for a write.
spillway_test(prefetch_runtime_memfd_tests COMPUTES
  SOURCES prefetch/runtime/step_equivalence_memfd_test.cpp
  LINK spillway::prefetch_planners spillway::prefetch_runtime_runner spillway::um_host rapidcheck
  TIMEOUT 300)
# Not under TSan, for both reasons.
spillway_test(prefetch_far_state_tests COMPUTES
  SOURCES prefetch/runtime/far_state_test.cpp
  LINK spillway::prefetch_planners spillway::prefetch_runtime_runner spillway::um_host
       spillway::um_host_managed rapidcheck
  TIMEOUT 300)
# Not under TSan: `joint` makes its plans in TBB loops, whose hand-over TSan does not see.
spillway_test(prefetch_step_layout_tests COMPUTES
  SOURCES prefetch/runtime/step_layout_test.cpp prefetch/runtime/step_program_test.cpp
  LINK spillway::prefetch_planners spillway::prefetch_runtime_runner spillway::um_host rapidcheck
  TIMEOUT 300)
