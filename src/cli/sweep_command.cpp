#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "prefetch/files/json.h"
#include "prefetch/files/plan_file.h"
#include "src/cli/commands.h"
#include "src/cli/flags/cli11.h"
#include "src/cli/flags/device_flags.h"
#include "src/cli/flags/flag_values.h"
#include "src/cli/flags/output_path.h"
#include "src/cli/flags/sweep_flags.h"
#include "src/cli/flags/workload_flags.h"
#include "src/cli/plot_script.h"
#include "src/cli/terminal/help.h"
#include "src/cli/terminal/interrupt.h"
#include "src/cli/terminal/terminal.h"
#include "src/plan/budget.h"
#include "src/plan/workload.h"
#include "src/program/combinations.h"
#include "src/program/machine_size_model.h"
#include "src/program/passes.h"
#include "src/run/executor.h"
#include "src/sweep/scenario.h"
#include "src/sweep/sweep.h"
#include "um/error.h"

namespace spillway::cli {
namespace {

/// Flags for the output of a sweep: --json, --plot and related ones.
struct SweepOutput {
  std::string json;
  std::string plot;
  std::string plot_of;
  bool memory_curves = false;

  void add_to(CLI::App& app);

  /// Throws: um::Error when a file cannot be written or drawing is not possible.
  void expect_possible() const;

  /// Returns whether standard output is JSON.
  [[nodiscard]] bool is_on_standard_output() const { return json == "-"; }
  /// Returns whether points need their near memory, task by task.
  [[nodiscard]] bool wants_memory() const { return memory_curves || plot_of == "memory"; }

