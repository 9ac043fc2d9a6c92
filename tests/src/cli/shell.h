#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/temporary_folder.h"

namespace spillway::test {

[[nodiscard]] inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// The results of a shell's command.
struct ShellOutcome {
  int exit_code;
  std::string errors;  ///< content of the file "errors"
};

/// Runs the program in a shell, for redirections and limits, in an empty folder.
class InShell : public testing::Test {
 protected:
  /// `before` are shell commands to run first; `arguments` are for the program, with redirections.
  [[nodiscard]] ShellOutcome run(const std::string& arguments,
                                 const std::string& before = ":") const {
    const std::string command = "cd '" + folder_.path().string() +
                                "' && export SPILLWAY_CACHE=off && " + before +
                                " && exec timeout 120 '" + SPILLWAY_PROGRAM + "' " + arguments;
    const int status = std::system(command.c_str());  // NOLINT(cert-env33-c): a shell is wanted
    return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
            .errors = text_of(file("errors"))};
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / name;
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace spillway::test
