#pragma once

#include <sys/types.h>

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spillway::test {

// Exit codes of `spillway`.
constexpr int kFailure = 1;
constexpr int kBadUsage = 2;

/// What a finished program left.
struct Outcome {
  int exit_code = 0;  ///< as a shell reports it: 128 and the signal's number when it was killed
  std::string output;
  std::string errors;
};

/// Words of a command line: "train --net lenet" and {"train --net lenet --batch", batch, more} are
/// some. A literal is split at blanks; a std::string is one word, which may have blanks or be
/// empty.
class Arguments : public std::vector<std::string> {
 public:
  Arguments() = default;
  Arguments(const char* text);  // implicit, as are those below
  Arguments(const std::string& word) { push_back(word); }
  Arguments(std::initializer_list<Arguments> parts) {
    for (const Arguments& part : parts) insert(end(), part.begin(), part.end());
  }
};

/// The `spillway` program in a process of its own. It is killed after two minutes, so that a hang
/// fails a test rather than all of them.
///
/// Thread safety: none.
class Program {
 public:
  /// What its standard error is. On a terminal it tells of its progress ten times a second.
  enum class Errors { kPipe, kTerminal };

  /// Starts it. `environment` ("NAME=VALUE") comes on top of this process's own. A terminal has so
  /// many `columns`; with 0 it does not say. A `launcher`, with its own arguments, comes before the
  /// program, and signals are for it.
  explicit Program(const Arguments& arguments, const Arguments& environment = {},
                   Errors errors = Errors::kPipe, unsigned short columns = 0,
                   const Arguments& launcher = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  /// Kills it when it is still there.
  ~Program();

  /// Waits until it has written `count` lines to standard output; less when it ends before.
  void wait_for_lines(std::size_t count);
  /// Waits until it has written `text` to standard error; returns without when it ends before.
  void wait_for_error(const std::string& text);
  void signal(int number) const;
  [[nodiscard]] pid_t process() const { return process_; }
  /// False once it has ended.
  [[nodiscard]] bool is_running() const;
  /// Waits until it ends.
  [[nodiscard]] Outcome finish();

 private:
  // Reads what there is, waiting for it; false when both pipes have ended.
  bool read_some();

  pid_t process_ = -1;
  int output_ = -1;
  int errors_ = -1;
  Outcome outcome_;
};

/// Runs it to its end.
[[nodiscard]] Outcome run_spillway(const Arguments& arguments, const Arguments& environment = {});

/// The same, and fails the test where it does not succeed.
Outcome succeed(const Arguments& arguments, const Arguments& environment = {});

/// The one JSON document that it writes to standard output. Fails the test as succeed() does.
[[nodiscard]] nlohmann::json json_of(const Arguments& arguments);

/// Fails the test where `text` lacks one of `parts`.
void expect_parts(const std::string& text, const std::vector<std::string>& parts);

/// What standard output holds, one JSON object a line. Fails the test when a line is none.
[[nodiscard]] std::vector<nlohmann::json> json_lines(const Outcome& outcome);

/// The summary of a training that must have succeeded with `--json -`; an empty object otherwise.
[[nodiscard]] nlohmann::json summary_of(const Outcome& outcome);
[[nodiscard]] nlohmann::json summary_of(const Arguments& training);

/// True when `spillway devices` says that this machine can do it ("uffd_move").
[[nodiscard]] bool has_capability(const std::string& name);

}  // namespace spillway::test
