spillway_test(prefetch_tests
  SOURCES prefetch/moves/cover_test.cpp prefetch/planners/strategies_test.cpp
          prefetch/planners/catalogue_test.cpp prefetch/verify/*_test.cpp
          prefetch/files/file_fuzz_test.cpp
          prefetch/planners/joint/joint_test.cpp prefetch/task_graph_test.cpp
          prefetch/planners/modnn/modnn_test.cpp prefetch/simulate/simulate_test.cpp
          prefetch/bounds/paleo_test.cpp prefetch/moves/schedule_test.cpp
          prefetch/moves/micro_batch_size_test.cpp prefetch/trace_checker_test.cpp
          prefetch/planners/vdnn/vdnn_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 5000)

# Iterations that repeat, recorded, learned and followed.
spillway_test(prefetch_learned_tests
  SOURCES prefetch/learned/*_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 300 ASAN)

# Every planner on random steps, a quarter of them chains, a quarter with phases in any order, a
# quarter with offloadable weights.
spillway_test(prefetch_planner_tests
  SOURCES prefetch/offloadable_state_test.cpp prefetch/planner_properties_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 600 RANDOM_CASES 100)
# Updates on the far side; three planners on random steps that have some.
spillway_test(prefetch_far_update_tests
  SOURCES prefetch/far_update_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 100)
# Exchanges of gradients between ranks; every planner on random steps that have some.
spillway_test(prefetch_exchange_tests
  SOURCES prefetch/gradient_exchange_test.cpp prefetch/exchanged_step_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 RANDOM_CASES 40)
# Six plans of `joint` for each step, each with those of smaller budgets.
spillway_test(prefetch_more_room_tests
  SOURCES prefetch/more_room_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 RANDOM_CASES 60)
# Fixed places under whole-block plans of every planner, walked in drawn orders.
spillway_test(prefetch_placement_tests
  SOURCES prefetch/placement/*_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 100)
# Plans of random steps in random orders, and of steps in variants.
spillway_test(prefetch_order_tests
  SOURCES prefetch/order_test.cpp prefetch/planners/joint/sequence_test.cpp
          prefetch/planners/joint/layered_test.cpp prefetch/planners/variant_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 RANDOM_CASES 100)
target_compile_definitions(prefetch_order_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces")
spillway_test(prefetch_optimum_tests
  SOURCES prefetch/exact_solver_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 10000)
# Plans of `joint`, and 64 sequences that rerun anything, for each of so many random steps.
spillway_test(prefetch_bounds_tests
  SOURCES prefetch/bounds/bounds_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 RANDOM_CASES 120)
# Of tiny steps with every way to run tasks again: each case plans hundreds of sequences. Of others
# every home of all state.
spillway_test(prefetch_mixed_optimum_tests
  SOURCES prefetch/exact_mixed_solver_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 250)
spillway_test(prefetch_chain_tests
  SOURCES prefetch/planners/chain/chain_test.cpp prefetch/planners/recompute_test.cpp
          prefetch/planners/smallest_budget_test.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 150)
# Plans of `joint` beside exact optima: drawn steps and 53 recorded ones.
spillway_test(prefetch_joint_optimum_tests COMPUTES
  SOURCES prefetch/planners/joint/joint_optimum_test.cpp
  LINK spillway::prefetch
  TIMEOUT 300)
target_compile_definitions(prefetch_joint_optimum_tests PRIVATE
  SPILLWAY_STEPS="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/steps")

spillway_test(prefetch_file_tests
  SOURCES prefetch/files/bad_files_test.cpp prefetch/files/trace_test.cpp
          prefetch/simulate/chrome_trace_test.cpp prefetch/files/json_test.cpp
          prefetch/files/machine_test.cpp prefetch/need_test.cpp
          prefetch/simulate/paging_model_test.cpp prefetch/files/plan_file_test.cpp
          prefetch/moves/recomputation_test.cpp prefetch/planners/superneurons/*_test.cpp
          prefetch/planners/superneurons/superneurons_networks.cpp
  LINK spillway::prefetch rapidcheck
  RANDOM_CASES 2000 ASAN
  NOT_SANITIZED Files/UpdateTraces.*)
target_compile_definitions(prefetch_file_tests PRIVATE
  SPILLWAY_TRACES="${CMAKE_CURRENT_SOURCE_DIR}/prefetch/traces")
spillway_test(prefetch_runtime_tests COMPUTES
  SOURCES prefetch/runtime/copy_memory_test.cpp prefetch/runtime/plan_walker_test.cpp
          prefetch/runtime/runner/step_runner_test.cpp prefetch/runtime/managed_memory_test.cpp
          prefetch/runtime/state_between_steps_test.cpp prefetch/runtime/step_equivalence_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 ASAN TSAN)
# Not under TSan: it takes mapping a page anew for a write.
spillway_test(prefetch_runtime_memfd_tests COMPUTES
  SOURCES prefetch/runtime/step_equivalence_memfd_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 ASAN)
# Not under TSan, for both reasons.
spillway_test(prefetch_far_state_tests COMPUTES
  SOURCES prefetch/runtime/far_state_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300 RANDOM_CASES 40 ASAN)
# Not under TSan: `joint` makes its plans in TBB loops, whose hand-over TSan does not see.
spillway_test(prefetch_step_layout_tests COMPUTES
  SOURCES prefetch/runtime/step_layout_test.cpp prefetch/runtime/step_program_test.cpp
  LINK spillway::prefetch rapidcheck
  TIMEOUT 300)
