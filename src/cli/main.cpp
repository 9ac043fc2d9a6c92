#include <fmt/core.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "src/bench/build.h"
#include "src/cli/bench/bench_command.h"
#include "src/cli/commands.h"
#include "src/cli/flags/bad_usage.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/terminal/help.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/terminal.h"
#include "src/cli/train/recipe.h"
#include "src/host/host_backend.h"
#include "src/ranks/mpi/open_mpi.h"
#include "src/run/executor.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

constexpr const char* kCuda = SPILLWAY_CUDA_VERSION;  // empty without CUDA support

// Returns the output of `spillway --version`: version, commit, compiler, oneDNN and CUDA, one per
// line.
std::string version_text() {
  const std::string commit = build_commit();
  return fmt::format("spillway {}\ncommit {}\n{}\n{}\n{}{}", build_version(),
                     commit.empty() ? "unknown" : commit, kCompiler, host::kernel_library(),
                     *kCuda == '\0' ? "built without CUDA" : "built with CUDA ", kCuda);
}

constexpr int kFailure = 1;
constexpr int kBadUsage = 2;
constexpr int kUnread = 128 + SIGPIPE;  // as of a program that `| head` ends, without a word

// Waits on all ranks except the first. Ranks usually fail alike before they have joined. Rank 0
// reports the failure and exits, and the launcher ends the others: each message appears once.
void let_first_rank_tell() noexcept {
  if (!is_started_first()) std::this_thread::sleep_for(std::chrono::seconds{2});
}

int run(int argc, char** argv) {
  CLI::App app{"Trains neural networks whose activations do not fit in near memory."};
  app.name("spillway");
  app.set_version_flag("--version", version_text,
                       "Show version, commit, compiler, and versions of oneDNN and CUDA");
  app.require_subcommand(1);
  app.formatter(make_help_formatter());  // before the subcommands, which take both
  app.set_help_all_flag("--help-all", "Print this help message with all options and exit");
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
  add_cache_command(app);
  add_export_command(app);
  add_nets_command(app);
  add_devices_command(app);
  add_document_command(app);
  app.footer(
      "Each subcommand explains itself: spillway train --help, and all of its options: spillway "
      "train --help-all\n"
      "Example: spillway train --net resnet50 --batch 32 --steps 20 --budget 40%");
  try {
    std::vector<std::string> arguments{argv + 1, argv + argc};
    if (!arguments.empty() && arguments.front() == "train") {
      arguments = expand_recipe(*app.get_subcommand("train"), std::move(arguments));
    }
    std::ranges::reverse(arguments);  // as CLI11 takes them
    app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    let_first_rank_tell();
    if (const auto help = help_without_subcommand(app, error)) {
      tell(*help);
    } else {
      tell("spillway: {}\n", um::shortened(sentence_about(app, error)));
    }
    return kBadUsage;
  }
  return 0;
}

// Returns a message for a system error that no other code handles.
std::string sentence_of(const std::system_error& error) {
  if (std::ferror(stdout) != 0) {
    return "cannot write to standard output: " + error.code().message();
  }
  if (error.code() == std::errc::resource_unavailable_try_again) {
    rlimit addresses{};
    const bool is_limited =
        getrlimit(RLIMIT_AS, &addresses) == 0 && addresses.rlim_cur != RLIM_INFINITY;
    return fmt::format(
        "the system starts no more threads; raise the limit of processes (ulimit -u){}, or "
        "run fewer programs",
        is_limited ? " or of addresses (ulimit -v)" : "");
  }
  return std::string{"the system refuses: "} + error.what();
}

// Prints the result of `sentence()`. Memory may be exhausted, and no exception may leave main().
template <typename Sentence>
void explain(const Sentence& sentence) noexcept {
  try {
    tell("spillway: {}\n", sentence());
  } catch (...) {
    std::fputs("spillway: this machine has no more memory\n", stderr);
  }
}

template <typename Sentence>
void explain_failure(const Sentence& sentence) noexcept {
  let_first_rank_tell();
  explain(sentence);
}

// Returns whether the reader of the output has gone, as `| head` does, which needs no words. A
// training says how it goes on.
bool is_cut_off(int argc, char** argv) {
  const bool trains = argc > 1 && std::string_view{argv[1]} == "train";
  return std::ferror(stdout) != 0 && is_output_unread() &&
         (!trains || argc == 3);  // with --help alone
}

int run_and_explain(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    if (code == 0) expect_output_written();
    return code;
  } catch (const Interrupted& interrupted) {
    explain([&] { return std::string{"interrupted; "} + interrupted.what(); });
    return exit_code_of_interrupt();
  } catch (const um::Error& error) {
    if (is_cut_off(argc, argv)) return kUnread;
    explain_failure([&] { return error.what(); });
  } catch (const std::bad_alloc&) {
    explain_failure([] { return "this machine has no more memory"; });
  } catch (const std::system_error& error) {
    if (is_cut_off(argc, argv)) return kUnread;
    explain_failure([&] { return sentence_of(error); });
  } catch (const std::exception& error) {
    explain_failure(
        [&] { return std::string{"a bug in spillway, please report it: "} + error.what(); });
  }
  return kFailure;
}

}  // namespace

}  // namespace spillway::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond the size limit fails instead
  std::signal(SIGPIPE, SIG_IGN);  // so does writing to a closed pipe
  spillway::cli::open_missing_streams();
  return spillway::cli::run_and_explain(argc, argv);
}
