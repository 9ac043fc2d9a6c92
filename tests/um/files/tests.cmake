# Files of this machine.
spillway_test(file_tests
  SOURCES um/files/folder_lock_test.cpp um/files/input_file_test.cpp um/files/output_file_test.cpp
          um/files/replaced_file_test.cpp
  LINK spillway::um)
