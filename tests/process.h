#pragma once

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_folder.h"

namespace spillway::test {

/// A process that has ended. `status` is the one of waitpid().
struct Ended {
  std::string output;
  std::string errors;
  int status = 0;
};

/// Runs `command` in a shell and waits for its end.
inline Ended run_in_shell(const std::string& command) {
  const TemporaryFolder folder;
  const std::string errors = folder.file("errors");
  Ended ended;
  FILE* const pipe = popen((command + " 2>" + errors).c_str(), "re");
  std::array<char, 4096> buffer{};
  while (fgets(buffer.data(), buffer.size(), pipe) != nullptr) ended.output += buffer.data();
  ended.status = pclose(pipe);
  std::ifstream file{errors};
  ended.errors.assign(std::istreambuf_iterator<char>{file}, {});
  return ended;
}

}  // namespace spillway::test
