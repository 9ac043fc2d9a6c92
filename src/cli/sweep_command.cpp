#include "src/cli/sweep_command.h"

#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prefetch/json.h"
#include "src/cli/complaint.h"
#include "src/cli/interrupt.h"
#include "src/cli/machine_check.h"
#include "src/cli/output_path.h"
#include "src/cli/plot_script.h"
#include "src/cli/processor_options.h"
#include "src/cli/suite_report.h"
#include "src/cli/suite_run.h"
#include "src/cli/sweep_lists.h"
#include "src/cli/sweep_progress.h"
#include "src/cli/sweep_report.h"
#include "src/cli/workload_options.h"
#include "src/executor.h"
#include "src/model_sizing.h"
#include "src/sweep/suite.h"
#include "src/sweep/sweep.h"
#include "src/sweep/sweep_json.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

using nlohmann::json;

constexpr const char* kComparison = "What is compared";
constexpr const char* kSuite = "Suite S";

struct Options {
  WorkloadOptions workload;
  std::vector<std::string> budgets{"12"};
  std::vector<std::string> planners{"all"};
  std::vector<std::string> machines;
  std::vector<std::string> links{"x1"};
  std::string recompute = "auto";
  std::string memory = "managed";
  int threads = 0;
  std::string json;
  std::string plot;
  std::string plot_of;
  bool memory_curves = false;
  bool is_suite = false;
  std::vector<std::string> suite_networks;
};

// One workload for all machines that are not here, one for the host, whose tensors are laid out as
// this machine's kernels want them.
std::shared_ptr<const Workload> make_workload(const Options& options, const std::string& machine) {
  const nets::Network network = options.workload.network();
  if (machine != "host") {
    return std::make_shared<const Workload>(network, ModelSizing{}, options.workload.step());
  }
  return std::make_shared<const Workload>(network, *ProcessorOptions{}.make_host_backend(),
                                          options.workload.step());
}

// Situations, and their budgets.
struct Grid {
  std::vector<Situation> situations;
  std::vector<Cell> cells;
};

Grid make_grid(const Options& options) {
  const std::vector<prefetch::Machine> machines =
      find_machines(options.machines.empty() ? std::vector<std::string>{"v100"} : options.machines);
  Grid grid;
  std::vector<um::Bytes> available;
  std::shared_ptr<const Workload> modelled;
  for (const prefetch::Machine& machine : machines) {
    std::shared_ptr<const Workload> workload =
        machine.name != "host" && modelled ? modelled : make_workload(options, machine.name);
    if (machine.name != "host") modelled = workload;
    for (const std::string& link : options.links) {
      grid.situations.push_back(make_situation(options.workload.net, options.workload.batch,
                                               workload, machine, parse_link_factor(link)));
      available.push_back(machine.near_memory);
    }
  }
  for (std::size_t i = 0; i < grid.situations.size(); ++i) {
    const Situation& situation = grid.situations[i];
    const std::vector<um::Bytes> budgets =
        resolve_budgets(options.budgets, situation.workload->need(), available[i]);
    for (std::size_t p = 0; p < budgets.size(); ++p) {
      grid.cells.push_back({.situation = &situation, .position = p, .budget = budgets[p]});
    }
  }
  return grid;
}

// Every plan must be sound: what is not is a bug of its planner.
void expect_sound(std::span<const Point> points) {
  for (const Point& point : points) {
    if (!point.outcome || point.outcome->violation.empty()) continue;
    throw um::Error{"the plan of planner " + point.key.planner + " for " + point.key.net +
                    " at batch " + std::to_string(point.key.batch) + " on " + point.key.machine +
                    " within " + std::to_string(point.key.budget.count()) +
                    " bytes does not verify: " + point.outcome->violation};
  }
}

void write(const json& result, const Options& options) {
  if (!options.json.empty()) prefetch::write_json(result, options.json);
  if (options.plot.empty() || result.at("points").empty()) return;
  draw_sweep(result, options.plot, options.plot_of);
}

void expect_finished(const Interrupt& interrupt) {
  if (interrupt.requested()) throw Interrupted{"points that were not reached are left out"};
}

void sweep_grid(const Options& options) {
  const Grid grid = make_grid(options);
  const std::vector<Strategy> strategies =
      find_strategies(options.planners, options.recompute == "auto");
  const Interrupt interrupt;
  SweepProgressLine line{"sweep"};
  const std::vector<Point> points =
      sweep(grid.cells, strategies,
            {.threads = options.threads,
             .whole_blocks = options.memory == "copy",
             .with_memory = options.memory_curves || options.plot_of == "memory",
             .on_progress = [&](const SweepProgress& progress) { line.show(progress); }},
            interrupt.requested());
  line.end();
  if (options.json != "-") print_sweep(points);
  write({{"memory", options.memory}, {"points", to_json(std::span<const Point>{points})}}, options);
  expect_sound(points);
  expect_finished(interrupt);
}