  /// Writes and draws what is asked for; draws nothing if there are no points.
  void write(const nlohmann::json& sweep) const;
};

void SweepOutput::add_to(CLI::App& app) {
  app.add_option("--json", json, "Write all points as JSON to this file, - for standard output");
  auto* const picture = app.add_option(
      "--plot", plot, "Plot the points to this PNG, PDF or SVG file; needs Python's matplotlib");
  app.add_option(
         "--plot-of", plot_of,
         "makespan: step time against budget; link: step time against link bandwidth; memory: "
         "near memory per task (default: link if there are more links than budgets, else "
         "makespan)")
      ->check(CLI::IsMember({"makespan", "link", "memory"}))
      ->needs(picture);
  app.add_flag("--memory-curves", memory_curves,
               "Add the near memory in use at each task to the JSON");
}

void SweepOutput::expect_possible() const {
  expect_writable(json);
  expect_writable(plot);
  if (!plot.empty()) expect_plotting();
}

void SweepOutput::write(const nlohmann::json& sweep) const {
  if (!json.empty()) prefetch::write_json(sweep, json);
  if (plot.empty() || sweep.at("points").empty()) return;
  draw_sweep(sweep, plot, plot_of);
}

bool is_same_scenario(const Point& a, const Point& b) {
  const auto identity = [](const Point& point) {
    return std::tie(point.key.net, point.key.batch, point.key.machine, point.key.link_factor);
  };
  return identity(a) == identity(b);
}

bool is_same_sweep_point(const Point& a, const Point& b) {
  return is_same_scenario(a, b) && a.key.position == b.key.position;
}

// Returns the points at the front of `points` that are alike.
template <typename Alike>
std::span<const Point> first_group(std::span<const Point> points, const Alike& alike) {
  const auto end = std::ranges::find_if_not(
      points, [&](const Point& point) { return alike(points.front(), point); });
  return points.first(static_cast<std::size_t>(end - points.begin()));
}

std::string sweep_point_text(const Point& point) {
  if (!point.outcome) return "-";
  return fmt::format("{:.4f}", slowdown(point).value());
}

// Returns the strongest lower bound for any strategy, relative to the fastest step.
std::string bound_text(const Point& point) {
  if (!point.facts.bounds) return "-";
  const um::Nanoseconds bound = point.facts.bounds->mixed_transition;
  return fmt::format("{:.4f}", um::seconds(bound) / um::seconds(point.facts.fastest));
}

// Prints strategies without a plan, with the smallest budget that works for each or the reason.
void print_infeasible(std::span<const Point> sweep_points) {
  std::vector<std::string> said;
  for (const Point& point : sweep_points) {
    if (point.outcome || std::ranges::find(said, point.key.planner) != said.end()) continue;
    if (point.refusal.empty()) {
      fmt::print("  -: {} needs at least {}\n", point.key.planner,
                 um::to_string(point.smallest_budget));
    } else {
      fmt::print("  -: {}\n", point.refusal);
    }
    said.push_back(point.key.planner);
  }
}

void print_scenario(std::span<const Point> points) {
  const Point& first = points.front();
  const std::string precision =
      first.key.precision == "fp32" ? "" : fmt::format(" in {}", first.key.precision);
  const std::size_t width = terminal_width(STDOUT_FILENO);
  const std::string title =
      fmt::format("{} at batch {} on {}{}, link x{:g}: {} with all near ({}); smallest budget {}\n",
                  first.key.net, first.key.batch, first.key.machine, precision,
                  first.key.link_factor, duration_text(first.facts.fastest),
                  um::to_string(first.facts.resident), um::to_string(first.facts.smallest_budget));
  fmt::print("{}", wrapped(title, width, 2));
  std::vector<TableLine> lines{{"budget"}, {"bound"}};
  for (const Point& point : first_group(points, is_same_sweep_point)) {
    lines.push_back({point.key.planner});
  }
  for (std::span<const Point> left = points; !left.empty();) {
    const std::span<const Point> sweep_point = first_group(left, is_same_sweep_point);
    lines[0].push_back(um::to_string(sweep_point.front().key.budget));
    lines[1].push_back(bound_text(sweep_point.front()));
    for (std::size_t i = 0; i < sweep_point.size(); ++i) {
      lines[2 + i].push_back(sweep_point_text(sweep_point[i]));
    }
    left = left.subspan(sweep_point.size());
  }
  fmt::print("{}", text_tables(lines, width));
  print_infeasible(points);
}

// Prints a table per scenario: a line per strategy, a column per budget. Values are makespans
// relative to a step with all in near memory. `points` are grouped by sweep point, each with the
// same strategies.
void print_sweep(std::span<const Point> points) {
  while (!points.empty()) {
    const std::span<const Point> scenario = first_group(points, is_same_scenario);
    print_scenario(scenario);
    points = points.subspan(scenario.size());
    if (!points.empty()) fmt::print("\n");
  }
}

struct SweepFlags {
  WorkloadFlags workload;
  ComparisonFlags comparison;
  DeviceFlags device;  // of the machines: only --precision
  SweepOutput output;
  std::vector<std::string> plans;  // files
  std::string noise;
  std::string state = "auto";
  std::string update = "near";
  int threads = 0;
};

// Returns whether one of the files has a plan of a step like `workload`'s.
bool has_plan_of(const Workload& workload, const std::vector<std::string>& files) {
  return std::ranges::any_of(files, [&](const std::string& file) {
    return prefetch::is_made_for(workload.training().graph, prefetch::JsonFile{file}.root());
  });
}

void expect_updates_far(const std::vector<Strategy>& strategies) {
  for (const Strategy& strategy : strategies) {
    if (strategy.planner->updates_far()) continue;
    throw um::Error{"planner " + std::string{strategy.planner->name()} +
                    " plans no updates on the far side; leave out --update far, or a --plan that "
                    "has them, or give --planners joint,fractional,capacity"};
  }
}

std::shared_ptr<const Workload> planned_step(const std::shared_ptr<const Workload>& near,
                                             const SweepFlags& options,
                                             const SizeModel& size_model) {
  if (options.state == "near") return near;
  const auto with = [&](StatePlace state) -> std::shared_ptr<const Workload> {
    return near->with(size_model, near->features().with(state));
  };
  if (options.update == "far") {
    auto updating = with(StatePlace::kUpdatedFar);
    if (updating == nullptr) refuse_far_updates();
    return updating;
  }
  auto far = with(StatePlace::kMovable);
  if (options.state == "far" || has_plan_of(*far, options.plans)) return far;
  if (options.plans.empty()) return near;
  auto updating = with(StatePlace::kUpdatedFar);
  return updating != nullptr && has_plan_of(*updating, options.plans) ? updating : near;
}

// Makes the step for the host with this machine's tensor layouts; other machines share one step.
ComparedStep make_step(const nets::Network& network, const SweepFlags& options,
                       const std::string& machine) {
  const auto make = [&](const SizeModel& size_model) -> ComparedStep {
    const auto near =
        std::make_shared<const Workload>(network, size_model, options.workload.step());
    return {.near = near, .planned = planned_step(near, options, size_model)};
  };
  if (machine != "host") return make(MachineSizeModel{options.device.chosen_precision()});
  return make(*options.device.make_host_backend());
}

// Scenarios and their budgets.
struct Grid {
  std::vector<Scenario> scenarios;
  std::vector<SweepPoint> sweep_points;
};

Grid make_grid(const SweepFlags& options) {
  std::vector<prefetch::Machine> machines =
      find_machines(options.comparison.machines.empty() ? std::vector<std::string>{"v100"}
                                                        : options.comparison.machines);
  for (prefetch::Machine& machine : machines) {
    machine = prefetch::in_precision(std::move(machine), options.device.precision);
  }
  const nets::Network network = options.workload.network();
  Grid grid;
  std::vector<um::Bytes> available;
  std::optional<ComparedStep> modelled;
  for (const prefetch::Machine& machine : machines) {
    const ComparedStep step =
        machine.name != "host" && modelled ? *modelled : make_step(network, options, machine.name);
    if (machine.name != "host") modelled = step;
    for (const std::string& link : options.comparison.links) {
      grid.scenarios.push_back(make_scenario(network.name, options.workload.batch, step, machine,
                                             parse_link_factor(link)));
      available.push_back(machine.near_memory);
    }
  }
  for (std::size_t i = 0; i < grid.scenarios.size(); ++i) {
    const Scenario& scenario = grid.scenarios[i];
    const std::vector<um::Bytes> budgets =
        resolve_budgets(options.comparison.budgets, scenario.need, available[i]);
    for (std::size_t p = 0; p < budgets.size(); ++p) {
      grid.sweep_points.push_back({.scenario = &scenario, .position = p, .budget = budgets[p]});
    }
  }
  return grid;
}

void sweep(const SweepFlags& options) {
  expect_budgets(options.comparison.budgets);
  options.output.expect_possible();
  if (options.update == "far" && options.state == "near") {
    throw um::Error{
        "updates on the far side are of state that is far; leave out --state near, or --update "
        "far"};
  }
  const Grid grid = make_grid(options);
  std::vector<Strategy> strategies = options.comparison.strategies();
  const auto updates_far = [](const Scenario& scenario) {
    return !scenario.graph().far_updates.empty();
  };
  if (std::ranges::any_of(grid.scenarios, updates_far)) expect_updates_far(strategies);
  const std::vector<PlanFileStrategy> plans{options.plans.begin(), options.plans.end()};
  for (const PlanFileStrategy& plan : plans) strategies.push_back({.planner = &plan});
  const Interrupt interrupt;
  TimeLeftLine line{"sweep"};
  const std::vector<Point> points =
      sweep(grid.sweep_points, strategies,
            {.threads = options.threads,
             .whole_blocks = options.comparison.memory == "copy",
             .noise = options.noise.empty() ? 0 : parse_percent(options.noise).value(),
             .with_memory = options.output.wants_memory(),
             .on_progress =
                 [&](const SweepProgress& progress) { line.show(progress.done, progress.latest); }},
            interrupt.token());
  line.end();
  if (!options.output.is_on_standard_output()) print_sweep(points);
  options.output.write({{"memory", options.comparison.memory},
                        {"state", options.state},
                        {"update", options.update},
                        {"points", to_json(std::span<const Point>{points})}});
  const auto unsound = std::ranges::find_if(points, &Point::is_unsound);
  if (unsound != points.end()) throw um::Error{unsound->refusal};
  if (interrupt.token().stop_requested()) {
    throw Interrupted{"points that were not reached are left out"};
  }
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  CLI::App* const command =
      app.add_subcommand("sweep", "Compare planners over budgets and machines; needs no device");
  const auto options = std::make_shared<SweepFlags>();  // shared with the callback
  options->workload.add_to(*command);
  options->comparison.add_to(*command);
  options->device.add_precision_to(*command);
  constexpr int kMaxThreads = 1024;
  command
      ->add_option("--threads", options->threads,
                   "Points evaluated in parallel (default: one per processor)")
      ->check(whole_number(1, kMaxThreads));
  command
      ->add_option("--noise", options->noise,
                   "Also simulate each plan with each task's time up to so much shorter or longer, "
                   "e.g. 10%: noise_loss and noise_peak_bytes in the JSON")
      ->check(check_noise);
  command
      ->add_option("--state", options->state,
                   "near: weights and the optimizer's numbers stay in near memory, as the papers "
                   "have it; far: planners that can (joint, fractional, capacity, on-demand) may "
                   "move them, for others they are near; auto: near, unless a --plan moves them")
      ->check(CLI::IsMember({"auto", "near", "far"}))
      ->capture_default_str();
  command
      ->add_option(
          "--update", options->update,
          "near: updates come to near memory; far: the processor beside far memory updates "
          "weights there (ZeRO-Offload), with planners joint, fractional and capacity; all "
          "those weights are then far between steps")
      ->check(CLI::IsMember({"near", "far"}))
      ->capture_default_str();
  command
      ->add_option("--plan", options->plans,
                   "A plan file (spillway plan --out, prefetch/README.md) to compare with the "
                   "planners, as a row named after the file; may be repeated. It must be of this "
                   "network and batch; where its budget is more than the point's, it has no plan")
      ->check(CLI::ExistingFile)
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  options->output.add_to(*command);
  command->footer(
      "Prints the simulated step time of each plan, relative to a step with unlimited near memory "
      "and the fastest algorithms (compute_seconds in the JSON), and a lower bound for any plan. A "
      "plan of joint counts for larger budgets of the sweep, too.\n"
      "Example: spillway sweep --net resnet50 --batch 128 --machines v100,k40m --budgets 12\n"
      "Example: spillway sweep --net vgg16 --batch 256 --budgets min,min+20%,80% --links x0.5,x1\n"
      "Example: spillway sweep --net vgg16 --batch 256 --budgets 50% --plan mine.json");
  command->callback([options] { sweep(*options); });
}

}  // namespace spillway::cli
