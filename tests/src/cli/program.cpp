#include "tests/src/cli/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <system_error>

namespace spillway::test {
namespace {

constexpr int kLongestSilence = 120'000;  // milliseconds

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error{error, std::generic_category(), what};
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(errno, "pipe2");
  return {.read_end = ends[0], .write_end = ends[1]};
}

// Makes a pseudoterminal: bytes at the write end can be read at the other.
Pipe make_terminal(unsigned short columns) {
  const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (ours < 0) fail(errno, "posix_openpt");
  std::array<char, 64> name{};
  if (grantpt(ours) != 0 || unlockpt(ours) != 0 || ptsname_r(ours, name.data(), name.size()) != 0) {
    fail(errno, "unlockpt");
  }
  const int theirs = open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (theirs < 0) fail(errno, "open of a terminal");
  const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  if (ioctl(theirs, TIOCSWINSZ, &size) != 0) fail(errno, "TIOCSWINSZ");
  return {.read_end = ours, .write_end = theirs};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Arguments this_environment() {
  Arguments all;
  for (char** entry = environ; *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

// Uses the host unless a test names a device, even with a GPU.
Arguments on_host(const Arguments& arguments) {
  const bool takes_device =
      !arguments.empty() &&
      (arguments[0] == "train" || arguments[0] == "profile" || arguments[0] == "sample");
  if (!takes_device || std::ranges::count(arguments, "--device") > 0) return arguments;
  return {arguments, "--device host"};
}

// `own` comes first, as the program takes the first entry of a name. Nothing is kept in the home of
// who tests.
pid_t start(const Arguments& launcher, const Arguments& arguments, const Arguments& own,
            const Pipe& output, const Pipe& errors) {
  Arguments command{launcher, std::string{SPILLWAY_PROGRAM}, on_host(arguments)};
  Arguments environment{own, "SPILLWAY_CACHE=off", this_environment()};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output.write_end, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.write_end, STDERR_FILENO);
  // SIGINT is ignored where a script started the tests with &.
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &interrupt);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t process = -1;
  const int failure = posix_spawn(&process, command.front().c_str(), &actions, &attributes,
                                  pointers(command).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) fail(failure, command.front().c_str());
  return process;
}

// Appends what can be read; closes `descriptor` at its end.
void drain(int& descriptor, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  if (count > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || errno != EINTR) {
    close(descriptor);
    descriptor = -1;
  }
}

}  // namespace

Arguments::Arguments(const char* text) {
  std::istringstream words{text};
  for (std::string word; words >> word;) push_back(word);
}

Program::Program(const Arguments& arguments, const Arguments& environment, Errors errors_are,
                 unsigned short columns, const Arguments& launcher) {
  const Pipe output = make_pipe();
  const Pipe errors = errors_are == Errors::kTerminal ? make_terminal(columns) : make_pipe();
  process_ = start(launcher, arguments, environment, output, errors);
  close(output.write_end);
  close(errors.write_end);
  output_ = output.read_end;
  errors_ = errors.read_end;
}

Program::~Program() {
  if (output_ >= 0) close(output_);
  if (errors_ >= 0) close(errors_);
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

bool Program::read_some() {
  std::array<pollfd, 2> pipes{{{.fd = output_, .events = POLLIN, .revents = 0},
                               {.fd = errors_, .events = POLLIN, .revents = 0}}};
  if (output_ < 0 && errors_ < 0) return false;
  const int ready = poll(pipes.data(), pipes.size(), kLongestSilence);
  if (ready == 0) {
    ADD_FAILURE() << "spillway hangs and is killed; so far it said: " << outcome_.errors;
    signal(SIGKILL);
  }
  if (pipes[0].revents != 0) drain(output_, outcome_.output);
  if (pipes[1].revents != 0) drain(errors_, outcome_.errors);
  return true;
}

void Program::wait_for_lines(std::size_t count) {
  const auto lines = [&] {
    return static_cast<std::size_t>(std::ranges::count(outcome_.output, '\n'));
  };
  while (lines() < count && output_ >= 0 && read_some()) {
  }
}

void Program::wait_for_error(const std::string& text) {
  while (outcome_.errors.find(text) == std::string::npos && errors_ >= 0 && read_some()) {
  }
}

void Program::signal(int number) const {
  if (process_ > 0) kill(process_, number);
}

bool Program::is_running() const {
  siginfo_t info{};
  const bool is_known =
      waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  return is_known && info.si_pid == 0;
}

Outcome Program::finish() {
  while (read_some()) {
  }
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
  outcome_.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome_;
}

Outcome run_spillway(const Arguments& arguments, const Arguments& environment) {
  return Program{arguments, environment}.finish();
}

Outcome succeed(const Arguments& arguments, const Arguments& environment) {
  Outcome outcome = run_spillway(arguments, environment);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  return outcome;
}

nlohmann::json json_of(const Arguments& arguments) {
  const Outcome outcome = succeed(arguments);
  nlohmann::json document = nlohmann::json::parse(outcome.output, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << outcome.output;
  return document;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in: " << text;
  }
}

std::vector<nlohmann::json> json_lines(const Outcome& outcome) {
  std::vector<nlohmann::json> lines;
  std::istringstream text{outcome.output};
  for (std::string line; std::getline(text, line);) {
    lines.push_back(nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false));
    EXPECT_TRUE(lines.back().is_object()) << line;
  }
  return lines;
}

nlohmann::json summary_of(const Outcome& outcome) {
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  const std::vector<nlohmann::json> lines = json_lines(outcome);
  if (lines.empty() || !lines.back().contains("summary")) {
    ADD_FAILURE() << "no summary in: " << outcome.output << outcome.errors;
    return nlohmann::json::object();
  }
  return lines.back().at("summary");
}

nlohmann::json summary_of(const Arguments& training) { return summary_of(run_spillway(training)); }

bool has_capability(const std::string& name) {
  const nlohmann::json devices = json_of("devices --json -");
  for (const nlohmann::json& capability : devices.front().at("capabilities")) {
    if (capability.at("name") == name) return capability.at("available").get<bool>();
  }
  ADD_FAILURE() << "no capability " << name << " in: " << devices;
  return false;
}

}  // namespace spillway::test
