# tools/gpu/run, with programs that only pretend to train and to test.
if(Python3_FOUND)
  python_tests(gpu_tools ${Python3_EXECUTABLE} tools/gpu *_test.py TIMEOUT 300)

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
  set(skipped SKIP_REGULAR_EXPRESSION "skipped: ")
  python_tests(suite_goals ${Python3_EXECUTABLE} tools/bench suite_*_test.py TIMEOUT 60)
  python_tests(sweep_plots ${torch_python} tools/plot *_test.py TIMEOUT 60 ${skipped})  # Debian's matplotlib
  python_tests(pytorch_steps ${torch_python} tools/bench pytorch_*_test.py TIMEOUT 60 ${skipped})
  if(NOT SPILLWAY_SANITIZE)
    python_tests(python_module ${Python3_EXECUTABLE} tools/python *_test.py TIMEOUT 300 ${skipped})
    python_tests(python_torch_hooks ${torch_python} tools/python/hooks *_test.py TIMEOUT 300 ${skipped})
    # PyTorch 2: of SPILLWAY_TORCH_PYTHON, or where tools/setup --torch puts it; skipped without.
    set(cached_python $ENV{HOME}/.cache/spillway/torch/bin/python)
    if(DEFINED ENV{SPILLWAY_TORCH_PYTHON})
      set(torch_python $ENV{SPILLWAY_TORCH_PYTHON})
    elseif(EXISTS ${cached_python})
      set(torch_python ${cached_python})
    endif()
    python_tests(python_pytorch ${torch_python} tools/python/pytorch *_test.py TIMEOUT 1800 ${skipped})
    set_tests_properties(python_module python_torch_hooks python_pytorch PROPERTIES
      ENVIRONMENT "SPILLWAY_UM_LIBRARY=$<TARGET_FILE:spillway_um_dropin>;SPILLWAY_PLAN_LIBRARY=$<TARGET_FILE:spillway_plan_dropin>")
  endif()
endif()
