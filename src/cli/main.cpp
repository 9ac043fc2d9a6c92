#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "src/cli/bench/bench_command.h"
#include "src/cli/devices_command.h"
#include "src/cli/document_command.h"
#include "src/cli/misspelling.h"
#include "src/cli/nets_command.h"
#include "src/cli/plan/plan_command.h"
#include "src/cli/plan/profile_command.h"
#include "src/cli/report_command.h"
#include "src/cli/sweep/sweep_command.h"
#include "src/cli/train/train_command.h"
#include "src/cli/version.h"
#include "src/execute/executor.h"
#include "um/error.h"

namespace {

constexpr int kFailure = 1;
constexpr int kBadUsage = 2;
constexpr int kInterrupted = 130;  // as a shell reports SIGINT

int run(int argc, char** argv) {
  using namespace spillway::cli;
  CLI::App app{"Trains neural networks whose activations do not fit in near memory."};
  app.name("spillway");
  app.set_version_flag("--version", version_text,
                       "Show version, commit, compiler, and versions of oneDNN and CUDA");
  app.require_subcommand(1);
  add_train_command(app);
  add_plan_command(app);
  add_sweep_command(app);
  add_profile_command(app);
  add_bench_command(app);
  add_report_command(app);
  add_nets_command(app);
  add_devices_command(app);
  add_document_command(app);
  app.footer(
      "Each subcommand explains itself: spillway train --help\n"
      "Example: spillway train --net resnet50 --batch 32 --steps 20 --budget 40%");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
    if (const auto sentence = misspelling(app)) {
      fmt::print(stderr, "{}\n", *sentence);
    } else {
      app.exit(error);
    }
    return kBadUsage;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const spillway::Interrupted& interrupted) {
    fmt::print(stderr, "spillway: interrupted; {}\n", interrupted.what());
    return kInterrupted;
  } catch (const spillway::um::Error& error) {
    fmt::print(stderr, "spillway: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "spillway: this machine has no more memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "spillway: a bug in spillway, please report it: {}\n", error.what());
  }
  return kFailure;
}
