// Gives readers spoilt inputs, again and again. A reader must read or refuse each in one line: not
// crash, hang, throw anything else, or take much memory.
//   fuzz --target trace --seconds 60 --seed 7     the cases 0, 1, … of a seed, until time is up
//   fuzz --target trace --seed 7 --case 4711      one of them again
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>

#include "tests/fuzz/mutation.h"
#include "tests/fuzz/target.h"
#include "um/error.h"

namespace {

namespace fs = std::filesystem;

using spillway::fuzz::Target;
using Clock = std::chrono::steady_clock;

constexpr rlim_t kMostMemory = 2ULL << 30U;  // addresses; a reader needs a small part of it
constexpr unsigned kLongestCase = 50;        // seconds, on a machine that is busy

struct Options {
  std::string target;
  fs::path corpus = SPILLWAY_FUZZ_CORPUS;
  double seconds = 2;
  std::uint64_t seed = 1;
  std::optional<std::uint64_t> only;
};

std::array<char, 256> case_at_hand{};  // for the signal handler

// A crash or a hang ends the program, which says what it was at.
void on_signal(int number) {
  const char* const name = strsignal(number);
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, name, strlen(name));
  written = write(STDERR_FILENO, case_at_hand.data(), strlen(case_at_hand.data()));
  std::_Exit(1);
}

void set_limits() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) {
    std::signal(number, on_signal);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit memory{.rlim_cur = kMostMemory, .rlim_max = kMostMemory};
  setrlimit(RLIMIT_AS, &memory);
#endif
}

std::vector<std::string> inputs_of(const Target& target, const fs::path& corpus) {
  std::vector<fs::path> paths;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator{corpus / target.name, none}) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // the same cases on every file system
  std::vector<std::string> inputs = target.seeds;
  for (const fs::path& path : paths) {
    std::ifstream file{path, std::ios::binary};
    inputs.emplace_back(std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{});
  }
  return inputs;
}

/// An empty folder in memory, where it can be.
class Scratch {
 public:
  Scratch() {
    std::string name = (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()) /
                       fs::path{"spillway-fuzz-XXXXXX"};
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error{"no folder can be made"};
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

enum class Answer { kRead, kRefused, kWrong };

Answer ask(const Target& target, const std::string& input, const fs::path& folder) {
  try {
    target.read(input, folder);
    return Answer::kRead;
  } catch (const spillway::um::Error& error) {
    const std::string sentence = error.what();
    const auto is_control = [](char c) { return c >= 0 && c < ' '; };
    if (!sentence.empty() && sentence.size() < 5000 && std::ranges::none_of(sentence, is_control)) {
      return Answer::kRefused;
    }
    std::fprintf(stderr, "not one short line: %s", sentence.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "no refusal: %s", error.what());
  }
  return Answer::kWrong;
}

/// Runs the cases of one target; false when one went wrong.
bool run(const Target& target, const Options& options) {
  const std::vector<std::string> corpus = inputs_of(target, options.corpus);
  if (corpus.empty()) {
    std::fprintf(stderr, "no inputs for %s in %s\n", target.name.c_str(), options.corpus.c_str());
    return false;
  }
  const Scratch scratch;
  std::array<std::uint64_t, 3> answers{};
  const auto one = [&](std::uint64_t number) {
    std::snprintf(case_at_hand.data(), case_at_hand.size(),
                  " (--target %s --seed %llu --case %llu)\n", target.name.c_str(),
                  static_cast<unsigned long long>(options.seed),
                  static_cast<unsigned long long>(number));
    spillway::fuzz::Generator generator{options.seed * 0x9e3779b97f4a7c15ULL + number};
    const bool is_drawn = target.draw && number % 2 == 1;
    const std::string input =
        is_drawn ? target.draw(generator) : spillway::fuzz::spoilt_input(corpus, generator);
    alarm(kLongestCase);
    const Answer answer = ask(target, input, scratch.path());
    alarm(0);
    if (answer == Answer::kWrong) std::fputs(case_at_hand.data(), stderr);
    ++answers[static_cast<std::size_t>(answer)];
  };
  for (const std::string& input : corpus) {  // each as it is
    case_at_hand = {" (an input of the corpus as it is)\n"};
    if (ask(target, input, scratch.path()) == Answer::kWrong) return false;
  }
  if (options.only) {
    one(*options.only);
  } else {
    const auto end = Clock::now() + std::chrono::duration<double>{options.seconds};
    for (std::uint64_t number = 0; Clock::now() < end; ++number) one(number);
  }
  std::printf(
      "%s: %llu read, %llu refused, %llu wrong (seed %llu)\n", target.name.c_str(),
      static_cast<unsigned long long>(answers[0]), static_cast<unsigned long long>(answers[1]),
      static_cast<unsigned long long>(answers[2]), static_cast<unsigned long long>(options.seed));
  return answers[2] == 0;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const char* const value = argv[i + 1];
    if (flag == "--target") options.target = value;
    if (flag == "--corpus") options.corpus = value;
    if (flag == "--seconds") options.seconds = std::strtod(value, nullptr);
    if (flag == "--seed") options.seed = std::strtoull(value, nullptr, 10);
    if (flag == "--case") options.only = std::strtoull(value, nullptr, 10);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  set_limits();
  bool is_right = true;
  std::size_t asked = 0;
  for (const Target& target : spillway::fuzz::targets_of(options.target)) {
    ++asked;
    is_right = run(target, options) && is_right;
  }
  return is_right && asked > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fuzz: %s\n", error.what());
  return EXIT_FAILURE;
}
