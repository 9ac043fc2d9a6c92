#include "src/cli/plan/profile_command.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/machine_check.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/progress_line.h"
#include "src/plan/budget.h"
#include "src/plan/plans.h"
#include "src/profile/measured_profile.h"

namespace spillway::cli {
namespace {

struct ProfileFlags {
  WorkloadFlags workload;
  DeviceFlags device;
  MemoryFlags memory;
  std::string budget = "auto";
  std::string machine;  // empty: times are measured
  std::string out = "profile.json";
};

prefetch::Profile measure(const ProfileFlags& options, ExecutionContext& context,
                          const Workload& workload) {
  const Budget budget = Budget::parse(options.budget);
  const um::Bytes limit = budget.resolve(workload.need(), context.device->available_memory());
  expect_feasible(workload.neediest_to_plan(), limit);
  const Interrupt interrupt;
  ProgressLine progress;
  return measure_profile(
      context, workload, limit, options.memory.mode(), options.memory.space(), interrupt.token(),
      [&](double part) { progress.show(fmt::format("measuring tasks: {:.0f} %", 100 * part)); });
}

void profile(const ProfileFlags& options) {
  expect_writable(options.out);
  ExecutionContext context = options.device.open();
  const nets::Network network = options.workload.network();
  const Workload workload{network, *context.backend, options.workload.step()};
  const prefetch::Profile profile =
      options.machine.empty() ? measure(options, context, workload)
                              : prefetch::model_profile(workload.training().graph,
                                                        prefetch::find_machine(options.machine));
  prefetch::write_json(prefetch::to_json(profile, workload.training().graph), options.out);
}

// A model knows neither memory nor budget, so that their flags would have no effect.
void add_machine_to(CLI::App& command, std::string& machine) {
  CLI::Option* const option =
      command
          .add_option(
              "--machine", machine,
              "Take the times of a machine model instead of measuring them, so that plans "
              "are the same each time: host, v100 and others, or a machine file "
              "(prefetch/README.md). Not with the flags of near memory, far memory and link")
          ->check(check_machine);
  for (const char* const name :
       {"--budget", "--memory", "--far", "--far-checksums", "--link-bandwidth", "--link-latency",
        "--fault-latency", "--paging", "--oversubscribe", "--discard"}) {
    option->excludes(command.get_option(name));
  }
}

}  // namespace

void add_profile_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "profile", "Measure the time of each task of a training step, and the link");
  const auto options = std::make_shared<ProfileFlags>();  // shared: the callback keeps it
  options->workload.add_to(*command);
  options->device.add_to(*command);
  options->memory.add_mode_to(*command);
  options->memory.add_space_to(*command);
  command
      ->add_option("--budget", options->budget,
                   "Near memory for the measurement; algorithms that do not fit are left out")
      ->check(check_budget)
      ->capture_default_str();
  add_machine_to(*command, options->machine);
  command
      ->add_option("--out", options->out, "Write the profile to this file, - for standard output")
      ->capture_default_str();
  command->footer("Example: spillway profile --net resnet50 --batch 32 --out resnet50.json");
  command->callback([options, command] {
    options->memory.expect_effects(*command);
    profile(*options);
  });
}

}  // namespace spillway::cli
