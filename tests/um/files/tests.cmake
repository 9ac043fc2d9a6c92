# Files of this machine.
spillway_test(file_tests
  SOURCES um/files/*_test.cpp
  LINK spillway::um
  ASAN)
