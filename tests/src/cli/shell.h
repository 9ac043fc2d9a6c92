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

/// What a shell's command left.
struct ShellOutcome {
  int exit_code;
  std::string errors;  ///< what it wrote to the file "errors"
};

/// Runs the program by a shell, for its redirections and limits, in an empty folder.
class InShell : public testing::Test {
 protected:
  /// `before` is what the shell does first; `arguments` are the program's, and redirections.
  [[nodiscard]] ShellOutcome run(const std::string& arguments,
                                 const std::string& before = ":") const {
    const std::string command = "cd '" + folder_.path().string() + "' && " + before +
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
