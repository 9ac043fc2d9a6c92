#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spillway::test {

// Exit codes of `spillway`.
constexpr int kFailure = 1;
constexpr int kBadUsage = 2;

/// The results of a finished program.
struct Outcome {
  int exit_code = 0;  ///< as in a shell: 128 plus the signal's number if it was killed
  std::string output;
  std::string errors;
};

/// Words of a command line, such as "train --net lenet" or {"train --net lenet --batch", batch,
/// more}. A literal is split at blanks. A std::string is one word, which may have blanks or be
/// empty.
class Arguments : public std::vector<std::string> {
 public:
  Arguments() = default;
  Arguments(const char* text);  // implicit, like those below
  Arguments(const std::string& word) { push_back(word); }
  Arguments(std::initializer_list<Arguments> parts) {
    for (const Arguments& part : parts) insert(end(), part.begin(), part.end());
  }
};

/// The `spillway` program in its own process. It is killed after two minutes, so that a hang fails
/// only one test.
///
/// Thread safety: none.
class Program {
 public:
  /// Kind of standard error. On a terminal the program prints progress ten times a second.
  enum class Errors { kPipe, kTerminal };

  /// Starts the program. `environment` ("NAME=VALUE") extends this process's own. A terminal has
  /// `columns`; 0 means unknown. A `launcher` with its arguments comes before the program, and
  /// receives signals.
  explicit Program(const Arguments& arguments, const Arguments& environment = {},
                   Errors errors = Errors::kPipe, unsigned short columns = 0,
                   const Arguments& launcher = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  /// Kills the program if it is still running.
  ~Program();

  /// Waits until it has written `count` lines to standard output or has ended.
  void wait_for_lines(std::size_t count);
  /// Waits until it has written `text` to standard error or has ended.
  void wait_for_error(const std::string& text);
  void signal(int number) const;
  [[nodiscard]] pid_t process() const { return process_; }
  /// Returns false once it has ended.
  [[nodiscard]] bool is_running() const;
  /// Waits until it ends.
  [[nodiscard]] Outcome finish();

 private:
  // Waits for output and reads it. Returns false when both pipes have ended.
  bool read_some();

  pid_t process_ = -1;
  int output_ = -1;
  int errors_ = -1;
  Outcome outcome_;
};

/// Runs the program to its end.
[[nodiscard]] Outcome run_spillway(const Arguments& arguments, const Arguments& environment = {});

/// Does the same, and fails the test if the program fails.
Outcome succeed(const Arguments& arguments, const Arguments& environment = {});

/// Returns the JSON document on standard output. Fails the test as succeed() does.
[[nodiscard]] nlohmann::json json_of(const Arguments& arguments);

/// Fails the test where `text` lacks one of `parts`.
void expect_parts(const std::string& text, const std::vector<std::string>& parts);

/// Returns the JSON objects on standard output, one per line. Fails the test if a line is invalid.
[[nodiscard]] std::vector<nlohmann::json> json_lines(const Outcome& outcome);

/// Returns the summary of a training with `--json -`; an empty object if it failed.
[[nodiscard]] nlohmann::json summary_of(const Outcome& outcome);
[[nodiscard]] nlohmann::json summary_of(const Arguments& training);

/// Returns whether `spillway devices` reports this capability ("uffd_move").
[[nodiscard]] bool has_capability(const std::string& name);

/// Runs the program, which must exit with `code` and write nothing to standard output. Standard
/// error must end with one sentence that has all `words`. Returns that sentence.
inline std::string expect_refused(int code, const Arguments& arguments,
                                  const std::vector<std::string>& words,
                                  const Arguments& environment = {}) {
  const Outcome outcome = run_spillway(arguments, environment);
  EXPECT_EQ(outcome.exit_code, code) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  const std::size_t begin = code == 1 ? outcome.errors.rfind("spillway: ") : 0;
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no sentence in: " << outcome.errors;
    return {};
  }
  std::string sentence = outcome.errors.substr(begin);
  if (code == 1) {
    EXPECT_EQ(std::ranges::count(sentence, '\n'), 1) << sentence;
  }
  expect_parts(sentence, words);
  EXPECT_EQ(sentence.find("bug in spillway"), std::string::npos) << sentence;
  return sentence;
}

/// Returns a training that takes almost no time.
inline Arguments small_training(const Arguments& more = {}) {
  return {"train --net lenet --batch 8 --steps 1", more};
}

}  // namespace spillway::test
