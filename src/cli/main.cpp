#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "src/cli/bench/bench_command.h"
#include "src/cli/checkpoint_command.h"
#include "src/cli/devices_command.h"
#include "src/cli/document_command.h"
#include "src/cli/evaluate/evaluate_command.h"
#include "src/cli/evaluate/predict_command.h"
#include "src/cli/export_command.h"
#include "src/cli/misspelling.h"
#include "src/cli/nets_command.h"
#include "src/cli/plan/plan_command.h"
#include "src/cli/plan/profile_command.h"
#include "src/cli/report_command.h"
#include "src/cli/sample/sample_command.h"
#include "src/cli/sweep/sweep_command.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/standard_streams.h"
#include "src/cli/terminal/tell.h"
#include "src/cli/train/recipe.h"
#include "src/cli/train/train_command.h"
#include "src/cli/version.h"
#include "src/execute/executor.h"
#include "src/ranks/mpi/open_mpi.h"
#include "um/error.h"

namespace {

constexpr int kFailure = 1;
constexpr int kBadUsage = 2;

// The arguments of a training, with what its recipe says.
std::vector<std::string> with_recipe(const CLI::App& app, std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "train") return arguments;
  return spillway::cli::expand_recipe(*app.get_subcommand("train"), std::move(arguments));
}

// Ranks that a launcher started mostly fail alike before they have joined. The first one says why,
// and its end has the launcher end the others: so each sentence is told once, and none is lost.
void let_first_rank_tell() noexcept {
  if (!spillway::is_started_first()) std::this_thread::sleep_for(std::chrono::seconds{2});
}

int run(int argc, char** argv) {
  using namespace spillway::cli;
  CLI::App app{"Trains neural networks whose activations do not fit in near memory."};
  app.name("spillway");
  app.set_version_flag("--version", version_text,
                       "Show version, commit, compiler, and versions of oneDNN and CUDA");
  app.require_subcommand(1);
  add_train_command(app);
  add_evaluate_command(app);
  add_predict_command(app);
  add_sample_command(app);
  add_plan_command(app);
  add_sweep_command(app);
  add_profile_command(app);
  add_bench_command(app);
  add_report_command(app);
  add_checkpoint_command(app);
  add_export_command(app);
  add_nets_command(app);
  add_devices_command(app);
  add_document_command(app);
  app.footer(
      "Each subcommand explains itself: spillway train --help\n"
      "Example: spillway train --net resnet50 --batch 32 --steps 20 --budget 40%");
  try {
    // CLI11 takes them from the last to the first.
    std::vector<std::string> arguments = with_recipe(app, {argv + 1, argv + argc});
    std::ranges::reverse(arguments);
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    let_first_rank_tell();
    if (const auto sentence = misspelling(app)) {
      tell("{}\n", spillway::um::shortened(*sentence));
    } else {
      std::stringstream text;
      app.exit(error, text, text);
      for (std::string line; std::getline(text, line);) {
        tell("{}\n", spillway::um::shortened(line));
      }
    }
    return kBadUsage;
  }
  return 0;
}

// The system refused something that the code at hand has no sentence for.
std::string sentence_of(const std::system_error& error) {
  if (std::ferror(stdout) != 0) {
    return "cannot write to standard output: " + error.code().message();
  }
  if (error.code() == std::errc::resource_unavailable_try_again) {
    return "the system starts no more threads; raise the limit of processes (ulimit -u), or run "
           "fewer programs";
  }
  return std::string{"the system refuses: "} + error.what();
}

// Tells what `sentence()` answers. There may be no memory for that, and it must not end in main.
template <typename Sentence>
void explain(const Sentence& sentence) noexcept {
  try {
    spillway::cli::tell("spillway: {}\n", sentence());
  } catch (...) {
    std::fputs("spillway: this machine has no more memory\n", stderr);
  }
}

template <typename Sentence>
void explain_failure(const Sentence& sentence) noexcept {
  let_first_rank_tell();
  explain(sentence);
}

int run_and_explain(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (code == 0) spillway::cli::expect_output_written();
    return code;
  } catch (const spillway::Interrupted& interrupted) {
    explain([&] { return std::string{"interrupted; "} + interrupted.what(); });
    return spillway::cli::exit_code_of_interrupt();
  } catch (const spillway::um::Error& error) {
    explain_failure([&] { return error.what(); });
  } catch (const std::bad_alloc&) {
    explain_failure([] { return "this machine has no more memory"; });
  } catch (const std::system_error& error) {
    explain_failure([&] { return sentence_of(error); });
  } catch (const std::exception& error) {
    explain_failure(
        [&] { return std::string{"a bug in spillway, please report it: "} + error.what(); });
  }
  return kFailure;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error of its write
  std::signal(SIGPIPE, SIG_IGN);  // and so is a pipe that nobody reads any more
  spillway::cli::open_missing_streams();
  return run_and_explain(argc, argv);
}
