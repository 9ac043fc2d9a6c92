spillway_test(nets_tests
  SOURCES nets/*_test.cpp nets/text/network_file_test.cpp
  LINK spillway::nets
  ASAN
  NOT_SANITIZED BadNetworkFile.OfAHundredMegabytes*)
target_compile_definitions(nets_tests PRIVATE
  SPILLWAY_NETS_README="${PROJECT_SOURCE_DIR}/nets/README.md")

# Spoilt network files: what the reader makes of them, and what steps are made of that.
spillway_test(network_file_fuzz_tests
  SOURCES nets/text/network_file_fuzz_test.cpp
  LINK spillway::src rapidcheck
  RANDOM_CASES 5000 ASAN)
