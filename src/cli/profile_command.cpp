#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "prefetch/files/json.h"
#include "prefetch/files/machine.h"
#include "prefetch/files/profile_file.h"
#include "src/cli/commands.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/memory_flags.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/plan_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/terminal.h"
#include "src/plan/budget.h"
#include "src/plan/memory_choice.h"
#include "src/plan/plans.h"
#include "src/ranks/agreement.h"
#include "src/ranks/mpi/open_mpi.h"
#include "src/run/executor.h"
#include "src/run/interconnect_profiler.h"
#include "src/run/measured_profile.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

struct ProfileFlags {
  WorkloadFlags workload;
  DeviceFlags device;
  MemoryFlags memory;
  std::string budget = "auto";
  std::string machine;  // empty: measure times
  std::string ranks;    // empty: a single process
  std::string out = "profile.json";
};

um::Bytes limit_of(const ProfileFlags& options, const ExecutionContext& context,
                   const Workload& workload) {
  const Budget budget = Budget::parse(options.budget);
  return budget.resolve(workload.need(), context.device->available_memory());
}

prefetch::Profile measure(const ProfileFlags& options, ExecutionContext& context,
                          const Workload& workload) {
  const um::Bytes limit = limit_of(options, context, workload);
  expect_feasible(workload.training_to_plan(), limit);
  const um::ManagedOptions space = options.memory.space();
  const MemoryMode mode = memory_mode(options.memory.mode(), *context.device, space.far);
  const Interrupt interrupt;
  ProgressLine progress;
  return measure_profile(context,
                         {.workload = workload,
                          .limit = limit,
                          .mode = mode,
                          .space = space,
                          .with_link = mode != MemoryMode::kResident},
                         interrupt.token(), [&](double part) {
                           progress.show(fmt::format("measuring tasks: {:.0f} %", 100 * part));
                         });
}

// Prints the measured interconnect as flags of `spillway plan`.
void tell_interconnect(Communicator& ranks, const DeviceFlags& device, const ExchangeLoad& load) {
  const auto join = joining_of(device.device, ranks, {});
  const std::unique_ptr<Communicator> devices = join ? join(load.context) : nullptr;
  const RankMemory memory{ranks, devices != nullptr ? *devices : ranks,
                          load.context.device->memory()};
  prefetch::Interconnect between = measure_interconnect(memory);
  between.compute_speed = compute_speed_while_exchanging(memory, load);
  tell(
      "between these ranks: plan --ranks {} --interconnect {:.1f}MB/s --interconnect-latency "
      "{:.1f}us --compute-speed-while-exchanging {:.2f}\n",
      ranks.size(), between.bandwidth.bytes_per_second() * 1e-6,
      static_cast<double>(between.latency.count()) * 1e-3, between.compute_speed);
}

// Measures a profile; only rank 0 writes it.
void write_profile(const ProfileFlags& options, Communicator& ranks) {
  if (ranks.rank() == 0) expect_writable(options.out);
  ExecutionContext context = options.device.open();
  const nets::Network network = options.workload.network();
  const Workload workload{network, *context.backend, options.workload.step()};
  const Step& step = workload.training();
  const prefetch::Profile profile =
      options.machine.empty()
          ? measure(options, context, workload)
          : prefetch::model_profile(step.graph, prefetch::find_machine(options.machine));
  if (ranks.rank() == 0) prefetch::write_json(prefetch::to_json(profile, step.graph), options.out);
  if (ranks.size() == 1) return;
  wait_for_all(ranks);
  tell_interconnect(ranks, options.device,
                    {.context = context,
                     .step = step,
                     .profile = profile,
                     .limit = limit_of(options, context, workload)});
}

// Measures on all ranks at once, as they will train. Rank 0 writes its own measurement.
void profile_ranks(ProfileFlags& options, const std::string& arguments) {
  if (!started_with_ranks()) {
    throw um::Error{
        "--ranks auto is for several processes: start them with mpirun -n 2 spillway profile ... "
        "--ranks auto"};
  }
  const std::unique_ptr<Communicator> ranks = open_mpi();
  if (ranks->size() == 1) throw um::Error{"one rank has nothing between: start two or more"};
  if (ranks->rank() > 0) be_silent();
  try {
    options.device.device = device_of_rank(options.device.device, *ranks);
    expect_agreement(*ranks, agreement_of_ranks(arguments, options.device.device));
    write_profile(options, *ranks);
  } catch (const Interrupted&) {
    throw;  // raised on all ranks
  } catch (const std::bad_alloc&) {
    end_all(*ranks, "this machine has no more memory");
  } catch (const std::exception& error) {
    end_all(*ranks, error.what());
  }
}

void profile(ProfileFlags& options, const std::string& arguments) {
  if (options.ranks.empty()) return write_profile(options, self_communicator());
  profile_ranks(options, arguments);
}

// Excludes the flags of memory and budget, which have no effect on a machine model.
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
        "--fault-latency", "--paging", "--oversubscribe", "--discard", "--ranks"}) {
    option->excludes(command.get_option(name));
  }
}

}  // namespace

void add_profile_command(CLI::App& app) {
  CLI::App* const command = app.add_subcommand(
      "profile", "Measure the time of each task of a training step, and the link");
  const auto options = std::make_shared<ProfileFlags>();  // shared with the callback
  options->workload.add_to(*command);
  options->device.add_to(*command);
  options->memory.add_mode_to(*command);
  options->memory.add_space_to(*command);
  command
      ->add_option("--budget", options->budget,
                   "Near memory for the measurement; algorithms that do not fit are left out")
      ->check(check_budget)
      ->capture_default_str();
  command
      ->add_option("--ranks", options->ranks,
                   "auto: measure as one of the processes that mpirun or srun started, all at the "
                   "same time, and what is between them, in the words of spillway plan. Give "
                   "--threads, so that they share the processors")
      ->check(CLI::IsMember({"auto"}))
      ->type_name("auto");
  add_machine_to(*command, options->machine);
  command
      ->add_option("--out", options->out, "Write the profile to this file, - for standard output")
      ->capture_default_str();
  command->footer("Example: spillway profile --net resnet50 --batch 32 --out resnet50.json");
  command->callback([options, command] {
    options->memory.note_idle_flags(*command);
    profile(*options, command->config_to_str());
  });
}

}  // namespace spillway::cli
