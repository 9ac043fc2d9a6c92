# tools/gpu/run, with programs that only pretend to train and to test.
if(Python3_FOUND)
  add_test(NAME gpu_tools
    COMMAND ${Python3_EXECUTABLE} -B -m unittest discover --buffer --pattern "*_test.py"
      --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/gpu)
  set_tests_properties(gpu_tools PROPERTIES LABELS cpu TIMEOUT 300)

  add_test(NAME argument_order
    COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/tools/argument_order_test.py)
  set_tests_properties(argument_order PROPERTIES LABELS cpu TIMEOUT 120)

  # The steps in PyTorch of tools/bench, and tools/python over the drop-in, whose sanitizers a Python
  # without them cannot load. PyTorch is Debian's, whatever Python comes first here.
  find_program(debian_python python3 PATHS /usr/bin NO_DEFAULT_PATH)
  set(torch_python ${Python3_EXECUTABLE})
  if(debian_python)
    set(torch_python ${debian_python})
  endif()
  add_test(NAME suite_goals
    COMMAND ${Python3_EXECUTABLE} -B -m unittest discover --buffer --pattern "suite_*_test.py"
      --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/bench)
  set_tests_properties(suite_goals PROPERTIES LABELS cpu TIMEOUT 60)
  add_test(NAME sweep_plots  # with Debian's matplotlib
    COMMAND ${torch_python} -B -m unittest discover --buffer --pattern "*_test.py"
      --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/plot)
  set_tests_properties(sweep_plots PROPERTIES LABELS cpu TIMEOUT 60
    SKIP_REGULAR_EXPRESSION "skipped: ")
  add_test(NAME pytorch_steps
    COMMAND ${torch_python} -B -m unittest discover --buffer --pattern "pytorch_*_test.py"
      --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/bench)
  set_tests_properties(pytorch_steps PROPERTIES LABELS cpu TIMEOUT 60
    SKIP_REGULAR_EXPRESSION "skipped: ")
  if(NOT SPILLWAY_SANITIZE)
    add_test(NAME python_module
      COMMAND ${Python3_EXECUTABLE} -B -m unittest discover --buffer --pattern "*_test.py"
        --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/python)
    add_test(NAME python_torch_hooks
      COMMAND ${torch_python} -B -m unittest discover --buffer --pattern "*_test.py"
        --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/python/hooks)
    set_tests_properties(python_module python_torch_hooks PROPERTIES LABELS cpu TIMEOUT 300
      ENVIRONMENT "SPILLWAY_UM_LIBRARY=$<TARGET_FILE:spillway_um_dropin>;SPILLWAY_PLAN_LIBRARY=$<TARGET_FILE:spillway_plan_dropin>"
      SKIP_REGULAR_EXPRESSION "skipped: ")
    # PyTorch 2: of SPILLWAY_TORCH_PYTHON, or where tools/setup --torch puts it; skipped without.
    set(cached_python $ENV{HOME}/.cache/spillway/torch/bin/python)
    if(DEFINED ENV{SPILLWAY_TORCH_PYTHON})
      set(torch_python $ENV{SPILLWAY_TORCH_PYTHON})
    elseif(EXISTS ${cached_python})
      set(torch_python ${cached_python})
    endif()
    add_test(NAME python_pytorch
      COMMAND ${torch_python} -B -m unittest discover --buffer --pattern "*_test.py"
        --start-directory ${CMAKE_CURRENT_SOURCE_DIR}/tools/python/pytorch)
    set_tests_properties(python_pytorch PROPERTIES LABELS cpu TIMEOUT 1800
      ENVIRONMENT "SPILLWAY_UM_LIBRARY=$<TARGET_FILE:spillway_um_dropin>;SPILLWAY_PLAN_LIBRARY=$<TARGET_FILE:spillway_plan_dropin>"
      SKIP_REGULAR_EXPRESSION "skipped: ")
  endif()
endif()