void sweep_suite(const Options& options) {
  const Interrupt interrupt;
  const SuiteResult result = run_suite({.networks = options.suite_networks,
                                        .machines = options.machines,
                                        .threads = options.threads},
                                       interrupt.requested());
  if (options.json != "-") print_suite(result);
  write(to_json(result), options);
  for (const auto* points : {&result.moving, &result.mixed, &result.algorithms, &result.large}) {
    expect_sound(*points);
  }
  expect_finished(interrupt);
}

void sweep(const Options& options) {
  if (!options.is_suite && options.workload.net.empty()) throw CLI::RequiredError{"--net"};
  if (!options.is_suite && options.workload.batch == 0) throw CLI::RequiredError{"--batch"};
  expect_writable(options.json);
  expect_writable(options.plot);
  if (!options.plot.empty()) expect_plotting();
  if (options.is_suite) {
    sweep_suite(options);
  } else {
    sweep_grid(options);
  }
}

void add_comparison(CLI::App& command, Options& options) {
  command
      .add_option("--budgets", options.budgets,
                  "Near memory, as for spillway plan, several with commas between them; or how "
                  "many budgets from the smallest feasible to the resident need")
      ->delimiter(',')
      ->check(check_budgets)
      ->capture_default_str()
      ->group(kComparison);
  command
      .add_option("--planners", options.planners,
                  "Strategies, with commas between them, or all; spillway plan --help explains "
                  "them")
      ->delimiter(',')
      ->check(check_planners)
      ->capture_default_str()
      ->group(kComparison);
  command
      .add_option("--machines", options.machines,
                  "Machines or machine files, with commas between them (default: v100; for the "
                  "suite k40m,v100,h200)")
      ->delimiter(',')
      ->check(check_machine)
      ->group(kComparison);
  command
      .add_option("--links", options.links,
                  "Speeds of the link as multiples of the machine's: x0.25,x1,x4")
      ->delimiter(',')
      ->check(check_link_factor)
      ->capture_default_str()
      ->group(kComparison);
  command
      .add_option("--recompute", options.recompute,
                  "auto: strategies may run layers again where that beats moving; off: never")
      ->check(CLI::IsMember({"auto", "off"}))
      ->capture_default_str()
      ->group(kComparison);
  command
      .add_option("--memory", options.memory,
                  "managed: blocks may be moved in parts; copy: whole blocks only, as explicit "
                  "copies do")
      ->check(CLI::IsMember({"managed", "copy"}))
      ->capture_default_str()
      ->group(kComparison);
}

void add_suite(CLI::App& command, Options& options) {
  auto* const suite = command.add_flag(
      "--suite", options.is_suite,
      "Evaluate suite S instead, 14 networks on 3 machines under 12 budgets each, and judge the "
      "goals G1 to G7");
  suite->group(kSuite);
  for (const char* name : {"--net", "--batch", "--image-size", "--classes", "--conv-algorithm",
                           "--budgets", "--planners", "--links", "--recompute", "--memory"}) {
    suite->excludes(command.get_option(name));
  }
  command
      .add_option("--suite-networks", options.suite_networks,
                  "Only these networks of the suite, with commas between them")
      ->delimiter(',')
      ->check([](const std::string& name) {
        return complaint_of([&] { static_cast<void>(find_suite_network(name)); });
      })
      ->needs(suite)
      ->group(kSuite);
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("sweep", "Compare strategies over budgets and machines; needs no device");
  const auto options = std::make_shared<Options>();  // shared: the callback keeps it
  options->workload.add_to(*command);
  command->get_option("--net")->required(false);
  command->get_option("--batch")->required(false);
  add_comparison(*command, *options);
  add_suite(*command, *options);
  constexpr int kMostThreads = 1024;
  command
      ->add_option("--threads", options->threads,
                   "Points evaluated at once (default: one a processor)")
      ->check(CLI::Range(1, kMostThreads));
  command->add_option("--json", options->json, "Write all points here as JSON, - for stdout");
  auto* const plot =
      command->add_option("--plot", options->plot,
                          "Draw the points into this PNG, PDF or SVG; needs Python's matplotlib");
  command
      ->add_option("--plot-of", options->plot_of,
                   "makespan against budget, against the speed of the link, or near memory task "
                   "by task (default: link where more links than budgets are compared, else "
                   "makespan)")
      ->check(CLI::IsMember({"makespan", "link", "memory"}))
      ->needs(plot);
  command->add_flag("--memory-curves", options->memory_curves,
                    "Keep in the JSON how much near memory each task of a plan meets");
  command->footer(
      "Prints the makespan of each plan over the time of a step with room for everything and the\n"
      "fastest algorithms (compute_seconds in the JSON), beside the least that any plan can "
      "reach.\n"
      "Example: spillway sweep --net resnet50 --batch 128 --machines v100,k40m --budgets 12\n"
      "Example: spillway sweep --net vgg16 --batch 256 --budgets min,min+20%,80% --links x0.5,x1\n"
      "Example: spillway sweep --suite --json suite.json");
  command->callback([options] { sweep(*options); });
}

}  // namespace spillway::cli
