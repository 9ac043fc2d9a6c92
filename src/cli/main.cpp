#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "src/cli/bench/bench_command.h"
#include "src/cli/devices_command.h"
#include "src/cli/nets_command.h"
#include "src/cli/plan/plan_command.h"
#include "src/cli/plan/profile_command.h"
#include "src/cli/report_command.h"
#include "src/cli/sweep/sweep_command.h"
#include "src/cli/train/train_command.h"
#include "src/execute/executor.h"
#include "um/error.h"

namespace {

constexpr int kFailure = 1;
constexpr int kBadUsage = 2;
constexpr int kInterrupted = 130;  // as a shell reports SIGINT

int run(int argc, char** argv) {
  CLI::App app{"Trains neural networks whose activations do not fit in near memory."};
  app.name("spillway");
  app.set_version_flag("--version", SPILLWAY_VERSION);
  app.require_subcommand(1);
  spillway::cli::add_train_command(app);
  spillway::cli::add_plan_command(app);
  spillway::cli::add_sweep_command(app);
  spillway::cli::add_profile_command(app);
  spillway::cli::add_bench_command(app);
  spillway::cli::add_report_command(app);
  spillway::cli::add_nets_command(app);
  spillway::cli::add_devices_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
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
