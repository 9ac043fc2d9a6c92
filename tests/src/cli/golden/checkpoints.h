#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/process.h"
#include "tests/temporary_folder.h"

namespace spillway::test {

/// Returns the folder of the checkpoints that are kept from earlier, with the networks and data
/// that they were trained on. They are unpacked once in a process.
inline const std::string& golden_checkpoints() {
  static const TemporaryFolder folder;
  static const std::string path = [] {
    const Ended ended = run_in_shell("tar -xzf " SPILLWAY_GOLDEN_FILES "/checkpoints.tar.gz -C " +
                                     folder.path().string());
    EXPECT_EQ(ended.status, 0) << ended.errors;
    return folder.path().string();
  }();
  return path;
}

}  // namespace spillway::test
