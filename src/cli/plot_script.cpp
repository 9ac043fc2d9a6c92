#include "src/cli/plot_script.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

namespace fs = std::filesystem;

// Returns the script's path: beside the installed program, or in the source tree. Throws: um::Error
// if the program was copied without it.
std::string script() {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = programs.parent_path() / "share" / "spillway" / "plot" / "sweep";
  if (fs::exists(installed, error)) return installed;
  const fs::path built = programs / SPILLWAY_PLOT_SCRIPT;
  if (fs::exists(built, error)) return built;
  throw um::Error{"pictures are drawn by " + installed.string() +
                  ", which is not there; install the program with it, or draw the points of --json "
                  "with tools/plot/sweep"};
}

// Exit status and errors of a program that ended.
struct Ended {
  int status = 0;
  std::string errors;
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0) {
    if (errno != EINTR) throw um::system_error("cannot wait for python3", errno);
  }
  return status;
}

// Starts Python with its errors to `errors`, and restores the signals that main() ignores. Returns
// an errno, or 0.
int start_python(pid_t& process, char* const* argv, int errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  sigset_t ignored;
  sigemptyset(&ignored);
  sigaddset(&ignored, SIGPIPE);
  sigaddset(&ignored, SIGXFSZ);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigdefault(&attributes, &ignored);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failure = ::posix_spawnp(&process, "python3", &actions, &attributes, argv, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

Ended run_python(std::vector<std::string> words) {
  words.insert(words.begin(), "python3");
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw um::system_error("cannot make a pipe", errno);
  pid_t process = 0;
  const int failure = start_python(process, argv.data(), pipe[1]);
  ::close(pipe[1]);
  Ended ended{.errors = failure == 0 ? read_all(pipe[0]) : ""};
  ::close(pipe[0]);
  if (failure != 0) {
    throw um::Error{
        "pictures need python3 and matplotlib; install Debian's python3-matplotlib, or run "
        "tools/setup --plot"};
  }
  ended.status = wait_for(process);
  return ended;
}

// Returns the script's last line, without its name at the beginning.
std::string last_words(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  text.remove_prefix(text.rfind('\n') + 1);  // npos + 1 is 0
  constexpr std::string_view kName = "tools/plot/sweep: ";
  if (text.starts_with(kName)) text.remove_prefix(kName.size());
  return std::string{text};
}

void run_script(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{script()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const Ended ended = run_python(std::move(words));
  if (ended.status == 0) return;
  const std::string said = last_words(ended.errors);
  throw um::Error{said.empty() ? "drawing the picture failed" : "no picture: " + said};
}

// A temporary file, removed at the end.
class TemporaryFile {
 public:
  TemporaryFile() : path_{fs::temp_directory_path() / "spillway-sweep-XXXXXX"} {
    const int descriptor = ::mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor < 0) throw um::system_error("cannot write " + path_, errno);
    ::close(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

void expect_plotting() { run_script({"--check"}); }

void draw_sweep(const nlohmann::json& sweep, const std::string& picture, const std::string& of) {
  const TemporaryFile file;
  prefetch::write_json(sweep, file.path());
  std::vector<std::string> arguments{file.path(), picture};
  if (!of.empty()) arguments.insert(arguments.end(), {"--of", of});
  run_script(arguments);
}

}  // namespace spillway::cli
